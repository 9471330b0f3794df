// How good a network's scores are.
#pragma once

#include <cstdint>
#include <span>

namespace monet {

/// Sums over images.
struct ScoreSums {
  std::int64_t images = 0;
  std::int64_t right =
      0;           ///< the first largest score is the label's; none is where one is no number
  double loss = 0; ///< minus the logarithm of the label's share

  double accuracy() const { return static_cast<double>(right) / static_cast<double>(images); }
};

/// Adds the first `counted` images of row-major [image][class] scores: logits, or logarithms of
/// probabilities already.
void add_scores(ScoreSums& sums, std::span<const double> scores,
                std::span<const std::int64_t> labels, std::int64_t counted, bool logarithms);

} // namespace monet
