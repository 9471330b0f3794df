// experiment.yaml: everything `monet run` needs to know. `monet schedule` fills the same from its
// options.
#pragma once

#include "monet/base/errors.hpp"
#include "monet/explore/step_settings.hpp"

#include <optional>
#include <string>
#include <vector>

namespace monet::cli {

/// Searches that `monet run` makes before it writes its results; each where the key is there.
struct OptimiseRequest {
  struct Checkpointing {
    std::string budget; ///< as --budget has it
    std::string memory = "peak";
    std::string objective = "latency";
    SourceLoc where; ///< of the budget
  };
  struct Search {
    std::string objective = "latency";
    std::int64_t evaluations = 0; ///< 0: as many as the search likes
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
  bool inference_only = false; ///< of `training` the formats of numbers alone count
  std::optional<OptimiseRequest> optimise;
  std::vector<AlternateStep> alternate; ///< steps that take turns; then there is no `training`
};

/// Throws one InputError with every problem of the file and of the training file it names.
Experiment read_experiment(const std::string& path);

} // namespace monet::cli
