// Cuts a list of layers into contiguous parts whose largest cost is minimal. Called where a model's
// blocks are assigned to the stages of a pipeline (step/chunks.cpp).
#include "base/shared/checked.hpp"

#include "monet/base/errors.hpp"
#include "monet/cluster/pipeline.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace monet {

namespace {

/// The minimum number of parts, of cost `most` at most, for the layers from each index to the end.
/// No layer may exceed `most`.
std::vector<std::int64_t> parts_needed(const std::vector<Nanoseconds>& layers, Nanoseconds most) {
  std::vector<std::int64_t> needed(layers.size() + 1, 0);
  Nanoseconds sum = 0;
  std::size_t end = layers.size(); // end of the part that begins at i
  for (std::size_t i = layers.size(); i-- > 0;) {
    sum += layers[i];
    while (sum > most)
      sum -= layers[--end];
    needed[i] = needed[end] + 1;
  }
  return needed;
}

Nanoseconds min_largest(const std::vector<Nanoseconds>& layers, std::int64_t parts) {
  Nanoseconds low = *std::ranges::max_element(layers);
  Nanoseconds high = 0;
  for (const Nanoseconds layer : layers)
    high = checked_add(high, layer);
  while (low < high) {
    const Nanoseconds middle = low + (high - low) / 2;
    if (parts_needed(layers, middle).front() <= parts)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

} // namespace

std::vector<std::int64_t> balance(std::span<const Nanoseconds> layers, Nanoseconds first,
                                  Nanoseconds last, std::int64_t parts) {
  internal_check(parts >= 1, "layers are cut into no parts");
  const auto count = static_cast<std::int64_t>(layers.size());
  if (parts > count)
    throw InfeasibleError(fmt::format("{} layers do not fill {} parts of a pipeline: {} too few",
                                      count, parts, parts - count));
  std::vector<Nanoseconds> costs(layers.begin(), layers.end());
  costs.front() = checked_add(costs.front(), first);
  costs.back() = checked_add(costs.back(), last);
  internal_check(first >= 0 && last >= 0 &&
                     std::ranges::all_of(layers, [](Nanoseconds c) { return c >= 0; }),
                 "a layer has a negative cost");
  const Nanoseconds most = min_largest(costs, parts);
  const std::vector<std::int64_t> needed = parts_needed(costs, most);
  Nanoseconds left = 0;
  for (const Nanoseconds cost : costs)
    left += cost;
  std::vector<std::int64_t> cuts{0};
  for (std::int64_t k = parts; k > 1; --k) { // k: number of parts left, this one included
    const Nanoseconds share = left / k + (left % k != 0);
    auto end = static_cast<std::size_t>(cuts.back());
    Nanoseconds sum = 0;
    // A part must have a layer, and more until the rest fits into the other parts. It may have
    // further layers up to its share of the remaining cost.
    const auto must_take = [&] {
      return end == static_cast<std::size_t>(cuts.back()) || needed[end] > k - 1;
    };
    const auto may_take = [&] {
      return count - static_cast<std::int64_t>(end) > k - 1 && sum + costs[end] <= share;
    };
    while (must_take() || may_take())
      sum += costs[end++];
    left -= sum;
    cuts.push_back(static_cast<std::int64_t>(end));
  }
  cuts.push_back(count);
  return cuts;
}

} // namespace monet
