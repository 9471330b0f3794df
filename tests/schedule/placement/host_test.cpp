// Activations that wait in the host's memory, by hand: 64 fp32 numbers are 2048 bits, 32 cycles at
// 64 bits a cycle; 64 iterations on 16 lanes take 4 cycles.
#include "schedule/fixed_costs.hpp"
#include "schedule/hand_tiles.hpp"
#include "schedule/small_steps.hpp"

#include "monet/base/errors.hpp"
#include "monet/schedule/schedule.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace monet {
namespace {

using testing::make_chip;
using testing::StepBuilder;

/// a = f(x), b = f(a) with a copied out behind it; c = f(b), c = f(c) and so on, and d = f(c, a)
/// with a copied back in front of it.
struct Offloading {
  StepBuilder builder;
  TensorId x, a, b, out, c, back, d;

  explicit Offloading(int between = 1) {
    x = builder.source("x", {64}, TensorKind::input);
    a = builder.elementwise("a", {x}, Phase::forward, MemoryOwner::stored_activations);
    b = builder.elementwise("b", {a});
    out = copy("Offload", a, Phase::forward, MemoryOwner::offloaded_activations);
    c = b;
    for (int i = 0; i < between; ++i)
      c = builder.elementwise(fmt::format("c{}", i), {c}, Phase::backward);
    back = copy("Fetch", out, Phase::backward, MemoryOwner::stored_activations);
    d = builder.elementwise("d", {c, back}, Phase::backward);
    builder.output(d);
  }

  TensorId copy(const std::string& type, TensorId from, Phase phase, MemoryOwner owner) {
    const TensorId made = builder.elementwise(type, {from}, phase, owner);
    Operator& op = builder.graph().op(*builder.graph().tensor(made).producer);
    op.domain = kMonetDomain;
    op.op_type = type;
    return made;
  }

  TileGraph tiles(const std::vector<std::size_t>& cores) const {
    return testing::whole_tiles(builder.step(), cores);
  }
  Timeline run(const TileGraph& tiles, const Chip& chip) const {
    verify(tiles, builder.step());
    Timeline timeline = testing::schedule_with(tiles, builder.step(), chip, testing::simple_cost);
    verify(timeline, tiles, builder.step(), chip);
    return timeline;
  }
};

using Span = std::pair<std::int64_t, std::int64_t>;

std::vector<Span> spans_of(const Timeline& timeline, TensorId tensor) {
  std::vector<Span> spans;
  for (const Transfer& t : timeline.transfers) {
    if (t.tensor == tensor)
      spans.emplace_back(t.start.value, t.end.value);
  }
  return spans;
}

TEST(Host, copies_by_hand) {
  const Offloading step;
  const Timeline timeline = step.run(step.tiles({0, 0, 0, 0, 0, 0}), make_chip({}));
  std::vector<Span> runs;
  for (const TileRun& run : timeline.runs)
    runs.emplace_back(run.start.value, run.end.value);
  // x comes in [0, 32); a, b; a goes out; c; a comes back; d, which is written back [112, 144).
  EXPECT_THAT(runs, ::testing::ElementsAre(Span(32, 36), Span(36, 40), Span(40, 72), Span(72, 76),
                                           Span(76, 108), Span(108, 112)));
  EXPECT_THAT(spans_of(timeline, step.out), ::testing::ElementsAre(Span(40, 72), Span(76, 108)));
  EXPECT_THAT(spans_of(timeline, step.a), ::testing::IsEmpty());
  EXPECT_EQ(timeline.makespan.value, 144);
  // x and the copy in the host are read, d and that copy are written: 32 words each, of 8 pJ to
  // read and 16 pJ to write.
  EXPECT_DOUBLE_EQ(energy_of(timeline).offchip.picojoules().value, 2 * 32 * 8 + 2 * 32 * 16);
}

TEST(Host, live_memory_by_hand) {
  const Offloading step;
  const Timeline timeline = step.run(step.tiles({0, 0, 0, 0, 0, 0}), make_chip({}));
  struct Sample {
    std::int64_t cycle, stored, others, host;
    bool operator==(const Sample&) const = default;
  };
  std::vector<Sample> samples;
  for (const MemorySample& sample : timeline.live) {
    const auto tensors = [&](MemoryOwner owner) {
      return sample.live[static_cast<std::size_t>(owner)] / 256;
    };
    samples.push_back({sample.time.value, tensors(MemoryOwner::stored_activations),
                       tensors(MemoryOwner::temporaries),
                       tensors(MemoryOwner::offloaded_activations)});
  }
  const std::vector<Sample> expected{
      {0, 0, 1, 0},   // x
      {32, 1, 1, 0},  // x a, then a b
      {40, 1, 1, 1},  // a b, out
      {72, 0, 2, 1},  // b c, out
      {76, 1, 1, 1},  // c back, out
      {108, 1, 2, 0}, // c back d
      {112, 0, 1, 0}, // d
      {144, 0, 0, 0},
  };
  EXPECT_EQ(samples.size(), expected.size());
  EXPECT_EQ(samples, expected);
  EXPECT_EQ(timeline.peak.time.value, 108);
  EXPECT_EQ(total(timeline.peak.live), 3 * 256); // what lies in the host is no part of it
}

/// On a core of its own the copy back could begin at 72, when the copy out has ended.
TEST(Host, what_comes_back_waits_for_the_operator_before_the_last) {
  const Offloading step(3);
  const TileGraph tiles = step.tiles({0, 0, 0, 0, 0, 0, 1, 0});
  const Timeline timeline = step.run(tiles, make_chip({.cores = 2}));
  for (const TileRun& run : timeline.runs) {
    if (run.op == OpId(4)) { // c1, before the last of three
      EXPECT_EQ(run.end.value, 80);
    } else if (run.op == OpId(6)) {
      EXPECT_EQ(run.start.value, 80);
    }
  }
  EXPECT_THAT(spans_of(timeline, step.out), ::testing::ElementsAre(Span(40, 72), Span(80, 112)));
}

} // namespace
} // namespace monet
