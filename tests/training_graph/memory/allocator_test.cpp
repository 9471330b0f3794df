// Static allocation: the published hard instances, brute force on small ones, large ones.
#include "base/shared/rng.hpp"
#include "training_graph/memory/allocation_files.hpp"

#include "monet/base/errors.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace monet {
namespace {

class Instance : public testing::TestWithParam<char> {};

TEST_P(Instance, FitsItsCapacity) {
  const std::vector<BufferRequest> requests = read_instance(GetParam());
  ASSERT_GE(requests.size(), 150U);
  AllocationOptions options;
  options.capacity = kInstanceCapacity;
  const Allocation allocation = allocate(requests, options);
  verify(requests, allocation);
  EXPECT_LE(allocation.height, kInstanceCapacity);
  EXPECT_TRUE(allocation.proven);
}
INSTANTIATE_TEST_SUITE_P(MiniMalloc, Instance,
                         testing::Values('A', 'B', 'C', 'D', 'E', 'F', 'G', 'H', 'I', 'J', 'K'),
                         [](const auto& instance) { return std::string(1, instance.param); });

TEST(StaticAllocator, EightInstancesHaveNothingToSpare) {
  int exact = 0;
  for (char name = 'A'; name <= 'K'; ++name)
    exact += max_live(read_instance(name)) == kInstanceCapacity ? 1 : 0;
  EXPECT_EQ(exact, 8);
}

std::vector<BufferRequest> random_requests(std::uint64_t seed, std::size_t count,
                                           std::uint64_t steps, std::uint64_t sizes) {
  std::vector<BufferRequest> requests(count);
  for (std::size_t i = 0; i < count; ++i) {
    BufferRequest& request = requests[i];
    request.start = static_cast<std::int64_t>(random_bits(seed, 3 * i) % steps);
    request.end = request.start + 1 +
                  static_cast<std::int64_t>(random_bits(seed, 3 * i + 1) %
                                            (steps - static_cast<std::uint64_t>(request.start)));
    request.size = 1 + static_cast<std::int64_t>(random_bits(seed, 3 * i + 2) % sizes);
  }
  return requests;
}

/// Least height over all orders of placing buffers at the lowest free offset on top of what is
/// below them: every allocation that is pushed down is made by one.
std::int64_t min_height(const std::vector<BufferRequest>& requests) {
  std::vector<std::size_t> order(requests.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::int64_t best = INT64_MAX;
  do {
    std::vector<std::int64_t> top(requests.size(), 0);
    std::int64_t height = 0;
    for (std::size_t k = 0; k < order.size(); ++k) {
      const BufferRequest& placed = requests[order[k]];
      std::int64_t at = 0;
      for (std::size_t j = 0; j < k; ++j) {
        const BufferRequest& below = requests[order[j]];
        if (below.start < placed.end && placed.start < below.end)
          at = std::max(at, top[order[j]]);
      }
      at = (at + placed.alignment - 1) / placed.alignment * placed.alignment;
      top[order[k]] = at + placed.size;
      height = std::max(height, top[order[k]]);
    }
    best = std::min(best, height);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

/// Random buffers of which at no step more than `load` bytes live, and seldom much less.
std::vector<BufferRequest> tight_requests(std::uint64_t seed, std::size_t count, std::size_t steps,
                                          std::int64_t load) {
  std::vector<std::int64_t> live(steps, 0);
  std::vector<BufferRequest> requests;
  for (std::uint64_t draw = 0; requests.size() < count && draw < 400; ++draw) {
    BufferRequest request;
    const std::size_t start = random_bits(seed, 3 * draw) % steps;
    const std::size_t end = start + 1 + random_bits(seed, 3 * draw + 1) % (steps - start);
    request.start = static_cast<std::int64_t>(start);
    request.end = static_cast<std::int64_t>(end);
    request.size = 1 + static_cast<std::int64_t>(random_bits(seed, 3 * draw + 2) %
                                                 static_cast<std::uint64_t>(load - 1));
    if (*std::max_element(live.begin() + request.start, live.begin() + request.end) + request.size >
        load)
      continue;
    for (std::size_t s = start; s < end; ++s)
      live[s] += request.size;
    requests.push_back(request);
  }
  return requests;
}

TEST(StaticAllocator, EqualsBruteForceOnSmallInstances) {
  int above_live = 0; // one of these needs more than is alive at once
  for (std::uint64_t seed = 1; seed <= 1600; ++seed) {
    const auto requests = tight_requests(seed, 8, 6, 6);
    const Allocation allocation = allocate(requests);
    verify(requests, allocation);
    EXPECT_TRUE(allocation.proven) << "seed " << seed;
    EXPECT_EQ(allocation.lower_bound, allocation.height) << "seed " << seed;
    const bool above = allocation.height > max_live(requests);
    above_live += above ? 1 : 0;
    if (above || seed <= 60) {
      EXPECT_EQ(allocation.height, min_height(requests)) << "seed " << seed;
    }
  }
  EXPECT_GT(above_live, 0);
}

/// Hard ones: a full rectangle cut into pieces, so that the least height is known.
std::vector<BufferRequest> cut_rectangle(std::uint64_t seed, std::size_t pieces) {
  std::vector<BufferRequest> cut{{0, 64, 256, 1, {}}};
  for (std::uint64_t draw = 0; cut.size() < pieces; ++draw) {
    BufferRequest& piece = cut[random_bits(seed, 3 * draw) % cut.size()];
    BufferRequest rest = piece;
    const std::uint64_t at = random_bits(seed, 3 * draw + 1);
    if (random_bits(seed, 3 * draw + 2) % 2 == 0 && piece.end - piece.start > 1) {
      piece.end =
          piece.start + 1 +
          static_cast<std::int64_t>(at % static_cast<std::uint64_t>(piece.end - piece.start - 1));
      rest.start = piece.end;
    } else if (piece.size > 1) {
      piece.size = 1 + static_cast<std::int64_t>(at % static_cast<std::uint64_t>(piece.size - 1));
      rest.size -= piece.size;
    } else {
      continue;
    }
    cut.push_back(rest);
  }
  return cut;
}

TEST(StaticAllocator, PutsCutRectanglesTogetherAgain) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const auto requests = cut_rectangle(seed, 40);
    ASSERT_EQ(max_live(requests), 256);
    const Allocation allocation = allocate(requests);
    verify(requests, allocation);
    EXPECT_EQ(allocation.height, 256) << "seed " << seed;
  }
}

TEST(StaticAllocator, KeepsAlignment) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    auto requests = random_requests(seed, 6, 6, 40);
    const bool mixed = seed % 2 == 0;
    for (std::size_t i = 0; i < requests.size(); ++i)
      requests[i].alignment = mixed ? std::int64_t{1} << (random_bits(seed, 100 + i) % 5) : 16;
    const Allocation allocation = allocate(requests);
    verify(requests, allocation);
    EXPECT_LE(allocation.lower_bound, min_height(requests)) << "seed " << seed;
    if (!mixed) {
      EXPECT_LT(allocation.height, min_height(requests) + 16) << "seed " << seed;
    }
  }
}

TEST(StaticAllocator, LeavesGivenOffsets) {
  std::vector<BufferRequest> requests{{0, 4, 10, 1, 5}, {0, 4, 5, 1, {}}, {1, 3, 7, 1, {}}};
  const Allocation allocation = allocate(requests);
  verify(requests, allocation);
  EXPECT_EQ(allocation.offsets, (std::vector<std::int64_t>{5, 0, 15}));
  EXPECT_EQ(allocation.height, 22);
  EXPECT_EQ(allocation.lower_bound, 22);
}

TEST(StaticAllocator, ProvesThatACapacityIsTooSmall) {
  const std::vector<BufferRequest> requests{{0, 2, 4, 1, {}}, {1, 3, 4, 1, {}}};
  AllocationOptions options;
  options.capacity = 7;
  const Allocation allocation = allocate(requests, options);
  EXPECT_TRUE(allocation.proven);
  EXPECT_EQ(allocation.lower_bound, 8);
  EXPECT_EQ(allocation.height, 8);
}

TEST(StaticAllocator, NothingNeedsNothing) {
  EXPECT_EQ(allocate({}).height, 0);
  const std::vector<BufferRequest> empty{{3, 3, 8, 1, {}}, {0, 9, 0, 1, {}}};
  const Allocation allocation = allocate(empty);
  verify(empty, allocation);
  EXPECT_EQ(allocation.height, 0);
  EXPECT_TRUE(allocation.proven);
}

TEST(StaticAllocator, ThousandsOfBuffers) {
  const auto requests = random_requests(7, 3000, 3000, 1 << 20);
  AllocationOptions options;
  options.max_work = 1'000'000;
  const Allocation allocation = allocate(requests, options);
  verify(requests, allocation);
  EXPECT_LE(static_cast<double>(allocation.height),
            1.2 * static_cast<double>(allocation.lower_bound));
}

// As of a network of 40,000 operators at inference: some ten buffers are alive at a time.
TEST(StaticAllocator, ManyShortLives) {
  auto requests = random_requests(9, 40'000, 1, 1 << 10);
  std::int64_t time = 0;
  for (BufferRequest& request : requests) {
    request.start = time++;
    request.end =
        time + static_cast<std::int64_t>(random_bits(13, static_cast<std::uint64_t>(time)) % 20);
  }
  AllocationOptions options;
  options.max_work = 1;
  const Allocation allocation = allocate(requests, options);
  verify(requests, allocation);
  EXPECT_LE(static_cast<double>(allocation.height),
            1.5 * static_cast<double>(allocation.lower_bound));
}

TEST(StaticAllocator, TheSameEveryTime) {
  const auto requests = random_requests(11, 60, 30, 100);
  const Allocation first = allocate(requests);
  const Allocation again = allocate(requests);
  EXPECT_EQ(first.offsets, again.offsets);
  EXPECT_EQ(first.nodes, again.nodes);
}

TEST(StaticAllocator, OverlapsAreNoticed) {
  const std::vector<BufferRequest> requests{{0, 2, 4, 1, {}}, {1, 3, 4, 1, {}}};
  Allocation wrong = allocate(requests);
  wrong.offsets = {0, 3};
  EXPECT_THROW(verify(requests, wrong), InternalError);
}

} // namespace
} // namespace monet
