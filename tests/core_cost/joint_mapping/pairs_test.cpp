// What users ask: a pair by hand, laws that must hold, partitions, guesses, machines out of chips.
#include "base/shared/rng.hpp"

#include "monet/base/errors.hpp"
#include "monet/core_cost/backward.hpp"
#include "monet/hardware/read_hardware.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace monet {
namespace MONET_TEST_FILE {

/// 2 x 2 multipliers, room for 640 bits beside what is loaded, an element a cycle.
NpuMachine two_by_two() {
  NpuMachine machine;
  machine.rows = machine.columns = 2;
  machine.buffer_bits = 1280;
  machine.bandwidth_bits = 16;
  return machine;
}

GemmPair four_two_four() {
  GemmPair pair;
  pair.m = 4;
  pair.k = 2;
  pair.n = 4;
  return pair;
}

BackwardOptions array_sized() {
  BackwardOptions options;
  options.tiles = TilePolicy::array;
  return options;
}

// docs/explanation/backward-dataflow.md, "A layer by hand". A tile of 2 x 2 x 2 takes 2 + 2 * 2 + 2
// - 2 = 6 cycles, moving one of its operands 4.
//
// dX, then dW: of dX's four steps the first reads dY and W (8 cycles), the second too, the others
// only dY; dX leaves after the second and the fourth:
//   8 + max(6, 8) + max(6, 4) + max(6, 4 + 4) + max(6, 0) + 4 = 40,
// and dW likewise with X for W: 80 cycles, 4 * 16 elements.
TEST(JointPair, SequentialByHand) {
  const BackwardCost cost =
      backward_cost(four_two_four(), two_by_two(), Technique::sequential, array_sized());
  EXPECT_EQ(cost.latency_cycles, 80);
  EXPECT_EQ(cost.compute_cycles, 48);
  EXPECT_EQ(cost.dram_bytes(), 64 * 2);
  EXPECT_EQ(cost.traffic.dy_read, 32 * 16);
}

// In turn by rows of dY; dW's sums stay. By steps (reads before them / writes after them):
//   dX 8/0, dW 4/0, dX 8/4, dW 0/0, dX 4/0, dW 4/4, dX 4/4, dW 0/4
//   8 + 6 + 8 + 6 + (4 + 4) + 6 + 6 + 6 + 6 + 4 = 64 cycles, 48 elements: dY once.
TEST(JointPair, DxMajorByHand) {
  const BackwardCost cost =
      backward_cost(four_two_four(), two_by_two(), Technique::dx_major, array_sized());
  EXPECT_EQ(cost.latency_cycles, 64);
  EXPECT_EQ(cost.transfer_cycles, 48);
  EXPECT_EQ(cost.traffic.dy_read, 16 * 16);
  EXPECT_EQ(cost.dram_bytes(), 48 * 2);
  EXPECT_TRUE(cost.mapping.dy_kept);
  EXPECT_FALSE(cost.mapping.partials_spilled);
  EXPECT_EQ(cost.variant, "dx-major, dY kept");
  const BackwardBound bound = backward_bound(four_two_four(), two_by_two());
  EXPECT_EQ(bound.dram_bytes(), 96);
  EXPECT_LE(bound.latency_cycles, 64);
}

TEST(JointPair, NothingIsFasterThanJoint) {
  const auto latency = [](Technique technique) {
    return backward_cost(four_two_four(), two_by_two(), technique, array_sized()).latency_cycles;
  };
  const std::int64_t joint = latency(Technique::joint);
  for (int t = 0; t < kTechniques - 1; ++t)
    EXPECT_LE(joint, latency(static_cast<Technique>(t)));
  EXPECT_EQ(joint, 56);
}

// In little room `interleave` has more steps than the joint search walks, and joint knows of it.
TEST(JointPair, InterleavingInLittleRoomIsNotFasterThanJoint) {
  NpuMachine machine = two_by_two();
  machine.buffer_bits = 400;
  for (const std::int64_t size : {24, 40}) {
    const GemmPair pair{"", size, size + 3, size};
    const auto latency = [&](Technique technique) {
      return backward_cost(pair, machine, technique).latency_cycles;
    };
    EXPECT_LE(latency(Technique::joint), latency(Technique::interleave));
  }
}

struct Question {
  GemmPair pair;
  NpuMachine machine;
};

std::int64_t up_to(RandomStream& random, std::int64_t most) {
  return 1 + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(most)));
}

Question some_question(RandomStream& random) {
  Question q;
  q.pair.m = up_to(random, 40);
  q.pair.k = up_to(random, 40);
  q.pair.n = up_to(random, 40);
  q.machine.rows = q.machine.columns = up_to(random, 8);
  q.machine.buffer_bits = 2 * 32 * (12 + up_to(random, 3000));
  q.machine.bandwidth_bits = up_to(random, 128);
  return q;
}

TEST(JointPair, MoreMemoryOrBandwidthIsNeverSlower) {
  RandomStream random(50);
  for (int i = 0; i < 20; ++i) {
    Question q = some_question(random);
    std::int64_t before = backward_cost(q.pair, q.machine, Technique::joint).latency_cycles;
    q.machine.buffer_bits *= 2;
    std::int64_t after = backward_cost(q.pair, q.machine, Technique::joint).latency_cycles;
    ASSERT_LE(after, before) << i;
    before = after;
    q.machine.bandwidth_bits *= 2;
    after = backward_cost(q.pair, q.machine, Technique::joint).latency_cycles;
    ASSERT_LE(after, before) << i;
    ASSERT_LE(backward_bound(q.pair, q.machine).latency_cycles, after) << i;
  }
}

// With M and N swapped the transposed pair has W^T for X, X^T for W, dW^T for dX: the same sums in
// the same space, as long as sums of both are equally wide and the array is a square.
TEST(JointPair, TransposedPairsTakeTheSame) {
  RandomStream random(51);
  for (int i = 0; i < 20; ++i) {
    const Question q = some_question(random);
    GemmPair transposed = q.pair;
    std::swap(transposed.m, transposed.n);
    BackwardOptions options;
    const auto latency = [&](const GemmPair& pair, Technique technique) {
      return backward_cost(pair, q.machine, technique, options).latency_cycles;
    };
    for (const Technique t : {Technique::joint, Technique::best_sequential})
      ASSERT_EQ(latency(q.pair, t), latency(transposed, t)) << i << " " << name_of(t);
  }
}

TEST(JointPair, RepeatsFollowOneAnother) {
  Question q{four_two_four(), two_by_two()};
  for (const Technique t : {Technique::sequential, Technique::joint, Technique::joint_update}) {
    q.pair.repeats = 1;
    const BackwardCost one = backward_cost(q.pair, q.machine, t);
    q.pair.repeats = 5;
    const BackwardCost five = backward_cost(q.pair, q.machine, t);
    EXPECT_EQ(five.latency_cycles, 5 * one.latency_cycles);
    EXPECT_EQ(five.traffic.bits(), 5 * one.traffic.bits());
    EXPECT_EQ(five.compute_cycles, 5 * one.compute_cycles);
  }
}

// An update on the chip moves weights and state both ways and no dW; a separate one reads dW, too.
TEST(JointPair, UpdatesReplaceTheWriteOfDw) {
  BackwardOptions options;
  options.state_bits = 64;
  NpuMachine larger = two_by_two();
  larger.buffer_bits *= 4;
  const BackwardCost joined =
      backward_cost(four_two_four(), larger, Technique::joint_update, options);
  EXPECT_EQ(joined.traffic.dw_write, 0);
  EXPECT_EQ(joined.traffic.update_read, 8 * (16 + 64));
  EXPECT_EQ(joined.traffic.update_write, 8 * (16 + 64));
  EXPECT_EQ(update_bits(four_two_four(), options), 8 * (3 * 16 + 2 * 64));
}

TEST(JointPair, FirstLayersHaveDwAlone) {
  GemmPair pair = four_two_four();
  pair.has_dx = false;
  for (int t = 0; t < kTechniques; ++t) {
    const BackwardCost cost = backward_cost(pair, two_by_two(), static_cast<Technique>(t));
    EXPECT_EQ(cost.traffic.dx_write, 0) << t;
    EXPECT_EQ(cost.traffic.w_read, 0) << t;
    EXPECT_EQ(cost.traffic.dy_read, 16 * 16) << t;
  }
}

// Cycles of tiles may come from elsewhere, here a core without pipeline; of the searched tiles
// those of the array are some.
TEST(JointPair, CyclesOfTilesMayComeFromACore) {
  BackwardOptions options = array_sized();
  options.timing = TileTiming::core;
  options.tile_cycles = [](std::int64_t r, std::int64_t c, std::int64_t t) {
    return r * c * t / 4 + 5;
  };
  const GemmPair pair{"", 23, 9, 14};
  NpuMachine machine = two_by_two();
  machine.buffer_bits *= 4;
  const std::int64_t joint = backward_cost(pair, machine, Technique::joint, options).latency_cycles;
  for (int t = 0; t < kTechniques - 1; ++t) {
    const BackwardCost cost = backward_cost(pair, machine, static_cast<Technique>(t), options);
    EXPECT_LE(joint, cost.latency_cycles) << t;
    EXPECT_GE(cost.compute_cycles, 2 * 23 * 9 * 14 / 4) << t;
  }
  EXPECT_GE(joint, backward_bound(pair, machine, options).latency_cycles);
}

TEST(JointPair, LargestSizesAreAnswered) {
  for (const GemmPair& pair :
       {GemmPair{"", kMaxGemmDimension, 1, 32}, GemmPair{"", 1, kMaxGemmDimension, 32},
        GemmPair{"", 32, 1, kMaxGemmDimension}}) {
    const BackwardCost cost = backward_cost(pair, two_by_two(), Technique::best_sequential);
    const BackwardBound bound = backward_bound(pair, two_by_two());
    EXPECT_LE(bound.latency_cycles, cost.latency_cycles);
    EXPECT_LE(bound.dram_bits, cost.traffic.bits());
    EXPECT_GT(bound.dram_bits, kMaxGemmDimension);
  }
}

TEST(JointPair, SmallMemoriesAreRefusedWithWhatIsMissing) {
  NpuMachine machine = two_by_two();
  // Half of it, 300 bits, for tiles of dY and W (64 bits each) and sums of dX (128): 256 fit.
  machine.buffer_bits = 600;
  EXPECT_NO_THROW(backward_cost(four_two_four(), machine, Technique::sequential, array_sized()));
  machine.buffer_bits = 500;
  try {
    backward_cost(four_two_four(), machine, Technique::sequential, array_sized());
    FAIL();
  } catch (const InfeasibleError& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr("6 bits are missing, the largest of them dX's (128"));
  }
  EXPECT_THROW(backward_cost({"", 1 << 20, 1 << 20, 1 << 20}, machine, Technique::joint),
               InfeasibleError);
  EXPECT_THROW(backward_cost({"", 0, 1, 1}, machine, Technique::joint), InternalError);
}

TEST(JointPair, AlgorithmOneFollowsItsRule) {
  NpuMachine machine = two_by_two();
  machine.buffer_bits *= 64;
  const auto variant = [&](std::int64_t m, std::int64_t k, std::int64_t n, MajorRule rule) {
    BackwardOptions options = array_sized();
    options.rule = rule;
    const BackwardCost cost =
        backward_cost({"", m, k, n}, machine, Technique::algorithm_1, options);
    return cost.mapping.form == BackwardMapping::Form::interleaved && cost.mapping.shared == 0
               ? std::string("interleave")
               : std::string(cost.mapping.dx.order[0] == GemmDim::m ? "dx" : "dw");
  };
  EXPECT_EQ(variant(8, 31, 8, MajorRule::dimensions), "interleave");
  EXPECT_EQ(variant(8, 32, 8, MajorRule::dimensions), "dw");
  EXPECT_EQ(variant(32, 8, 8, MajorRule::dimensions), "dx");
  EXPECT_EQ(variant(32, 8, 8, MajorRule::sizes), "dw");
  EXPECT_EQ(variant(8, 8, 32, MajorRule::sizes), "dx");
  EXPECT_EQ(variant(8, 8, 32, MajorRule::columns), "dx");
  EXPECT_EQ(variant(8, 32, 16, MajorRule::columns), "dw");
}

// Conservation: what the parts of a scheme move beside the sums is what the pairs of their sizes
// do.
TEST(JointPartition, PartsInTimeAddUp) {
  GemmPair pair = four_two_four();
  pair.m = 7;
  const NpuMachine machine = two_by_two();
  const PartitionedCost cut =
      partitioned(pair, machine, Technique::joint, PartitionScheme::weight_sharing, 2);
  GemmPair first = pair;
  first.m = 4;
  GemmPair last = pair;
  last.m = 3;
  const BackwardCost a = backward_cost(first, machine, Technique::joint);
  const BackwardCost b = backward_cost(last, machine, Technique::joint);
  // Two copies of 8 sums of 32 bits go out instead of finished ones, come back, and 8 elements of
  // 16 bits go out.
  const std::int64_t sums = 2 * 8 * (32 - 16) + 2 * 8 * 32 + 8 * 16;
  EXPECT_EQ(cut.traffic.bits(), a.traffic.bits() + b.traffic.bits() + sums);
  EXPECT_EQ(cut.sum_cycles, sums / 16);
  EXPECT_EQ(cut.latency_cycles, a.latency_cycles + b.latency_cycles + cut.sum_cycles);
  EXPECT_EQ(cut.parts, 2);
}

TEST(JointPartition, CoresShareWhatAllRead) {
  NpuMachine machine = two_by_two();
  machine.cores = 2;
  machine.buffer_bits *= 2;
  machine.bandwidth_bits *= 2;
  GemmPair pair = four_two_four();
  pair.k = 8;
  const PartitionedCost cut =
      partitioned(pair, machine, Technique::joint, PartitionScheme::ifmap_sharing, 2);
  EXPECT_EQ(cut.sum_cycles, 0);
  EXPECT_EQ(cut.traffic.dy_read % (16 * 16), 0);
  EXPECT_LE(cut.traffic.dy_read, 2 * 16 * 16);
  GemmPair half = pair;
  half.k = 4;
  // No slower than one core that shares nothing, and at least as slow as its computing.
  EXPECT_LE(cut.latency_cycles, backward_cost(half, two_by_two(), Technique::joint).latency_cycles);
  EXPECT_GE(cut.latency_cycles, cut.part.compute_cycles);
}

TEST(JointPartition, TheBestIsNoSlowerThanAnyScheme) {
  RandomStream random(52);
  for (int i = 0; i < 10; ++i) {
    Question q = some_question(random);
    const Technique t = Technique::best_of_three;
    const PartitionedCost best = best_partition(q.pair, q.machine, t, 4);
    EXPECT_LE(best.latency_cycles, backward_cost(q.pair, q.machine, t).latency_cycles);
    const PartitionSample sample = partition_sample(q.pair, q.machine, t, 4);
    EXPECT_EQ(static_cast<double>(best.latency_cycles),
              *std::min_element(sample.cycles.begin(), sample.cycles.end()));
  }
}

// Two kinds of layers far apart: their nearest neighbours are of their kind, and never wrong.
TEST(JointPartition, NeighboursOfTheSameKindAreRight) {
  std::vector<PartitionSample> samples;
  for (int i = 0; i < 20; ++i) {
    PartitionSample s;
    s.dims.fill(i % 2 == 0 ? 4.0 + i : 4000.0 + i);
    s.cycles = {100, 90, 100, 100};
    if (i % 2 == 0)
      s.cycles[3] = 80;
    samples.push_back(s);
  }
  const NeighbourGuess guess = guess_partitions(samples, 1, 100);
  EXPECT_EQ(guess.right, 1);
  EXPECT_EQ(guess.guessed_cycles, guess.exact_cycles);
  samples[0].cycles = {10, 90, 100, 100};
  const NeighbourGuess odd = guess_partitions(samples, 1, 1000);
  EXPECT_LT(odd.right, 1);
  // One of 20 layers is asked in one of five splits, among four.
  EXPECT_NEAR(odd.right, 1 - 0.2 / 4, 0.02);
  EXPECT_GT(odd.guessed_cycles, odd.exact_cycles);
}

TEST(JointMachine, IsMadeOfTheFirstArrayCore) {
  const Chip small = read_chip(MONET_SOURCE_DIR "/data/hardware/npu_small.yaml");
  const NpuMachine one = npu_machine(small);
  EXPECT_EQ(one.rows, 45);
  EXPECT_EQ(one.columns, 45);
  EXPECT_EQ(one.buffer_bits, 8 << 20);
  EXPECT_EQ(one.bandwidth_bits, 176 * one.bandwidth_cycles);
  const NpuMachine four = npu_machine(small, 4);
  EXPECT_EQ(four.buffer_bits, 4 * one.buffer_bits);
  EXPECT_EQ(four.bandwidth_bits, 4 * 176 * four.bandwidth_cycles);
  const Chip eight = read_chip(MONET_SOURCE_DIR "/data/hardware/npu_large_octa.yaml");
  const NpuMachine two = npu_machine(eight, 2);
  EXPECT_EQ(two.buffer_bits, 2 * (std::int64_t{64} << 20));
  EXPECT_EQ(two.bandwidth_bits, 2 * 9143);
  EXPECT_EQ(two.bandwidth_cycles, 8);
}

} // namespace MONET_TEST_FILE
} // namespace monet
