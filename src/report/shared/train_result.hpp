// Results of training runs as JSON, a table and curves.
#pragma once

#include "monet/fit/run.hpp"
#include "monet/report/result.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace monet {

/// One training run.
struct TrainedRun {
  std::uint64_t seed = 0;
  RunHistory history;
  bool is_over = false; ///< false: interrupted
  double seconds = 0;   ///< of the timed steps
  std::int64_t timed_steps = 0;
};

/// All runs of a variant. Setup and data are borrowed for writing.
struct TrainedVariant {
  const TrainSetup* setup = nullptr;
  const DataOptions* data = nullptr;
  std::vector<TrainedRun> runs;
};

/// JSON of training runs, result.json, described by docs/train.schema.json. The final loss of a run
/// is the mean over its last epoch, even if that is incomplete. Spreads are sample standard
/// deviations.
nlohmann::ordered_json train_json(const std::string& name, std::span<const TrainedVariant> variants,
                                  const Provenance& provenance);

/// Table for a terminal with a line per variant. It includes the share of flushed gradients, if
/// any, and the origin of numbers that are not finite.
std::string train_table(const nlohmann::ordered_json& result);

/// CSV with a line per step: variant, seed, step and epoch (from 1), rate, loss, accuracy, scale,
/// skipped, flushed.
std::string curves_csv(std::span<const TrainedVariant> variants);

/// SVG document with the loss of the steps and the accuracy of the tests.
std::string curves_svg(const std::string& name, std::span<const TrainedVariant> variants);

} // namespace monet
