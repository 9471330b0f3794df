#include "train/loop/scores.hpp"

#include "monet/base/errors.hpp"

#include <algorithm>
#include <cmath>

namespace monet {

void add_scores(ScoreSums& sums, std::span<const double> scores,
                std::span<const std::int64_t> labels, std::int64_t counted, bool logarithms) {
  internal_check(!labels.empty() && scores.size() % labels.size() == 0 &&
                     counted <= static_cast<std::int64_t>(labels.size()),
                 "scores of other images than labels");
  const std::size_t classes = scores.size() / labels.size();
  for (std::size_t i = 0; i < static_cast<std::size_t>(counted); ++i) {
    const auto row = scores.subspan(i * classes, classes);
    const auto label = static_cast<std::size_t>(labels[i]);
    const bool numbers = std::ranges::none_of(row, [](double x) { return std::isnan(x); });
    const auto best = static_cast<std::size_t>(std::ranges::max_element(row) - row.begin());
    sums.right += numbers && best == label ? 1 : 0;
    double shares = 0;
    for (const double score : row)
      shares += std::exp(score - row[best]);
    sums.loss += logarithms ? -row[label] : std::log(shares) - (row[label] - row[best]);
  }
  sums.images += counted;
}

} // namespace monet
