// Reads experiment.yaml (experiment.hpp); `monet run`, the searches and the Python package use it.
#include "options/experiment.hpp"

#include "console.hpp"
#include "options/command_line.hpp"
#include "options/memory_budget.hpp"
#include "options/network_options.hpp"

#include "monet/base/files.hpp"
#include "monet/base/yaml.hpp"
#include "monet/optimise/fusion.hpp"

#include <algorithm>
#include <filesystem>

namespace monet::cli {

namespace {

std::string read_name(YamlMap& map, std::string_view key, const std::vector<std::string>& names,
                      ProblemList& problems) {
  return names[read_choice(map, key, names, problems)];
}

std::int64_t read_evaluations(YamlMap& map, ProblemList& problems) {
  const YamlNode* node = map.find("evaluations");
  if (node == nullptr)
    return 0;
  const std::int64_t count = as_integer(*node, problems).value_or(1);
  if (count < 1 || count > 1'000'000)
    problems.add(node->where, "evaluations must be 1 to 1000000");
  return std::clamp<std::int64_t>(count, 1, 1'000'000);
}

OptimiseRequest::Checkpointing read_checkpointing(const YamlNode& node, ProblemList& problems) {
  YamlMap map(node, problems);
  OptimiseRequest::Checkpointing request;
  if (const YamlNode* budget = map.require("budget")) {
    request.budget = budget->kind == YamlNode::Kind::scalar ? budget->scalar : "";
    request.where = budget->where;
    try {
      parse_budget(request.budget, 100, "budget");
    } catch (const UsageError& error) {
      problems.add(budget->where, error.what());
    }
  }
  request.memory = read_name(map, "memory", {"peak", "stored"}, problems);
  request.objective = read_name(map, "objective", {"latency", "energy"}, problems);
  map.finish();
  return request;
}

std::optional<OptimiseRequest::Search> read_search(YamlMap& map, std::string_view key,
                                                   const std::vector<std::string>& objectives,
                                                   ProblemList& problems) {
  const YamlNode* node = map.find(key);
  if (node == nullptr)
    return std::nullopt;
  YamlMap inner(*node, problems);
  OptimiseRequest::Search search;
  search.objective = read_name(inner, "objective", objectives, problems);
  search.evaluations = read_evaluations(inner, problems);
  inner.finish();
  return search;
}

OptimiseRequest read_optimise(const YamlNode& node, ProblemList& problems) {
  YamlMap map(node, problems);
  OptimiseRequest request;
  if (const YamlNode* checkpointing = map.find("checkpointing"))
    request.checkpointing = read_checkpointing(*checkpointing, problems);
  request.fusion = read_search(map, "fusion", choice_names(kFusionObjectives), problems);
  request.allocation =
      read_search(map, "allocation", {"latency", "energy", "edp", "memory"}, problems);
  const std::int64_t seed = map.integer_or("seed", 1);
  request.seed = static_cast<std::uint64_t>(std::max<std::int64_t>(0, seed));
  request.time_limit = map.number_or("time_limit", 0);
  if (seed < 0 || !(request.time_limit >= 0 && request.time_limit <= 1e7))
    problems.add(node.where, "seed and time_limit must not be negative, nor time_limit above 1e7");
  map.finish();
  return request;
}

/// Reads a list of alternating steps, here or in a separate file. Returns false for a single step.
bool read_steps(const YamlNode& node, const std::string& path, Experiment& experiment,
                ProblemList& problems) {
  if (node.kind == YamlNode::Kind::sequence) {
    experiment.alternate = read_alternate_steps(node, problems);
    return true;
  }
  const std::string file =
      node.kind == YamlNode::Kind::scalar ? resolve_beside(path, node.scalar) : std::string();
  if (file.empty() || !is_file(file))
    return false; // errors are reported when it is read as a single step
  try {
    experiment.alternate = load_alternate_steps(file);
  } catch (const InputError&) {
    return false;
  }
  if (!experiment.alternate.empty())
    experiment.files.push_back(file);
  return !experiment.alternate.empty();
}

} // namespace

Experiment read_experiment(const std::string& path) {
  const YamlNode root = load_yaml(path);
  ProblemList problems;
  Experiment experiment;
  experiment.files.push_back(path);
  YamlMap map(root, problems);
  experiment.name = map.string_or("name", std::filesystem::path(path).stem().string());
  if (const YamlNode* workload = map.require("workload")) {
    read_network_section(*workload, path, experiment, problems);
  }
  if (const YamlNode* training = map.find("training")) {
    if (!read_steps(*training, path, experiment, problems))
      read_training_section(*training, path, experiment, problems);
  }
  if (const YamlNode* precision = map.find("precision"))
    experiment.precision = read_precision_options(*precision, problems);
  const std::string hardware = map.require_string("hardware");
  if (!hardware.empty())
    experiment.hardware = resolve_beside(path, hardware);
  read_mapping_key(map, path, experiment);
  if (const YamlNode* schedule = map.find("schedule")) {
    read_schedule_section(*schedule, path, experiment, problems);
  }
  if (const YamlNode* optimise = map.find("optimise"))
    experiment.optimise = read_optimise(*optimise, problems);
  if (experiment.optimise && !experiment.alternate.empty())
    problems.add(root.where, "'optimise' is of one step, 'training' a list of them");
  if (experiment.optimise && experiment.optimise->checkpointing && !experiment.training &&
      experiment.alternate.empty()) {
    problems.add(experiment.optimise->checkpointing->where,
                 "inference stores no activations to recompute", "add 'training:'");
  }
  map.finish();
  problems.throw_if_any();
  return experiment;
}

} // namespace monet::cli
