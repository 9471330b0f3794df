// The paper's guess of a partition scheme: what is fastest for layers of similar dimensions.
#include "base/shared/rng.hpp"

#include "monet/base/errors.hpp"
#include "monet/core_cost/backward.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace monet {
namespace {

using Samples = std::vector<PartitionSample>;

std::size_t fastest(const PartitionSample& sample) {
  return static_cast<std::size_t>(std::ranges::min_element(sample.cycles) - sample.cycles.begin());
}

double distance(const PartitionSample& a, const PartitionSample& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.dims.size(); ++i) {
    const double d = std::log(a.dims[i]) - std::log(b.dims[i]);
    sum += d * d;
  }
  return sum;
}

/// Scheme of most of the nearest samples; ties go to the nearest. If it does not fit, the next one.
std::size_t guess(const Samples& samples, const std::vector<std::size_t>& known,
                  const PartitionSample& asked, std::size_t neighbours) {
  std::vector<std::pair<double, std::size_t>> near;
  for (const std::size_t i : known)
    near.emplace_back(distance(samples[i], asked), i);
  const std::size_t count = std::min(neighbours, near.size());
  std::partial_sort(near.begin(), near.begin() + static_cast<std::ptrdiff_t>(count), near.end());
  std::array<std::size_t, kPartitionSchemes> votes{};
  for (std::size_t i = 0; i < count; ++i)
    ++votes[fastest(samples[near[i].second])];
  std::size_t best = kPartitionSchemes;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t scheme = fastest(samples[near[i].second]);
    if (!std::isfinite(asked.cycles[scheme]))
      continue;
    if (best == kPartitionSchemes || votes[scheme] > votes[best])
      best = scheme;
  }
  return best == kPartitionSchemes ? fastest(asked) : best;
}

} // namespace

NeighbourGuess guess_partitions(const std::vector<PartitionSample>& samples, std::uint64_t seed,
                                int splits, int neighbours) {
  internal_check(splits >= 1 && neighbours >= 1, "splits and neighbours");
  NeighbourGuess result;
  if (samples.size() < 2)
    return result;
  const std::size_t known_count =
      std::clamp<std::size_t>(samples.size() * 4 / 5, 1, samples.size() - 1);
  std::int64_t right = 0;
  for (int split = 0; split < splits; ++split) {
    RandomStream random(seed, static_cast<std::uint64_t>(split));
    std::vector<std::size_t> order(samples.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t i = order.size() - 1; i > 0; --i)
      std::swap(order[i], order[random.below(i + 1)]);
    const std::vector<std::size_t> known(order.begin(),
                                         order.begin() + static_cast<std::ptrdiff_t>(known_count));
    for (std::size_t i = known_count; i < order.size(); ++i) {
      const PartitionSample& asked = samples[order[i]];
      const double guessed =
          asked.cycles[guess(samples, known, asked, static_cast<std::size_t>(neighbours))];
      const double best = asked.cycles[fastest(asked)];
      result.guessed_cycles += guessed;
      result.exact_cycles += best;
      right += guessed <= best ? 1 : 0;
    }
  }
  const auto asked = static_cast<double>(samples.size() - known_count);
  result.right = static_cast<double>(right) / (asked * splits);
  result.guessed_cycles /= splits;
  result.exact_cycles /= splits;
  return result;
}

} // namespace monet
