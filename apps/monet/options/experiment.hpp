// Contents of experiment.yaml for `monet run`; `monet schedule` fills the same structure from its
// options.
#pragma once

#include "options/search_options.hpp"

#include "monet/base/errors.hpp"
#include "monet/explore/step_settings.hpp"
#include "monet/optimise/allocation.hpp"
#include "monet/optimise/fusion.hpp"

#include <optional>
#include <string>
#include <vector>

namespace monet::cli {

/// Searches that `monet run` makes before it writes its results, each if its key is present. The
/// limits are those of all searches together.
struct OptimiseRequest : SearchLimits {
  std::optional<CheckpointingArguments> checkpointing;
  std::optional<FusionOptions> fusion;
  std::optional<AllocationSearchOptions> allocation;
};

struct Experiment : StepSettings {
  std::string name;
  std::string hardware;
  bool inference_only = false; ///< only the number formats of `training` are used
  std::optional<OptimiseRequest> optimise;
  std::vector<AlternateStep> alternate; ///< steps that alternate; `training` is then empty
};

/// Reads an experiment. Throws one InputError with every problem of the file and of the training
/// file that it names.
Experiment read_experiment(const std::string& path);

} // namespace monet::cli
