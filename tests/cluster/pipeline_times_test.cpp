// Steps with sends, tails and unequal stages: by hand, and simulated, evaluated and swept alike.
#include "cluster/pipeline_reference.hpp"

#include "monet/base/errors.hpp"
#include "monet/cluster/pipeline.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <random>

namespace monet {
namespace {

PipelineProblem two_stages(std::int64_t m, ChunkCost cost) {
  PipelineProblem q;
  q.stages = 2;
  q.micro_batches = m;
  q.costs = {cost, cost};
  return q;
}

TEST(PipelineSends, OverlapPassesOnTheirOwnLinks) {
  PipelineProblem q = two_stages(2, {10, 10, 10});
  q.forward_sends = {4};
  q.backward_sends = {6};
  const PipelineTimeline line = simulate(q);
  // Stage 0: F0 0-10, F1 10-20, B0 W0 50-70, B1 W1 80-100; activations 10-14, 20-24.
  // Stage 1: F0 14-24, B0 W0 24-44, F1 44-54, B1 W1 54-74; gradients 44-50, 74-80.
  EXPECT_EQ(line.makespan, 100);
  EXPECT_EQ(line.runs[0][2].start, 50);
  EXPECT_EQ(line.runs[1][3].start, 44);
  ASSERT_EQ(line.sends.size(), 4U);
  EXPECT_EQ(line.sends[1].start, 20);
  EXPECT_EQ(line.sends[3].end, 80);
  EXPECT_TRUE(line.sends[3].gradient);
  EXPECT_EQ(line.stages[0].busy, 60);
  EXPECT_EQ(line.stages[0].exposed, 6 + 6); // 44-50, 74-80
  EXPECT_EQ(line.stages[0].bubble, 24 + 4); // 20-44, 70-74
  EXPECT_EQ(line.stages[1].exposed, 4);     // 10-14
  EXPECT_EQ(line.stages[1].bubble, 10 + 26);
}

TEST(PipelineSends, HoldTheSenderUpWhereTheyDoNotOverlap) {
  PipelineProblem q = two_stages(2, {10, 10, 10});
  q.forward_sends = {4};
  q.backward_sends = {6};
  q.overlap_sends = false;
  const PipelineTimeline line = simulate(q);
  // Stage 0: F0 0-10, sends -14, F1 14-24, sends -28, B0 W0 50-70, B1 W1 86-106.
  // Stage 1: F0 14-24, B0 W0 24-44, sends -50, F1 50-60, B1 W1 60-80, sends -86.
  EXPECT_EQ(line.makespan, 106);
  EXPECT_EQ(line.stages[0].exposed, 4 + 4 + 6 + 6);
  EXPECT_EQ(line.stages[0].bubble, 106 - 60 - 20);
  EXPECT_EQ(line.stages[1].exposed, 4 + 6 + 6);
  EXPECT_EQ(line.stages[1].end, 86);
}

TEST(PipelineSends, ShareALink) {
  PipelineProblem q = two_stages(3, {1, 0, 0});
  q.kind = PipelineKind::gpipe;
  q.forward_sends = {5};
  EXPECT_EQ(simulate(q).makespan, 1 + 3 * 5 + 1); // one after the other, 1 to 16
}

TEST(PipelineSends, OfAVTurnOnTheLastStage) {
  PipelineProblem q = two_stages(1, {1, 1, 1});
  q.kind = PipelineKind::zero_bubble_v;
  q.chunks = 2;
  q.costs.assign(4, {1, 1, 1});
  q.forward_sends = {10, 1000, 20}; // nothing is sent at the turn
  q.backward_sends = {40, 1000, 30};
  // Stage 0: F 0-1, sends -11; F 33-34, B 34-35, sends -65, W 35-36; B 108-109, W 109-110.
  // Stage 1: F 11-12, F 12-13, sends -33; B 65-66, W 66-67, B 67-68, sends -108, W 68-69.
  const PipelineTimeline line = simulate(q);
  EXPECT_EQ(line.makespan, 110);
  EXPECT_EQ(line.runs[1].back().end, 69);
  EXPECT_EQ(line.sends.size(), 4U);
}

TEST(PipelineTails, BlockOrAreValidatedAfterwards) {
  PipelineProblem q = two_stages(1, {1, 1, 1});
  q.tails = {{5, 2}, {1, 3}};
  q.global_reduce = 4;
  q.validation = 1;
  // Passes end at 6 and 4; all are synchronised at 11, reduced at 15.
  PipelineTimeline line = simulate(q);
  EXPECT_EQ(line.makespan, 18);
  EXPECT_EQ(line.period, 18);
  EXPECT_EQ(line.stages[0].finish, 17);
  EXPECT_EQ(line.stages[0].tail, 5 + 4 + 2);
  EXPECT_EQ(line.stages[0].bubble, 18 - 3 - 11);
  q.validate_after_step = true;
  line = simulate(q);
  EXPECT_EQ(line.makespan, 6 + 5 + 2 + 1);
  EXPECT_EQ(line.stages[1].finish, 4 + 1 + 3 + 1);
  EXPECT_EQ(line.stages[1].begin, 1);
  q.tails = {{0, 0}, {9, 0}};
  EXPECT_EQ(simulate(q).makespan, 4 + 9 + 1);
  EXPECT_EQ(simulate(q).period, 4 + 9 + 1 - 1);
}

TEST(PipelineMemory, CountsBytesOfActivationsAndOfWeightGradients) {
  PipelineProblem q = two_stages(4, {2, 1, 2, 1, 10, 3}); // 1 ns recomputes
  PipelineTimeline line = simulate(q);
  EXPECT_EQ(line.stages[0].max_bytes, 20);
  EXPECT_EQ(line.stages[0].busy, 4 * 6);
  q.kind = PipelineKind::zero_bubble_h1;
  line = simulate(q);
  EXPECT_EQ(line.stages[0].max_bytes, 20);
  // F0 B0 F1 B1 W0 F2 B2 W1 F3 B3 W2 W3
  EXPECT_EQ(line.stages[1].max_bytes, 13);
  EXPECT_EQ(line.stages[1].max_held, 1);
  EXPECT_EQ(line.stages[1].max_held_or_waiting, 2);
}

template <class Call>
std::string internal_error(Call call) {
  try {
    call();
  } catch (const InternalError& error) {
    return error.what();
  }
  return "none";
}

TEST(PipelineErrors, NamePassesThatWaitForEachOther) {
  const PipelineProblem q = two_stages(2, {1, 1, 1});
  test::PipelineOrders orders = test::orders_of(q);
  orders[0] = stage_order(q.kind, 1, 1, 2, 0); // F0 B0 W0 F1 B1 W1
  std::rotate(orders[1].begin(), orders[1].begin() + 3, orders[1].end());
  EXPECT_THAT(internal_error([&] { simulate(q, orders); }),
              testing::HasSubstr("wait for each other: stage 0 has B0 wait, stage 1 has F1 wait"));
}

TEST(PipelineErrors, AreThoseOfTheCaller) {
  const PipelineProblem q = two_stages(2, {1, 1, 1});
  PipelineScratch scratch;
  const auto refused = [&](auto change) {
    PipelineProblem wrong = q;
    change(wrong);
    EXPECT_NE(internal_error([&] { simulate(wrong); }), "none");
    EXPECT_NE(internal_error([&] { pipeline_times(wrong, scratch); }), "none");
  };
  refused([](PipelineProblem& w) { w.costs.pop_back(); });
  refused([](PipelineProblem& w) { w.forward_sends = {1, 1}; });
  refused([](PipelineProblem& w) { w.tails.resize(3); });
  refused([](PipelineProblem& w) { w.chunks = 2; });
  refused([](PipelineProblem& w) { w.costs[1].recompute = -1; });
  refused([](PipelineProblem& w) { w.micro_batches = std::int64_t{1} << 40; });
  refused([](PipelineProblem& w) {
    w.costs[0].forward = std::numeric_limits<std::int64_t>::max() / 3;
  });
  test::PipelineOrders orders = test::orders_of(q);
  orders[0].pop_back();
  EXPECT_THAT(internal_error([&] { simulate(q, orders); }), testing::HasSubstr("in no stage's"));
  orders[0].push_back(orders[0][0]);
  EXPECT_THAT(internal_error([&] { simulate(q, orders); }), testing::HasSubstr("twice"));
  orders[0].back().micro_batch = 2;
  EXPECT_NE(internal_error([&] { simulate(q, orders); }), "none");
}

/// Any pipeline: unequal stages, sends that are none, short or long, tails.
PipelineProblem random_pipeline(std::mt19937& random, std::int64_t max_stages,
                                std::int64_t max_batches) {
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  PipelineProblem q;
  q.kind = static_cast<PipelineKind>(below(6));
  q.stages = 1 + below(max_stages);
  q.micro_batches = 1 + below(max_batches);
  if (q.kind == PipelineKind::zero_bubble_v)
    q.chunks = 2;
  else if (q.kind == PipelineKind::gpipe || q.kind == PipelineKind::interleaved)
    q.chunks = 1 + below(4);
  if (q.kind == PipelineKind::interleaved)
    q.micro_batches = (q.micro_batches + q.stages - 1) / q.stages * q.stages;
  const bool alike = below(3) == 0;
  const std::int64_t spread = 1 + below(30), shortest = 1 + below(50);
  for (std::int64_t n = 0; n < q.stages * q.chunks; ++n) {
    const auto cost = [&] { return shortest + below(spread); };
    q.costs.push_back(alike && n > 0 ? q.costs[0]
                                     : ChunkCost{cost(), cost(), cost(), below(3), 7, 2});
  }
  const std::int64_t sends = below(3) * (1 + below(30)), last = q.stages * q.chunks - 1;
  for (std::int64_t n = 0; n < last && sends > 0; ++n) {
    q.forward_sends.push_back(alike ? sends : below(sends + 1));
    q.backward_sends.push_back(alike ? sends : below(sends + 1));
  }
  q.overlap_sends = below(3) > 0;
  q.validate_after_step = below(2) > 0;
  q.validation = below(9);
  q.global_reduce = below(9);
  for (std::int64_t i = 0; i < q.stages && below(5) > 0; ++i)
    q.tails.push_back({below(50), below(50)});
  if (static_cast<std::int64_t>(q.tails.size()) != q.stages)
    q.tails.clear();
  return q;
}

void expect_consistent(const PipelineProblem& q, const PipelineTimeline& line) {
  for (std::int64_t i = 0; i < q.stages; ++i) {
    const StageTimes& stage = line.stages[static_cast<std::size_t>(i)];
    EXPECT_GE(stage.bubble, 0);
    EXPECT_GE(stage.exposed, 0);
    EXPECT_EQ(stage.busy + stage.exposed + stage.tail + stage.bubble, line.period);
    EXPECT_EQ(stage.max_held, max_held(q.kind, q.stages, q.chunks, q.micro_batches, i));
    EXPECT_LE(stage.max_bytes, 7 * stage.max_held_or_waiting);
  }
  EXPECT_LE(line.period, line.makespan);
}

RC_GTEST_PROP(PipelineTimes, AreThoseOfAllWaitsSwept, (std::uint32_t seed)) {
  std::mt19937 random(seed);
  const PipelineProblem q = random_pipeline(random, 5, 12);
  const PipelineTimeline line = simulate(q);
  const auto swept = test::SweptPipeline(q, test::orders_of(q)).times();
  RC_ASSERT(swept.has_value());
  RC_ASSERT(static_cast<const PipelineTimes&>(line) == *swept);
  RC_ASSERT(makespan(q) == swept->makespan);
}

TEST(PipelineTimes, NeverDeadlockAndAreEvaluatedAsSimulated) {
  std::mt19937 random(23);
  PipelineScratch scratch;
  for (int n = 0; n < 10'000; ++n) {
    const PipelineProblem q = random_pipeline(random, 8, 16);
    const PipelineTimeline line = simulate(q);
    ASSERT_EQ(pipeline_times(q, scratch), static_cast<const PipelineTimes&>(line)) << n;
    expect_consistent(q, line);
  }
}

TEST(PipelineTimes, OfLongRunsAreThoseOfShortOnes) {
  std::mt19937 random(5);
  PipelineScratch scratch;
  for (int n = 0; n < 1500; ++n) {
    PipelineProblem q = random_pipeline(random, 5, 300);
    ASSERT_EQ(pipeline_times(q, scratch), static_cast<const PipelineTimes&>(simulate(q))) << n;
  }
}

TEST(PipelineTimes, GrowByTheLongestStageOnceStagesAreInStep) {
  PipelineScratch scratch;
  for (const PipelineKind kind : {PipelineKind::one_f_one_b, PipelineKind::zero_bubble_h1,
                                  PipelineKind::zero_bubble_h2, PipelineKind::zero_bubble_v}) {
    PipelineProblem q;
    q.kind = kind;
    q.stages = 4;
    q.chunks = kind == PipelineKind::zero_bubble_v ? 2 : 1;
    q.costs.assign(static_cast<std::size_t>(4 * q.chunks), {10, 10, 10});
    q.costs[1].forward = 12;
    q.micro_batches = 1000;
    const PipelineTimes thousand = pipeline_times(q, scratch);
    q.micro_batches = 100'000;
    const PipelineTimes more = pipeline_times(q, scratch);
    EXPECT_EQ(more.makespan - thousand.makespan, 99'000 * (30 * q.chunks + 2)) << name_of(kind);
  }
}

Nanoseconds largest(std::span<const Nanoseconds> layers, Nanoseconds first, Nanoseconds last,
                    const std::vector<std::int64_t>& cuts) {
  Nanoseconds most = 0;
  for (std::size_t k = 0; k + 1 < cuts.size(); ++k) {
    Nanoseconds sum = (k == 0 ? first : 0) + (k + 2 == cuts.size() ? last : 0);
    for (std::int64_t i = cuts[k]; i < cuts[k + 1]; ++i)
      sum += layers[static_cast<std::size_t>(i)];
    most = std::max(most, sum);
  }
  return most;
}

/// The least of the largest parts over every way to cut.
Nanoseconds best_cut(std::span<const Nanoseconds> layers, Nanoseconds first, Nanoseconds last,
                     std::int64_t parts, std::vector<std::int64_t> cuts = {0}) {
  const auto count = static_cast<std::int64_t>(layers.size());
  const std::int64_t left = parts + 1 - static_cast<std::int64_t>(cuts.size());
  if (left == 1) {
    cuts.push_back(count);
    return largest(layers, first, last, cuts);
  }
  Nanoseconds best = std::numeric_limits<Nanoseconds>::max();
  for (std::int64_t end = cuts.back() + 1; end <= count - (left - 1); ++end) {
    auto longer = cuts;
    longer.push_back(end);
    best = std::min(best, best_cut(layers, first, last, parts, longer));
  }
  return best;
}

TEST(Balance, SharesLayersOut) {
  const std::vector<Nanoseconds> ten(10, 7);
  EXPECT_EQ(balance(ten, 0, 0, 4), (std::vector<std::int64_t>{0, 2, 4, 7, 10}));
  EXPECT_EQ(balance(ten, 0, 0, 1), (std::vector<std::int64_t>{0, 10}));
  EXPECT_EQ(balance(ten, 0, 14, 4), (std::vector<std::int64_t>{0, 3, 6, 9, 10}));
  EXPECT_EQ(balance(ten, 0, 0, 10).size(), 11U);
  EXPECT_EQ(balance(std::vector<Nanoseconds>(4, 0), 0, 0, 2),
            (std::vector<std::int64_t>{0, 3, 4})); // nothing to share out: legal cuts are enough
}

TEST(Balance, RefusesWhatItCannotCut) {
  const std::vector<Nanoseconds> three(3, 1);
  EXPECT_THROW(balance(three, 0, 0, 4), InfeasibleError);
  EXPECT_THROW(balance(three, 0, 0, 0), InternalError);
  EXPECT_THROW(balance(three, -1, 0, 2), InternalError);
}

RC_GTEST_PROP(Balance, HasTheSmallestLargestPart, (std::uint32_t seed)) {
  std::mt19937 random(seed);
  std::vector<Nanoseconds> layers(1 + random() % 9);
  for (Nanoseconds& layer : layers)
    layer = random() % 20;
  const Nanoseconds first = random() % 30, last = random() % 30;
  const auto parts = static_cast<std::int64_t>(1 + random() % layers.size());
  const auto cuts = balance(layers, first, last, parts);
  RC_ASSERT(cuts.size() == static_cast<std::size_t>(parts + 1));
  for (std::size_t k = 0; k + 1 < cuts.size(); ++k)
    RC_ASSERT(cuts[k] < cuts[k + 1]);
  RC_ASSERT(largest(layers, first, last, cuts) == best_cut(layers, first, last, parts));
}

} // namespace
} // namespace monet
