// Runs the stages from an experiment's files to a scheduled step and writes its results
// (pipeline.hpp).
#include "pipeline.hpp"

#include "base/shared/sha512.hpp"
#include "options/network_options.hpp"
#include "options/unused_options.hpp"
#include "report/shared/cluster_result.hpp"
#include "version.hpp"
#include "workload/shared/views.hpp"

#include "monet/base/files.hpp"
#include "monet/base/yaml.hpp"
#include "monet/hardware/read_hardware.hpp"
#include "monet/tiling/stacks_file.hpp"
#include "monet/tiling/tiling.hpp"
#include "monet/training_graph/training.hpp"
#include "monet/workload/imported_steps.hpp"
#include "monet/workload/onnx_writer.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

namespace monet::cli {

ModelInputs read_inputs(const Experiment& experiment, const Chip* given) {
  ProblemList problems;
  OnnxReadOptions reading = experiment.network_options;
  if (experiment.training)
    read_for(reading, *experiment.training);
  auto network = collecting(problems, [&] {
    ForeignReport report;
    return recognise(read_network(experiment.network, reading), experiment.training.has_value(),
                     report);
  });
  auto chip = collecting(
      problems, [&] { return given != nullptr ? *given : read_chip(experiment.hardware); });
  std::optional<MappingFile> mapping;
  if (!experiment.mapping.empty()) {
    mapping = collecting(problems, [&] { return read_mapping(experiment.mapping); });
  }
  std::optional<StacksFile> stacks;
  if (!experiment.stacks.empty())
    stacks = collecting(problems, [&] { return read_stacks(experiment.stacks); });
  if (network && chip) {
    MappingSubjects subjects;
    subjects.add(*network);
    check_loops(*chip, subjects.loops, problems);
  }
  problems.throw_if_any();
  return {std::move(*network), std::move(*chip), std::move(mapping), std::move(stacks)};
}

TilingOptions tiling_options(const Experiment& experiment, const ModelInputs& inputs,
                             const TrainingGraph& step, const TrainingGraph* training) {
  TilingOptions options;
  if (inputs.mapping) {
    std::vector<const Graph*> graphs{&inputs.network, &step.graph};
    if (training)
      graphs.push_back(&training->graph);
    check_mapping(*inputs.mapping, inputs.chip, graphs);
    options.mapping = &*inputs.mapping;
  }
  options.halo = experiment.halo;
  if (inputs.stacks) {
    std::vector<const Graph*> others;
    if (training)
      others.push_back(&training->graph);
    FusionPlan plan = resolve_stacks(*inputs.stacks, step.graph, inputs.network, others);
    options.stacks = std::move(plan.stacks);
    options.slices = std::move(plan.slices);
    options.idle = idle_cores_of(*inputs.stacks, inputs.chip);
  }
  return options;
}

ScheduleOptions schedule_options(const Experiment& experiment, int jobs) {
  return {.core_cost = experiment.core_cost,
          .priority = experiment.priority,
          .rules = experiment.rules,
          .jobs = jobs};
}

StepChoice choose_step(const Experiment& experiment, const Chip& chip, const TrainingGraph& step,
                       const StepOptions& options, CoreCostCache& costs, Session& session) {
  if (experiment.mode == StepMode::layer_by_layer) {
    return {.tiling = options.tiling};
  }
  const auto told = [&](const SearchProgress& state) { session.progress.search(state); };
  return session.stage(options.name.empty() ? "fusion" : options.name + ": fusion", [&] {
    std::optional<SharedPlans> shared;
    if (experiment.effort == Effort::quick)
      shared.emplace(step, experiment.halo);
    return monet::choose_step(step, chip, options,
                              {experiment.mode, experiment.core_cost.objective,
                               shared ? &*shared : nullptr, told, experiment.effort},
                              costs);
  });
}

namespace {

/// Models the steps of one experiment, which share core costs.
struct StepModeller {
  const Experiment& experiment;
  const ModelInputs& inputs;
  Session& session;
  CoreCostCache costs = {};

  /// Models `graph`. `training`: the graph whose operators stacks may name, too; may be null.
  ModelledGraph model(const TrainingGraph& graph, const TrainingGraph* training,
                      const std::string& what) {
    ModelledGraph made;
    made.graph = session.stage(
        what + ": fold views", [&] { return fold_views(graph); },
        [](const TrainingGraph& folded) { verify(folded); });
    StepOptions options{tiling_options(experiment, inputs, made.graph, training),
                        schedule_options(experiment, session.context.jobs), what};
    options.tiling =
        choose_step(experiment, inputs.chip, made.graph, options, costs, session).tiling;
    made.tiling = options.tiling;
    made.modelled = model_step(made.graph, inputs.chip, options, {costs, &session.context});
    return made;
  }
};

} // namespace

namespace {

/// The files that exist, by name without folder, each once. Files of one name in different folders
/// are numbered.
std::map<std::string, std::string> named_files(const std::vector<std::string>& files) {
  std::map<std::string, std::string> named;
  std::set<std::string> seen;
  for (const std::string& file : files) {
    const std::string path = std::filesystem::path(file).lexically_normal().string();
    if (!is_file(file) || !seen.insert(path).second)
      continue;
    const std::string name = std::filesystem::path(path).filename().string();
    std::string key = name;
    for (int n = 2; named.contains(key); ++n)
      key = fmt::format("{} ({})", name, n);
    named[key] = path;
  }
  return named;
}

/// Scalars of a node of a file in `folder` by the path of their keys. Paths of files become their
/// names. Nesting is limited by parse_yaml().
void add_scalars(const YamlNode& node, const std::filesystem::path& folder, const std::string& path,
                 std::map<std::string, std::string>& scalars) {
  const std::string prefix = path.empty() ? "" : path + '.';
  for (const YamlNode::Entry& entry : node.entries)
    add_scalars(entry.value, folder, prefix + entry.key, scalars);
  for (std::size_t i = 0; i < node.items.size(); ++i)
    add_scalars(node.items[i], folder, prefix + std::to_string(i), scalars);
  if (node.kind != YamlNode::Kind::scalar)
    return;
  const bool is_path =
      node.scalar.find('/') != std::string::npos && is_file((folder / node.scalar).string());
  scalars[path] = is_path ? std::filesystem::path(node.scalar).filename().string() : node.scalar;
}

} // namespace

Provenance provenance_of(const Experiment& experiment, const Chip& chip) {
  std::vector<std::string> files = experiment.files;
  files.push_back(experiment.network);
  const std::vector<std::string> hardware = files_of(chip);
  files.insert(files.end(), hardware.begin(), hardware.end());
  if (!experiment.mapping.empty())
    files.push_back(experiment.mapping);
  if (!experiment.stacks.empty())
    files.push_back(experiment.stacks);
  Provenance provenance = provenance_of(files);
  add_file_settings(files, provenance);
  std::map<std::string, std::string>& options = provenance.options;
  options["mode"] = name_of(experiment.mode);
  if (experiment.mode != StepMode::layer_by_layer) {
    options["stacks"] = experiment.stacks.empty()
                            ? "auto"
                            : std::filesystem::path(experiment.stacks).filename().string();
    options["halo"] = experiment.halo == Halo::cached ? "cached" : "recomputed";
  }
  if (experiment.effort != Effort::normal)
    options["effort"] = name_of(experiment.effort);
  if (experiment.priority != Priority::latency)
    options["priority"] = name_of(experiment.priority);
  for (const std::string& name : kTransferRules) {
    if (!(experiment.rules.*transfer_rule_named(name)))
      options["stream_like " + name] = "on";
  }
  options["mapping"] = experiment.mapping.empty()
                           ? "auto"
                           : std::filesystem::path(experiment.mapping).filename().string();
  options["objective"] = name_of(experiment.core_cost.objective);
  options["lpf_limit"] = std::to_string(experiment.core_cost.lpf_limit);
  if (experiment.network_options.batch) {
    options["batch"] = std::to_string(*experiment.network_options.batch);
  }
  for (const auto& [name, size] : experiment.network_options.dimensions) {
    options["dim " + name] = std::to_string(size);
  }
  return provenance;
}

void make_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    throw OutputError(folder, "cannot be created: " + error.message());
}

std::string path_in(const std::string& folder, const char* name) {
  return (std::filesystem::path(folder) / name).string();
}

std::string write_result_and_report(const std::string& folder,
                                    const nlohmann::ordered_json& result) {
  make_folder(folder);
  write_json(path_in(folder, "result.json"), result);
  write_file_atomically(path_in(folder, "report.html"), page_of(result));
  write_file_atomically(path_in(folder, "trace.json"), trace_json(result));
  return path_in(folder, "report.html");
}

std::string write_comparison(const std::string& folder, const nlohmann::ordered_json& comparison) {
  make_folder(folder);
  write_json(path_in(folder, "compare.json"), comparison);
  const std::string page = path_in(folder, "compare.html");
  write_file_atomically(page, page_of(comparison));
  return page;
}

std::string write_cluster_report(const std::string& folder, const nlohmann::ordered_json& result) {
  make_folder(folder);
  write_json(path_in(folder, "cluster.json"), result);
  write_file_atomically(path_in(folder, "trace.json"), cluster_trace(result));
  write_file_atomically(path_in(folder, "report.html"), page_of(result));
  return path_in(folder, "report.html");
}

std::string write_results(const std::string& folder, const nlohmann::ordered_json& result,
                          const Graph& graph) {
  std::string report = write_result_and_report(folder, result);
  write_file_atomically(path_in(folder, "training.onnx"), write_onnx(graph));
  return report;
}

std::vector<std::string> files_of(const Chip& chip) {
  std::vector<std::string> files{chip.origin};
  for (const Core& core : chip.cores)
    files.push_back(core.origin);
  return files;
}

Provenance provenance_of(const std::vector<std::string>& files) {
  Provenance provenance;
  provenance.version = version();
  provenance.git_hash = git_hash();
  for (const auto& [name, path] : named_files(files))
    provenance.input_hashes[name] = sha512_hex(read_file(path));
  return provenance;
}

void add_file_settings(const std::vector<std::string>& files, Provenance& provenance) {
  for (const auto& [name, path] : named_files(files)) {
    const std::string extension = std::filesystem::path(path).extension().string();
    if (extension == ".yaml" || extension == ".yml")
      add_scalars(load_yaml(path), std::filesystem::path(path).parent_path(), "",
                  provenance.settings[name]);
  }
}

ModelInputs read_and_check(const Experiment& experiment, Session& session) {
  return session.stage(
      "read files", [&] { return read_inputs(experiment); },
      [](const ModelInputs& read) {
        verify(read.network);
        verify(read.chip);
      });
}

Model make_model(const Experiment& experiment, Session& session) {
  return make_model(experiment, read_and_check(experiment, session), session);
}

Model make_model(const Experiment& experiment, const ModelInputs& inputs, Session& session,
                 bool and_inference) {
  Model model;
  model.chip = inputs.chip;
  model.provenance = provenance_of(experiment, inputs.chip);
  const auto check = [](const TrainingGraph& graph) { verify(graph); };
  StepModeller steps{experiment, inputs, session};
  const bool is_training = experiment.training && !experiment.inference_only;
  if (is_training) {
    model.training_graph = session.stage(
        "training: graph",
        [&] { return make_step(inputs.network, *experiment.training, experiment.training_where); },
        check);
    model.step = steps.model(*model.training_graph, nullptr, "training");
    if (!and_inference)
      return model;
  }
  const TrainingGraph inference = session.stage(
      "inference: graph",
      [&] { return make_inference_graph(inputs.network, inference_precision(experiment)); }, check);
  ModelledGraph alone =
      steps.model(inference, model.training_graph ? &*model.training_graph : nullptr, "inference");
  if (is_training) {
    model.inference = std::move(alone);
  } else {
    model.step = std::move(alone);
  }
  return model;
}

nlohmann::ordered_json Model::json(const std::string& name) const {
  const StepResult alone = inference ? inference->result() : StepResult{};
  return result_json(name, step.result(), inference ? &alone : nullptr, chip, provenance);
}

} // namespace monet::cli
