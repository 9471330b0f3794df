// What training runs came to, as numbers, a table and curves.
#pragma once

#include "monet/fit/run.hpp"
#include "monet/report/result.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace monet {

struct TrainedRun {
  std::uint64_t seed = 0;
  RunHistory history;
  bool is_over = false; ///< false: interrupted
  double seconds = 0;   ///< of the steps that were timed
  std::int64_t timed_steps = 0;
};

/// All runs of a variant, borrowed setup and data.
struct TrainedVariant {
  const TrainSetup* setup = nullptr;
  const DataOptions* data = nullptr;
  std::vector<TrainedRun> runs;
};

/// result.json, described by docs/train.schema.json. The final loss of a run is the mean of its
/// last epoch's, of as many steps as there are; spreads are standard deviations of a sample.
nlohmann::ordered_json train_json(const std::string& name, std::span<const TrainedVariant> variants,
                                  const Provenance& provenance);

/// A line for each variant, with the share of gradients flushed where there are any, and where
/// numbers that are not finite came from.
std::string train_table(const nlohmann::ordered_json& result);

/// A line for every step: variant, seed, step and epoch (from 1), rate, loss, accuracy, scale,
/// skipped, flushed.
std::string curves_csv(std::span<const TrainedVariant> variants);

/// Loss of the steps and accuracy of the tests.
std::string curves_svg(const std::string& name, std::span<const TrainedVariant> variants);

} // namespace monet
