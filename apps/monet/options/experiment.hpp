// Contents of experiment.yaml for `monet run`; `monet schedule` fills the same structure from its
// options.
#pragma once

#include "monet/base/errors.hpp"
#include "monet/explore/step_settings.hpp"

#include <optional>
#include <string>
#include <vector>

namespace monet::cli {

/// Searches that `monet run` makes before it writes its results, each if its key is present.
struct OptimiseRequest {
  struct Checkpointing {
    std::string budget; ///< in the format of --budget
    std::string memory = "peak";
    std::string objective = "latency";
    SourceLoc where; ///< location of the budget
  };
  struct Search {
    std::string objective = "latency";
    std::int64_t evaluations = 0; ///< 0: default of the search
  };
  std::optional<Checkpointing> checkpointing;
  std::optional<Search> fusion;
  std::optional<Search> allocation;
  std::uint64_t seed = 1;
  double time_limit = 0; ///< seconds for all searches together; 0: none
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
