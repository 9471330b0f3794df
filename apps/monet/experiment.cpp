#include "experiment.hpp"

#include "console.hpp"
#include "memory_budget.hpp"
#include "network_options.hpp"

#include "monet/base/files.hpp"
#include "monet/base/text.hpp"
#include "monet/base/yaml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace monet::cli {

namespace {

constexpr std::string_view kNotYet = "is not available yet";

/// A key whose only value so far is `only`.
void read_fixed(YamlMap& map, std::string_view key, std::string_view only, ProblemList& problems) {
  const YamlNode* node = map.find(key);
  if (node == nullptr)
    return;
  const auto value = as_string(*node, problems);
  if (!value || *value == only)
    return;
  problems.add(node->where, fmt::format("{} '{}' {}", key, *value, kNotYet),
               fmt::format("leave it out or say '{}'", only));
}

void read_workload(const YamlNode& node, const std::string& path, Experiment& experiment,
                   ProblemList& problems) {
  YamlMap map(node, problems);
  const std::string network = map.require_string("network");
  if (!network.empty())
    experiment.network = resolve_beside(path, network);
  if (const YamlNode* batch = map.find("batch")) {
    experiment.network_options.batch = as_integer(*batch, problems);
    if (experiment.network_options.batch.value_or(1) < 1) {
      problems.add(batch->where, "the batch must be at least 1");
    }
  }
  if (const YamlNode* dimensions = map.find("dimensions")) {
    YamlMap sizes(*dimensions, problems);
    for (const YamlNode::Entry& entry : dimensions->entries) {
      sizes.ignore(entry.key);
      const auto size = as_integer(entry.value, problems);
      if (size && *size < 1)
        problems.add(entry.value.where, "a dimension must be at least 1");
      experiment.network_options.dimensions[entry.key] = size.value_or(1);
    }
    sizes.finish();
  }
  map.finish();
}

void read_training(const YamlNode& node, const std::string& path, Experiment& experiment,
                   ProblemList& problems) {
  if (node.kind != YamlNode::Kind::scalar) {
    experiment.training = read_training_options(node, problems);
    return;
  }
  const auto file = as_string(node, problems);
  if (!file)
    return;
  try {
    const std::string resolved = resolve_beside(path, *file);
    experiment.files.push_back(resolved);
    experiment.training = read_training_options(load_yaml(resolved), problems);
  } catch (const InputError& error) {
    for (const InputProblem& problem : error.problems()) {
      problems.add(problem.where, problem.what, problem.hint);
    }
  }
}

/// 0 for "none".
int read_factor_limit(const YamlNode& node, ProblemList& problems) {
  if (node.kind == YamlNode::Kind::scalar && node.scalar == "none")
    return 0;
  const std::int64_t factors = as_integer(node, problems).value_or(1);
  if (factors < 1 || factors > kHighestLpfLimit)
    problems.add(node.where, fmt::format("lpf_limit must be 1 to {}, or none", kHighestLpfLimit));
  return static_cast<int>(std::clamp<std::int64_t>(factors, 1, kHighestLpfLimit));
}

/// One of some names; the first when the key is missing or the name another.
template <class Value>
Value read_choice(YamlMap& map, std::string_view key,
                  const std::vector<std::pair<std::string, Value>>& choices,
                  ProblemList& problems) {
  const YamlNode* node = map.find(key);
  const auto name = node ? as_string(*node, problems) : std::nullopt;
  if (!name)
    return choices.front().second;
  std::vector<std::string> names;
  for (const auto& [known, value] : choices) {
    if (*name == known)
      return value;
    names.push_back(known);
  }
  problems.add(node->where, fmt::format("unknown {} '{}'", key, *name),
               nearest_name_hint(*name, names));
  return choices.front().second;
}

void read_schedule(const YamlNode& node, const std::string& path, Experiment& experiment,
                   ProblemList& problems) {
  YamlMap map(node, problems);
  experiment.mode = read_choice<TilingMode>(
      map, "mode", {{"layer-by-layer", TilingMode::layer_by_layer}, {"fused", TilingMode::fused}},
      problems);
  experiment.halo = read_choice<Halo>(
      map, "halo", {{"cached", Halo::cached}, {"recomputed", Halo::recomputed}}, problems);
  const YamlNode* stacks = map.find("stacks");
  const auto file = stacks ? as_string(*stacks, problems) : std::nullopt;
  if (file && *file != "auto") {
    experiment.stacks = resolve_beside(path, *file);
    if (experiment.mode != TilingMode::fused)
      problems.add(stacks->where, "stacks are of no use layer by layer", "add 'mode: fused'");
  }
  if (const YamlNode* rules = map.find("stream_like")) {
    for (const std::string& name : as_strings(*rules, problems)) {
      bool TransferRules::*rule = transfer_rule_named(name);
      if (rule != nullptr) {
        experiment.rules.*rule = false;
      } else {
        problems.add(rules->where, fmt::format("unknown rule '{}'", name),
                     nearest_name_hint(name, kTransferRules));
      }
    }
  }
  if (const YamlNode* model = map.find("model")) {
    if (as_string(*model, problems) == "stream-coala") {
      problems.add(model->where, "the reference's model gives a result of another form",
                   "use monet schedule --model stream-coala");
    } else {
      read_fixed(map, "model", "monet", problems);
    }
  }
  experiment.priority = read_choice<Priority>(
      map, "priority",
      {{"latency", Priority::latency}, {"memory", Priority::memory}, {"order", Priority::order}},
      problems);
  if (const YamlNode* objective = map.find("objective")) {
    const auto name = as_string(*objective, problems);
    const auto known = name ? objective_named(*name) : std::nullopt;
    if (name && !known) {
      const std::vector<std::string> names{"latency", "energy", "edp"};
      problems.add(objective->where, fmt::format("unknown objective '{}'", *name),
                   nearest_name_hint(*name, names));
    }
    experiment.core_cost.objective = known.value_or(Objective::latency);
  }
  if (const YamlNode* limit = map.find("lpf_limit"))
    experiment.core_cost.lpf_limit = read_factor_limit(*limit, problems);
  map.finish();
}

std::string read_name(YamlMap& map, std::string_view key, const std::vector<std::string>& names,
                      ProblemList& problems) {
  std::vector<std::pair<std::string, std::string>> choices;
  for (const std::string& name : names)
    choices.emplace_back(name, name);
  return read_choice<std::string>(map, key, choices, problems);
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
  request.fusion = read_search(map, "fusion", {"latency", "energy", "edp", "dram"}, problems);
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

} // namespace

Experiment read_experiment(const std::string& path) {
  const YamlNode root = load_yaml(path);
  ProblemList problems;
  Experiment experiment;
  experiment.files.push_back(path);
  YamlMap map(root, problems);
  experiment.name = map.string_or("name", std::filesystem::path(path).stem().string());
  if (const YamlNode* workload = map.require("workload")) {
    read_workload(*workload, path, experiment, problems);
  }
  if (const YamlNode* training = map.find("training")) {
    read_training(*training, path, experiment, problems);
  }
  const std::string hardware = map.require_string("hardware");
  if (!hardware.empty())
    experiment.hardware = resolve_beside(path, hardware);
  const std::string mapping = map.string_or("mapping", "auto");
  if (mapping != "auto")
    experiment.mapping = resolve_beside(path, mapping);
  if (const YamlNode* schedule = map.find("schedule")) {
    read_schedule(*schedule, path, experiment, problems);
  }
  if (const YamlNode* optimise = map.find("optimise"))
    experiment.optimise = read_optimise(*optimise, problems);
  if (experiment.optimise && experiment.optimise->checkpointing && !experiment.training) {
    problems.add(experiment.optimise->checkpointing->where,
                 "inference stores no activations to make again", "add 'training:'");
  }
  map.finish();
  problems.throw_if_any();
  return experiment;
}

} // namespace monet::cli
