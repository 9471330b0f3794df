// The stages in a row: files -> training graph -> folded views -> tiles -> schedule. Used by `run`
// and `schedule`.
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
  TrainingGraph graph;  ///< with views folded, as it was costed
  TilingOptions tiling; ///< the mapping's, with the stacks and slices that were chosen
  ModelledStep modelled;

  StepResult result() const { return result_of(graph, modelled); }
};

struct Model {
  Chip chip;
  std::optional<TrainingGraph>
      training_graph; ///< with its views, for export; none for inference only
  ModelledGraph step;
  std::optional<ModelledGraph> inference; ///< beside a training step
  Provenance provenance;

  nlohmann::ordered_json json(const std::string& name) const;
};

/// The files of an experiment, read.
struct ModelInputs {
  Graph network;
  Chip chip;
  std::optional<MappingFile> mapping;
  std::optional<StacksFile> stacks;
};
/// One InputError with the problems of all files. `chip`: in place of the experiment's; null: it is
/// read, too.
ModelInputs read_inputs(const Experiment& experiment, const Chip* chip = nullptr);
/// The same as a stage of the session.
ModelInputs read_and_check(const Experiment& experiment, Session& session);

/// Reads all files first.
Model make_model(const Experiment& experiment, Session& session);
Model make_model(const Experiment& experiment, const ModelInputs& inputs, Session& session);

/// Points into `inputs`. `training` is a graph whose operators stacks may name, too; may be null.
TilingOptions tiling_options(const Experiment& experiment, const ModelInputs& inputs,
                             const TrainingGraph& step, const TrainingGraph* training);
ScheduleOptions schedule_options(const Experiment& experiment, int jobs);
/// tiling_options() with the stacks and slices that the experiment's mode comes to for its
/// objective of cores: a stage of the session.
StepChoice choose_step(const Experiment& experiment, const Chip& chip, const TrainingGraph& step,
                       const TilingOptions& tiling, CoreCostCache& costs, Session& session,
                       const std::string& what);
Provenance provenance_of(const Experiment& experiment, const Chip& chip);

/// OutputError where it cannot be made; no error where it is there.
void make_folder(const std::string& folder);
std::string path_in(const std::string& folder, const char* name);

/// result.json, report.html and trace.json of a step. Makes the folder; returns the report's path.
std::string write_result_and_report(const std::string& folder,
                                    const nlohmann::ordered_json& result);

/// cluster.json, report.html and trace.json of a step on a cluster. Likewise.
std::string write_cluster_report(const std::string& folder, const nlohmann::ordered_json& result);
/// result.json and the like, and training.onnx. Makes the folder; returns the report's
/// path.
std::string write_results(const std::string& folder, const nlohmann::ordered_json& result,
                          const Graph& graph);

/// version, git hash and the hashes of the files; options are the caller's.
Provenance provenance_of(const std::vector<std::string>& files);
/// Files a chip was read from.
std::vector<std::string> files_of(const Chip& chip);

/// Adds the problems of an InputError to `problems`; anything else passes.
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
