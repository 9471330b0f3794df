// Reads experiment.yaml (experiment.hpp); `monet run`, the searches and the Python package use it.
#include "options/experiment.hpp"

#include "base/shared/file_kind.hpp"
#include "base/shared/hints.hpp"
#include "console.hpp"
#include "options/command_line.hpp"
#include "options/memory_budget.hpp"
#include "options/network_options.hpp"

#include "monet/base/files.hpp"
#include "monet/base/yaml.hpp"
#include "monet/optimise/fusion.hpp"

#include <filesystem>

namespace monet::cli {

namespace {

/// Reads the options of a search if its key is present.
template <class Options, std::size_t kRows>
void read_search(YamlMap& map, std::string_view key, const OptionRow<Options> (&rows)[kRows],
                 std::optional<Options>& options, ProblemList& problems) {
  const YamlNode* node = map.find(key);
  if (node == nullptr)
    return;
  YamlMap inner(*node, problems);
  read_options(inner, bind(rows, options.emplace()), problems);
  inner.finish();
}

OptimiseRequest read_optimise(const YamlNode& node, ProblemList& problems) {
  YamlMap map(node, problems);
  OptimiseRequest request;
  read_search(map, "checkpointing", kCheckpointingOptions, request.checkpointing, problems);
  if (request.checkpointing)
    request.checkpointing->where = map.find("checkpointing")->where;
  read_search(map, "fusion", kFusionOptions, request.fusion, problems);
  read_search(map, "allocation", kAllocationOptions, request.allocation, problems);
  read_options(map, bind(kSearchLimits, request), problems);
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
  require_kind(root, {FileKind::experiment});
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
  if (const std::string hardware = map.require_string("hardware"); !hardware.empty())
    experiment.hardware = named_file(*map.find("hardware"), path, problems);
  read_mapping_key(map, path, experiment, problems);
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
