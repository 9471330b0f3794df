#include "monet/base/errors.hpp"
#include "monet/optimise/recompute_problem.hpp"

#include <gtest/gtest.h>

namespace monet {
namespace {

/// a -> b -> loss, then backward of b and a, which read what the forward part made. 10 bytes each,
/// a weight of 5.
RecomputeProblem two_layers() {
  RecomputeProblem p;
  const auto buffer = [&](const char* name, std::int64_t bytes, std::optional<std::uint32_t> by) {
    p.buffers.push_back({name, bytes, by, false});
  };
  buffer("weight", 5, std::nullopt);
  buffer("a", 10, 0);
  buffer("b", 10, 1);
  buffer("db", 10, 2);
  buffer("da", 10, 3);
  p.buffers.back().kept = true;
  p.ops = {{"a", 3, 0, true, {0}, {1}},
           {"b", 4, 0, true, {1}, {2}},
           {"db", 5, 0, true, {2}, {3}},
           {"da", 6, 7, true, {1, 3}, {4}}};
  verify(p);
  return p;
}

TEST(RecomputePlan, StoringEverything) {
  const RecomputeProblem p = two_layers();
  const RecomputeOutcome outcome = replay(p, store_everything(p));
  EXPECT_EQ(outcome.cost, 18);
  // weight; a, b; a, b, db; a, db, da and 7 of scratch
  EXPECT_EQ(outcome.live_bytes, (std::vector<std::int64_t>{15, 25, 35, 42}));
  EXPECT_EQ(outcome.peak_bytes, 42);
  EXPECT_EQ(outcome.peak_run, 3U);
}

TEST(RecomputePlan, ARunAgainLetsItsBufferGoInBetween) {
  const RecomputeProblem p = two_layers();
  const RecomputeOutcome outcome = replay(p, {{0, 1, 2, 0, 3}});
  EXPECT_EQ(outcome.cost, 21);
  EXPECT_EQ(outcome.live_bytes, (std::vector<std::int64_t>{15, 25, 25, 25, 42}));
}

TEST(RecomputePlan, AnAnswerIsWhatItSaysAndBeatsNoBound) {
  const RecomputeProblem p = two_layers();
  RecomputeResult found;
  EXPECT_NO_THROW(verify(p, found)); // no plan, no claim
  found.plan = RecomputePlan{{0, 1, 2, 0, 3}};
  found.outcome = replay(p, *found.plan);
  found.bound = 21;
  EXPECT_NO_THROW(verify(p, found));
  found.bound = 22;
  EXPECT_THROW(verify(p, found), InternalError);
  found.bound = 18;
  --found.outcome.peak_bytes;
  EXPECT_THROW(verify(p, found), InternalError);
  found.outcome = replay(p, store_everything(p));
  EXPECT_THROW(verify(p, found), InternalError);
}

TEST(RecomputePlan, RefusesWhatIsNoPlan) {
  RecomputeProblem p = two_layers();
  EXPECT_THROW(replay(p, {{0, 1, 2}}), InternalError);
  EXPECT_THROW(replay(p, {{1, 0, 2, 3}}), InternalError);
  EXPECT_THROW(replay(p, {{0, 1, 2, 3, 4}}), InternalError);
  p.ops[0].repeatable = false;
  EXPECT_THROW(replay(p, {{0, 1, 2, 0, 3}}), InternalError);
}

TEST(RecomputeProblem, PeakBoundIsTheLargestOperatorOrWhatIsKept) {
  RecomputeProblem p = two_layers();
  EXPECT_EQ(peak_bound(p), 42);
  p.ops[3].scratch = 0;
  EXPECT_EQ(peak_bound(p), 35);
}

} // namespace
} // namespace monet
