// Orders of stages, bubbles and what stages hold, against the published closed forms, an
// independent check of orders, every other order of tiny pipelines, and examples by hand.
#include "cluster/pipeline_reference.hpp"
#include "level.hpp"

#include "monet/base/errors.hpp"
#include "monet/cluster/pipeline.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <set>

namespace monet {
namespace {

constexpr PipelineKind kPipelineKinds[] = {
    PipelineKind::gpipe,          PipelineKind::one_f_one_b,    PipelineKind::interleaved,
    PipelineKind::zero_bubble_h1, PipelineKind::zero_bubble_h2, PipelineKind::zero_bubble_v};

PipelineProblem equal_stages(PipelineKind kind, std::int64_t p, std::int64_t v, std::int64_t m,
                             ChunkCost cost) {
  PipelineProblem q;
  q.kind = kind;
  q.stages = p;
  q.chunks = v;
  q.micro_batches = m;
  q.costs.assign(static_cast<std::size_t>(p * v), cost);
  q.validate_after_step = splits_backward(kind);
  return q;
}

/// `check` with every legal shape of up to these sizes.
template <class Check>
void for_shapes(std::int64_t max_stages, std::int64_t max_batches, Check check) {
  for (const PipelineKind kind : kPipelineKinds) {
    for (std::int64_t p = 1; p <= max_stages; ++p) {
      for (std::int64_t v = 1; v <= 4; ++v) {
        for (std::int64_t m = 1; m <= max_batches; ++m) {
          if (!why_not(kind, p, v, m))
            check(kind, p, v, m);
        }
      }
    }
  }
}

std::string shape_text(PipelineKind kind, std::int64_t p, std::int64_t v, std::int64_t m) {
  return std::string(name_of(kind)) + " p " + std::to_string(p) + " v " + std::to_string(v) +
         " m " + std::to_string(m);
}

std::string text_of(const std::vector<PipelineTask>& order, std::int64_t chunks) {
  std::string text;
  for (const PipelineTask& task : order)
    text += (text.empty() ? "" : " ") + to_string(task, chunks);
  return text;
}

TEST(PipelineKinds, HaveNames) {
  for (std::size_t i = 0; i < std::size(kPipelineKinds); ++i)
    EXPECT_EQ(pipeline_kind_names()[i], name_of(kPipelineKinds[i]));
  EXPECT_EQ(pipeline_kind_names().size(), std::size(kPipelineKinds));
  EXPECT_EQ(pipeline_kind_names()[1], "1f1b");
}

TEST(PipelineKinds, SayWhyNot) {
  EXPECT_EQ(why_not(PipelineKind::interleaved, 4, 2, 6),
            "needs a number of micro-batches that is a multiple of the 4 stages, and 6 is not");
  EXPECT_EQ(why_not(PipelineKind::zero_bubble_v, 4, 3, 6), "has two chunks a stage, not 3");
  EXPECT_EQ(why_not(PipelineKind::one_f_one_b, 4, 2, 8),
            "has one chunk a stage, not 2 (interleaved has more)");
  EXPECT_EQ(why_not(PipelineKind::gpipe, 0, 1, 8),
            "needs at least one stage, chunk and micro-batch");
  EXPECT_EQ(why_not(PipelineKind::gpipe, 4, 1, std::int64_t{1} << 60),
            "has 4 stages of 1 chunks and 1152921504606846976 micro-batches: more than 16384 "
            "stages, or 4194304 forward passes, are too many");
  EXPECT_TRUE(why_not(PipelineKind::gpipe, 1, std::int64_t{1} << 60, 16));
  EXPECT_TRUE(why_not(PipelineKind::gpipe, (1 << 14) + 1, 1, 1));
  EXPECT_FALSE(why_not(PipelineKind::gpipe, 1 << 14, 1, 1 << 8));
  EXPECT_FALSE(why_not(PipelineKind::interleaved, 4, 2, 8));
  EXPECT_FALSE(why_not(PipelineKind::interleaved, 4, 1, 6));
  EXPECT_THROW(stage_order(PipelineKind::interleaved, 4, 2, 6, 0), InternalError);
  EXPECT_THROW(stage_order(PipelineKind::gpipe, 4, 1, 6, 4), InternalError);
}

TEST(PipelineOrder, IsAsDrawnInThePapers) {
  const auto order = [](PipelineKind kind, std::int64_t p, std::int64_t v, std::int64_t m,
                        std::int64_t stage) {
    return text_of(stage_order(kind, p, v, m, stage), v);
  };
  EXPECT_EQ(order(PipelineKind::gpipe, 2, 1, 2, 0), "F0 F1 B0 W0 B1 W1");
  EXPECT_EQ(order(PipelineKind::one_f_one_b, 3, 1, 4, 1), "F0 F1 B0 W0 F2 B1 W1 F3 B2 W2 B3 W3");
  // Megatron-LM: stage 1 of 2 has 1 * 2 forward passes of 2 chunks before the first backward one.
  EXPECT_EQ(order(PipelineKind::interleaved, 2, 2, 2, 1),
            "F0.0 F1.0 F0.1 B0.1 W0.1 F1.1 B1.1 W1.1 B0.0 W0.0 B1.0 W1.0");
  // Qi et al. 2023, figure 2: the last stage's weight gradients are p - 1 micro-batches late.
  EXPECT_EQ(order(PipelineKind::zero_bubble_h1, 3, 1, 4, 2), "F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 W2 W3");
  EXPECT_EQ(order(PipelineKind::zero_bubble_h1, 3, 1, 4, 0), "F0 F1 F2 B0 W0 F3 B1 W1 B2 W2 B3 W3");
  EXPECT_EQ(order(PipelineKind::zero_bubble_h2, 2, 1, 4, 0), "F0 F1 F2 B0 W0 F3 B1 W1 B2 W2 B3 W3");
  EXPECT_EQ(order(PipelineKind::zero_bubble_h2, 2, 1, 4, 1), "F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 W2 W3");
  EXPECT_EQ(order(PipelineKind::zero_bubble_v, 2, 2, 3, 0),
            "F0.0 F1.0 F2.0 F0.1 B0.1 W0.1 F1.1 B1.1 W1.1 B0.0 W0.0 F2.1 B2.1 W2.1 B1.0 W1.0 "
            "B2.0 W2.0");
}

TEST(PipelineOrder, PutsPartsWhereTheKindSays) {
  for (const PipelineKind kind : {PipelineKind::interleaved, PipelineKind::zero_bubble_v}) {
    for (std::int64_t i = 0; i < 4; ++i) {
      EXPECT_EQ(part_of(kind, 4, i, 0), i);
      EXPECT_EQ(part_of(kind, 4, i, 1), kind == PipelineKind::interleaved ? 4 + i : 7 - i);
      for (std::int64_t c = 0; c < 2; ++c)
        EXPECT_EQ(stage_of_part(kind, 4, part_of(kind, 4, i, c)), i);
    }
  }
}

/// Every pass once, each after what it needs on its stage, without a split in pairs; and no
/// deadlock.
void expect_legal(const PipelineProblem& q, const test::PipelineOrders& orders) {
  for (const auto& order : orders) {
    std::set<PipelineTask> done;
    for (std::size_t n = 0; n < order.size(); ++n) {
      const PipelineTask& task = order[n];
      if (task.pass == PipelinePass::backward) {
        EXPECT_TRUE(done.contains({PipelinePass::forward, task.micro_batch, task.chunk}));
      }
      if (task.pass == PipelinePass::weight) {
        EXPECT_TRUE(done.contains({PipelinePass::backward, task.micro_batch, task.chunk}));
        if (!splits_backward(q.kind)) {
          EXPECT_EQ(order[n - 1],
                    (PipelineTask{PipelinePass::backward, task.micro_batch, task.chunk}));
        }
      }
      EXPECT_TRUE(done.insert(task).second) << "twice: " << to_string(task, q.chunks);
    }
    EXPECT_EQ(done.size(), static_cast<std::size_t>(3 * q.micro_batches * q.chunks));
    for (const PipelineTask& task : done) {
      EXPECT_TRUE(task.micro_batch >= 0 && task.micro_batch < q.micro_batches);
      EXPECT_TRUE(task.chunk >= 0 && task.chunk < q.chunks);
    }
  }
  EXPECT_TRUE(test::SweptPipeline(q, orders).times()) << "deadlock";
}

TEST(PipelineOrder, IsCompleteAndLegal) {
  for_shapes(6, 14, [](PipelineKind kind, std::int64_t p, std::int64_t v, std::int64_t m) {
    const PipelineProblem q = equal_stages(kind, p, v, m, {1, 1, 1});
    SCOPED_TRACE(shape_text(kind, p, v, m));
    expect_legal(q, test::orders_of(q));
  });
  const PipelineProblem large = equal_stages(PipelineKind::interleaved, 16, 5, 48, {1, 1, 1});
  expect_legal(large, test::orders_of(large));
}

/// The table of docs/explanation/pipelines.md; nothing where it says nothing.
std::optional<Nanoseconds> published_bubble(PipelineKind kind, std::int64_t p, std::int64_t v,
                                            std::int64_t m, const ChunkCost& chunk) {
  const Nanoseconds f = chunk.forward, b = chunk.backward_input, w = chunk.backward_weight;
  switch (kind) {
  case PipelineKind::gpipe:
    if (v > 1 && m < p)
      return std::nullopt;
    return (p - 1) * (f + b + w); // costs are a chunk's: the stage's, divided by v
  case PipelineKind::one_f_one_b:
  case PipelineKind::interleaved:
    return (p - 1) * (f + b + w);
  case PipelineKind::zero_bubble_h1: // F + B - W, where W is not longer than F
    return m < p ? std::nullopt : std::optional((p - 1) * std::max(b, f + b - w));
  case PipelineKind::zero_bubble_h2: // F + B - 2W, likewise, where that is not negative
    return m < 2 * p - 1
               ? std::nullopt
               : std::optional((p - 1) * std::max({Nanoseconds{0}, b - f, f + b - 2 * w}));
  case PipelineKind::zero_bubble_v:
    return m < 2 * p - 1 || f != b || b != w ? std::nullopt : std::optional(Nanoseconds{0});
  }
  return std::nullopt;
}

TEST(PipelineBubble, IsWhatPapersSay) {
  std::int64_t compared = 0;
  for_shapes(6, 24, [&](PipelineKind kind, std::int64_t p, std::int64_t v, std::int64_t m) {
    for (const ChunkCost& cost : {ChunkCost{1, 1, 1}, ChunkCost{20, 21, 19}, ChunkCost{10, 20, 3},
                                  ChunkCost{30, 10, 25}, ChunkCost{10, 10, 30}}) {
      const auto bubble = published_bubble(kind, p, v, m, cost);
      if (!bubble)
        continue;
      ++compared;
      const PipelineTimeline line = simulate(equal_stages(kind, p, v, m, cost));
      const Nanoseconds work = m * v * (cost.forward + cost.backward_input + cost.backward_weight);
      EXPECT_EQ(line.period, work + *bubble) << shape_text(kind, p, v, m);
      for (const StageTimes& stage : line.stages) {
        EXPECT_EQ(stage.busy, work);
        EXPECT_EQ(stage.bubble, *bubble);
        EXPECT_EQ(stage.exposed, 0);
      }
    }
  });
  EXPECT_GT(compared, 2000);
}

TEST(PipelineBubble, OfZeroBubbleIsInTheMakespanOfOneStepAlone) {
  // The last stage begins (p-1) F late whatever the order is, and only the next step fills that.
  PipelineProblem q = equal_stages(PipelineKind::zero_bubble_h2, 4, 1, 8, {5, 5, 5});
  EXPECT_EQ(simulate(q).period, 8 * 15);
  EXPECT_EQ(simulate(q).makespan, 8 * 15 + 3 * 5);
  q.validate_after_step = false;
  EXPECT_EQ(simulate(q).period, 8 * 15 + 3 * 5);
}

TEST(PipelineMemory, IsWhatPapersSay) {
  for_shapes(6, 24, [](PipelineKind kind, std::int64_t p, std::int64_t v, std::int64_t m) {
    const PipelineTimeline line = simulate(equal_stages(kind, p, v, m, {2, 3, 1}));
    for (std::int64_t i = 0; i < p; ++i) {
      const StageTimes& stage = line.stages[static_cast<std::size_t>(i)];
      EXPECT_EQ(stage.max_held, max_held(kind, p, v, m, i)) << shape_text(kind, p, v, m);
      // With what weight gradients wait for, every stage holds what stage 0 of 1F1B does, or H2.
      if (kind == PipelineKind::zero_bubble_h1) {
        EXPECT_EQ(stage.max_held_or_waiting, std::min(m, p));
      }
      if (kind == PipelineKind::zero_bubble_h2) {
        EXPECT_EQ(stage.max_held_or_waiting, std::min(m, 2 * p - 1));
      }
      if (kind == PipelineKind::zero_bubble_v) {
        EXPECT_EQ(stage.max_held_or_waiting, m < 2 * p - 1 ? stage.max_held : 2 * p);
      }
    }
  });
  // Korthikanti et al. 2022: p (1 + (p-1)/(pv)) micro-batches of a stage's layers on stage 0.
  for (const std::int64_t p : {2, 4, 8}) {
    for (const std::int64_t v : {2, 3, 5})
      EXPECT_EQ(max_held(PipelineKind::interleaved, p, v, 8 * p, 0), p * v + p - 1);
  }
}

/// All orders of one stage in which passes of a kind come in `batches`' order, with at most `most`
/// micro-batches held (with those that weight gradients wait for).
struct StageOrders {
  std::int64_t batches, most;
  bool split;
  std::vector<std::vector<PipelineTask>> found;
  std::vector<PipelineTask> order;

  void extend(std::int64_t f, std::int64_t b, std::int64_t w) {
    if (w == batches)
      found.push_back(order);
    const auto with = [&](std::vector<PipelineTask> tasks, std::int64_t f2, std::int64_t b2,
                          std::int64_t w2) {
      order.insert(order.end(), tasks.begin(), tasks.end());
      extend(f2, b2, w2);
      order.resize(order.size() - tasks.size());
    };
    if (f < batches && f - w < most)
      with({{PipelinePass::forward, f, 0}}, f + 1, b, w);
    if (b < f && split)
      with({{PipelinePass::backward, b, 0}}, f, b + 1, w);
    if (b < f && !split)
      with({{PipelinePass::backward, b, 0}, {PipelinePass::weight, b, 0}}, f, b + 1, w + 1);
    if (w < b && split)
      with({{PipelinePass::weight, w, 0}}, f, b, w + 1);
  }
};

/// The shortest period of all orders whose stages hold at most `most` each.
Nanoseconds best_period(const PipelineProblem& q, const std::vector<std::int64_t>& most) {
  std::vector<std::vector<std::vector<PipelineTask>>> choices;
  for (const std::int64_t limit : most) {
    StageOrders orders{q.micro_batches, limit, splits_backward(q.kind), {}, {}};
    orders.extend(0, 0, 0);
    choices.push_back(std::move(orders.found));
  }
  Nanoseconds best = std::numeric_limits<Nanoseconds>::max();
  std::vector<std::size_t> pick(choices.size(), 0);
  test::PipelineOrders orders(choices.size());
  for (;;) {
    for (std::size_t i = 0; i < pick.size(); ++i)
      orders[i] = choices[i][pick[i]];
    if (const auto times = test::SweptPipeline(q, orders).times())
      best = std::min(best, times->period);
    std::size_t i = 0;
    while (i < pick.size() && ++pick[i] == choices[i].size())
      pick[i++] = 0;
    if (i == pick.size())
      return best;
  }
}

TEST(PipelineBubble, OfWholeBackwardPassesIsBeatenByNoOrder) {
  for (const ChunkCost& cost : {ChunkCost{2, 2, 2}, ChunkCost{3, 1, 1}, ChunkCost{1, 2, 3}}) {
    for (std::int64_t p = 1; p <= 3; ++p) {
      for (std::int64_t m = 1; m <= 3; ++m) {
        const PipelineProblem q = equal_stages(PipelineKind::one_f_one_b, p, 1, m, cost);
        const Nanoseconds best = best_period(q, std::vector(static_cast<std::size_t>(p), m));
        EXPECT_EQ(simulate(q).period, best); // with less memory: 1F1B has min(m, p - i)
        EXPECT_EQ(simulate(equal_stages(PipelineKind::gpipe, p, 1, m, cost)).period, best);
      }
    }
  }
}

TEST(PipelineBubble, OfZeroBubbleIsBeatenByNoOrderOfItsMemory) {
  MONET_FROM_LEVEL(full);
  for (const ChunkCost& cost : {ChunkCost{2, 2, 2}, ChunkCost{2, 3, 4}}) {
    for (const auto& [kind, p, m] :
         {std::tuple(PipelineKind::zero_bubble_h1, std::int64_t{2}, std::int64_t{3}),
          std::tuple(PipelineKind::zero_bubble_h1, std::int64_t{3}, std::int64_t{3}),
          std::tuple(PipelineKind::zero_bubble_h2, std::int64_t{2}, std::int64_t{3})}) {
      const PipelineProblem q = equal_stages(kind, p, 1, m, cost);
      const std::int64_t most = kind == PipelineKind::zero_bubble_h1 ? p : 2 * p - 1;
      EXPECT_EQ(simulate(q).period, best_period(q, std::vector(static_cast<std::size_t>(p), most)))
          << shape_text(kind, p, 1, m) << " W " << cost.backward_weight;
    }
  }
}

} // namespace
} // namespace monet
