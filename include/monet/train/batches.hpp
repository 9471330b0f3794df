// Which images are in which batch: a random order for every epoch of training, the order of the
// files for tests.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace monet {

/// 0 .. count - 1 in random order (Fisher, Yates 1938), by the seed and the epoch alone: the same
/// on any machine.
std::vector<std::int64_t> epoch_order(std::int64_t count, std::uint64_t seed, std::int64_t epoch);

/// Images of a batch, always as many as a batch has.
struct ImageBatch {
  std::vector<std::int64_t> images;
  std::int64_t counted = 0; ///< the first so many are results; what follows only fills the batch
};

/// Consecutive batches of an epoch's order. What is left over at the end, less than a batch, is
/// dropped: another epoch has it elsewhere. InfeasibleError where there is no batch at all.
std::vector<ImageBatch> training_batches(std::span<const std::int64_t> order,
                                         std::int64_t batch_size);

/// Images 0 .. count - 1 in this order. The last batch is filled with the first images again, from
/// 0 and over again where there are not enough of them, which are not counted: the sum of `counted`
/// is `count`.
std::vector<ImageBatch> test_batches(std::int64_t count, std::int64_t batch_size);

} // namespace monet
