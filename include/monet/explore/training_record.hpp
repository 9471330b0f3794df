// What a short training of a design's arithmetic came to, as it is kept and sent.
#pragma once

#include <cstdint>
#include <string>

namespace monet {

/// Of one run. Equal recipes from equal seeds come to equal numbers, whoever trains.
struct TrainingRecord {
  std::string key; ///< of what decides the numbers: the recipe and its network; no chip
  std::uint64_t seed = 0;
  double error = 0;             ///< share of the test's images taken for another class, 0 to 1
  double gradients_flushed = 0; ///< share of gradients' numbers rounded to 0, 0 to 1
  friend bool operator==(const TrainingRecord&, const TrainingRecord&) = default;
};

} // namespace monet
