// Draws the order of an epoch's images and cuts it into batches. The training loop calls it.
#include "base/shared/rng.hpp"

#include "monet/base/errors.hpp"
#include "monet/fit/dataset.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace monet {

namespace {

constexpr std::uint64_t kOrderTag = 0x0D3; ///< separates orders from augmentations of one seed

} // namespace

std::vector<std::int64_t> epoch_order(std::int64_t count, std::uint64_t seed, std::int64_t epoch) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  RandomStream random(random_bits(seed, kOrderTag), static_cast<std::uint64_t>(epoch));
  for (std::size_t left = order.size(); left > 1; --left)
    std::swap(order[left - 1], order[random.below(left)]);
  return order;
}

std::vector<ImageBatch> training_batches(std::span<const std::int64_t> order,
                                         std::int64_t batch_size) {
  internal_check(batch_size > 0, "a batch without images");
  const auto size = static_cast<std::size_t>(batch_size);
  if (order.size() < size)
    throw InfeasibleError(fmt::format("a batch of {} is more than the {} images for training",
                                      batch_size, order.size()));
  std::vector<ImageBatch> batches;
  for (; order.size() >= size; order = order.subspan(size))
    batches.push_back({{order.begin(), order.begin() + batch_size}, batch_size});
  return batches;
}

std::vector<ImageBatch> test_batches(std::int64_t count, std::int64_t batch_size) {
  internal_check(batch_size > 0, "a batch without images");
  std::vector<ImageBatch> batches;
  for (std::int64_t first = 0; first < count; first += batch_size) {
    ImageBatch batch;
    batch.counted = std::min(batch_size, count - first);
    for (std::int64_t i = 0; i < batch_size; ++i)
      batch.images.push_back(i < batch.counted ? first + i : (i - batch.counted) % count);
    batches.push_back(std::move(batch));
  }
  return batches;
}

} // namespace monet
