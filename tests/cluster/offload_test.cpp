// What waits in the host's memory: bytes of both, and the time that copies take.
#include "cluster/a100s.hpp"

#include "monet/base/errors.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace monet {

namespace {

constexpr std::int64_t kLayers = 8;

A100s gpts(double bandwidth, std::int64_t shared_by = 1) {
  A100s two(2, {.layers = kLayers,
                .hidden = 512,
                .heads = 8,
                .sequence = 256,
                .vocabulary = 1024,
                .dropout = 0.1});
  two.cluster.host_link = {
      .bandwidth_gb_per_s = bandwidth, .latency_ns = 5'000, .shared_by = shared_by};
  return two;
}

ParallelStrategy with(OffloadKind kind, bool overlap = true) {
  return {.axes = {{AxisRole::data, 2}},
          .micro_batch = 2,
          .global_batch = 8,
          .offload = kind,
          .overlap = overlap};
}

std::int64_t bytes(const ClusterStep& step, MemoryOwner owner) {
  return step.stages.front().memory.bytes[static_cast<std::size_t>(owner)];
}

const BlockCost& layer_of(const ClusterStep& step) {
  return step.blocks.at(2); // begin, h.0, h.1 ...
}

Nanoseconds copy_of(std::int64_t bytes, double bandwidth) {
  return static_cast<Nanoseconds>(std::llround(5'000 + static_cast<double>(bytes) / bandwidth));
}

} // namespace

TEST(Offload, MovesActivationsToTheHostsMemory) {
  const A100s two = gpts(1e6);
  const ClusterStep kept = two.model(with(OffloadKind::none));
  const ClusterStep moved = two.model(with(OffloadKind::activations));
  const std::int64_t stored = bytes(kept, MemoryOwner::stored_activations);
  const std::int64_t layer = layer_of(kept).stored_bytes;
  ASSERT_LT(3 * layer, stored);
  EXPECT_EQ(bytes(kept, MemoryOwner::offloaded_activations), 0);
  EXPECT_EQ(kept.largest_host, 0);
  EXPECT_EQ(bytes(moved, MemoryOwner::offloaded_activations), stored);
  EXPECT_EQ(moved.largest_host, stored);
  EXPECT_EQ(bytes(moved, MemoryOwner::stored_activations), 3 * layer);
  EXPECT_EQ(bytes(moved, MemoryOwner::optimizer_state), bytes(kept, MemoryOwner::optimizer_state));
  // Later blocks store nothing on the device that would make room for temporaries.
  EXPECT_GE(bytes(moved, MemoryOwner::temporaries), bytes(kept, MemoryOwner::temporaries));
}

TEST(Offload, MovesStatesToTheHostsMemory) {
  const A100s two = gpts(1e6);
  const ClusterStep kept = two.model(with(OffloadKind::none));
  const ClusterStep moved = two.model(with(OffloadKind::states));
  const std::int64_t states = bytes(kept, MemoryOwner::optimizer_state);
  EXPECT_EQ(states, 12 * kept.stages.front().parameters);
  EXPECT_EQ(moved.largest_host, states);
  EXPECT_EQ(bytes(moved, MemoryOwner::optimizer_state), 3 * layer_of(kept).state_bytes);
  EXPECT_EQ(two.model(with(OffloadKind::both)).largest_host,
            states + bytes(kept, MemoryOwner::stored_activations));
}

TEST(Offload, CostsNothingWhereTheLinkIsFastEnough) {
  const A100s two = gpts(1e6);
  A100s at_once = two;
  at_once.cluster.host_link.latency_ns = 0;
  EXPECT_EQ(at_once.model(with(OffloadKind::both)).time,
            at_once.model(with(OffloadKind::none)).time);
}

TEST(Offload, TakesAsLongAsTheLinkWhereThatIsSlow) {
  constexpr double kSlow = 0.25; // GB/s, or bytes a nanosecond
  const A100s two = gpts(kSlow);
  const BlockCost kept = layer_of(two.model(with(OffloadKind::none)));
  const BlockCost moved = layer_of(two.model(with(OffloadKind::both)));
  const Nanoseconds copy = copy_of(kept.stored_bytes, kSlow);
  EXPECT_EQ(moved.forward, copy);
  EXPECT_NEAR(static_cast<double>(moved.backward_input + moved.backward_weight),
              static_cast<double>(copy), 1);
  EXPECT_NEAR(
      static_cast<double>(moved.offload),
      static_cast<double>(2 * copy - kept.forward - kept.backward_input - kept.backward_weight), 2);
  EXPECT_EQ(moved.update, copy_of(kept.state_bytes, kSlow));
}

TEST(Offload, WaitsForEveryCopyWithoutOverlap) {
  constexpr double kSlow = 0.25;
  const A100s two = gpts(kSlow);
  const BlockCost kept = layer_of(two.model(with(OffloadKind::none, false)));
  const BlockCost moved = layer_of(two.model(with(OffloadKind::both, false)));
  const Nanoseconds copy = copy_of(kept.stored_bytes, kSlow);
  EXPECT_NEAR(static_cast<double>(moved.forward - kept.forward), static_cast<double>(copy), 1);
  EXPECT_NEAR(static_cast<double>(moved.backward_input - kept.backward_input),
              static_cast<double>(copy), 1);
  EXPECT_NEAR(static_cast<double>(moved.update - kept.update),
              static_cast<double>(2 * copy_of(kept.state_bytes, kSlow)), 1);
}

TEST(Offload, SharesTheLinkWithOtherDevices) {
  const BlockCost alone = layer_of(gpts(0.125).model(with(OffloadKind::activations)));
  const BlockCost shared = layer_of(gpts(0.25, 2).model(with(OffloadKind::activations)));
  EXPECT_EQ(alone.forward, shared.forward);
}

TEST(Offload, CopiesAreNotSlowerOnSlowDevices) {
  constexpr double kSlow = 0.05;
  A100s two = gpts(kSlow);
  const ClusterStep alike = two.model(with(OffloadKind::states));
  two.cluster.unequal = {{.first = 0, .count = 1, .speed = 0.5}};
  const ClusterStep slow = two.model(with(OffloadKind::states));
  EXPECT_EQ(slow.stages[0].share.update, alike.stages[0].share.update);
}

TEST(Offload, IsRefusedWhereWeightGradientsWait) {
  ParallelStrategy strategy = with(OffloadKind::activations);
  strategy.schedule = PipelineKind::zero_bubble_h1;
  EXPECT_THROW(gpts(25).model(strategy), InfeasibleError);
  strategy.offload = OffloadKind::states;
  EXPECT_NO_THROW(gpts(25).model(strategy));
}

TEST(Offload, NeedsAHostLink) {
  A100s two = gpts(0);
  EXPECT_NO_THROW(two.model(with(OffloadKind::both))); // that of the kernel table
  two.device.table->host_link = {};
  try {
    two.model(with(OffloadKind::states));
    FAIL();
  } catch (const InfeasibleError& error) {
    EXPECT_STREQ(error.what(),
                 "offload is states, and neither the cluster nor its device has a host_link");
  }
}

} // namespace monet
