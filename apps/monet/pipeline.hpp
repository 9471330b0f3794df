// Stages in sequence: files -> training graph -> folded views -> tiles -> schedule. Commands that
// model a step use them.
#pragma once

#include "console.hpp"
#include "options/experiment.hpp"

#include "monet/core_cost/mapping_file.hpp"
#include "monet/optimise/step_mode.hpp"
#include "monet/report/result.hpp"
#include "monet/tiling/stacks_file.hpp"

#include <nlohmann/json_fwd.hpp>

#include <optional>

namespace monet::cli {

struct ModelledGraph {
  TrainingGraph graph;  ///< with views folded, as costed
  TilingOptions tiling; ///< options of the mapping, with the chosen stacks and slices
  ModelledStep modelled;

  StepResult result() const { return result_of(graph, modelled); }
};

struct Model {
  Chip chip;
  std::optional<TrainingGraph> training_graph; ///< with views, for export; empty for inference
  ModelledGraph step;
  std::optional<ModelledGraph> inference; ///< in addition to a training step
  Provenance provenance;

  nlohmann::ordered_json json(const std::string& name) const;
};

/// Contents of the files of an experiment.
struct ModelInputs {
  Graph network;
  Chip chip;
  std::optional<MappingFile> mapping;
  std::optional<StacksFile> stacks;
};
/// Reads the files of an experiment. Throws one InputError with the problems of all of them. `chip`
/// replaces the experiment's chip; if it is null, the chip is read.
ModelInputs read_inputs(const Experiment& experiment, const Chip* chip = nullptr);
/// Reads the files of an experiment (read_inputs()) as a stage of the session.
ModelInputs read_and_check(const Experiment& experiment, Session& session);

/// Models an experiment; the first overload also reads its files. `and_inference`: models inference
/// in addition to a training step.
Model make_model(const Experiment& experiment, Session& session);
Model make_model(const Experiment& experiment, const ModelInputs& inputs, Session& session,
                 bool and_inference = true);

/// Tiling options of an experiment; they point into `inputs`. Stacks may also name operators of
/// `training`, which may be null.
TilingOptions tiling_options(const Experiment& experiment, const ModelInputs& inputs,
                             const TrainingGraph& step, const TrainingGraph* training);
ScheduleOptions schedule_options(const Experiment& experiment, int jobs);
/// Chooses stacks and slices for the experiment's mode and core objective, as a stage of the
/// session. Returns `options.tiling` with the chosen ones.
StepChoice choose_step(const Experiment& experiment, const Chip& chip, const TrainingGraph& step,
                       const StepOptions& options, CoreCostCache& costs, Session& session);
Provenance provenance_of(const Experiment& experiment, const Chip& chip);

/// Creates a folder. Throws OutputError if this fails; a folder that exists is not an error.
void make_folder(const std::string& folder);
std::string path_in(const std::string& folder, const char* name);

/// Writes result.json, report.html and trace.json of a step. Creates the folder; returns the
/// report's path.
std::string write_result_and_report(const std::string& folder,
                                    const nlohmann::ordered_json& result);

/// Writes cluster.json, report.html and trace.json of a step on a cluster. Creates the folder;
/// returns the report's path.
std::string write_cluster_report(const std::string& folder, const nlohmann::ordered_json& result);
/// Writes compare.json and compare.html of a comparison. Creates the folder; returns the page's
/// path.
std::string write_comparison(const std::string& folder, const nlohmann::ordered_json& comparison);
/// Writes result.json, report.html, trace.json and training.onnx. Creates the folder; returns the
/// report's path.
std::string write_results(const std::string& folder, const nlohmann::ordered_json& result,
                          const Graph& graph);

/// Provenance with version, git hash and hashes of the files; the caller adds options.
Provenance provenance_of(const std::vector<std::string>& files);
/// Adds the settings of those files that are YAML.
void add_file_settings(const std::vector<std::string>& files, Provenance& provenance);
/// Paths of the files that a chip was read from.
std::vector<std::string> files_of(const Chip& chip);

/// Returns read(). The problems of an InputError are added to `problems` and the result is empty;
/// other exceptions propagate.
template <class Read>
auto collecting(ProblemList& problems, Read&& read) -> std::optional<decltype(read())> {
  try {
    return std::forward<Read>(read)();
  } catch (const InputError& error) {
    problems.add(error.problems());
    return std::nullopt;
  }
}

} // namespace monet::cli
