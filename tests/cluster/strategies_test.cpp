// What ranks share of attention, of casts of weights, of states and of tied tables, against closed
// forms; and sizes at which nothing may end.
#include "cluster/a100s.hpp"
#include "cluster/shared/collectives.hpp"
#include "level.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/warnings.hpp"
#include "monet/cluster/planner.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace monet {

namespace MONET_TEST_FILE {

constexpr std::int64_t kTokens = 512;
constexpr std::int64_t kHidden = 512;
constexpr std::int64_t kHeads = 8;
constexpr std::int64_t kFfn = 1024;
constexpr std::int64_t kLayers = 4;
constexpr std::int64_t kWords = 1024;

TransformerShape llama(std::int64_t kv_heads = kHeads) {
  return {.layers = kLayers,
          .hidden = kHidden,
          .heads = kHeads,
          .kv_heads = kv_heads,
          .ffn = kFfn,
          .sequence = kTokens,
          .vocabulary = kWords,
          .norm = TransformerShape::Norm::rms,
          .activation = TransformerShape::Activation::swiglu,
          .positions = TransformerShape::Positions::none,
          .biases = false,
          .tied = false};
}

A100s fused(std::int64_t devices, const TransformerShape& shape) {
  A100s made(devices, shape);
  made.workload.training.attention = AttentionForm::fused;
  return made;
}

const BlockCost& layer(const ClusterStep& step) {
  return step.blocks.at(2); // begin, h.0, h.1 ...
}

std::int64_t bytes(const StageResult& stage, MemoryOwner owner) {
  return stage.memory.bytes[static_cast<std::size_t>(owner)];
}

/// Of a layer's products: 2 operations a weight and token, scores and context of all tokens.
double forward_flops(double scores) {
  constexpr double kWeights = 4.0 * kHidden * kHidden + 3.0 * kHidden * kFfn;
  return 2 * kTokens * kWeights + scores * 2 * 2 * kTokens * kTokens * kHidden;
}

} // namespace MONET_TEST_FILE

using namespace MONET_TEST_FILE;

TEST(Strategies, FusedAttentionKeepsKeysAndValuesOnceAGroup) {
  for (const std::int64_t kv : {1, 2, 8}) {
    const BlockCost one = layer(fused(1, llama(kv)).model({}));
    // Inputs of two norms, three products and the residual, of gated products three and a half.
    const std::int64_t rows = 5 * kHidden + 4 * kFfn + (kHeads + 2 * kv) * kHidden / kHeads;
    const std::int64_t statistics = 4 * kTokens * (2 + kHeads); // of norms and rows of scores
    EXPECT_EQ(one.stored_bytes, 2 * kTokens * rows + statistics) << kv;
  }
}

TEST(Strategies, FusedAttentionOfGroupsTakesWhatTheirHeadsTake) {
  const auto forward = [](std::int64_t kv, AttentionForm form) {
    A100s one(1, llama(kv));
    one.device.table->host_ns_per_kernel = 0;
    one.workload.training.attention = form;
    return layer(one.model({.micro_batch = 8, .global_batch = 8})).forward;
  };
  EXPECT_LT(forward(2, AttentionForm::fused), forward(8, AttentionForm::fused));
  EXPECT_LT(forward(2, AttentionForm::fused), forward(2, AttentionForm::exported));
}

TEST(Strategies, TensorRanksShareWeightsThatProductsCast) {
  using Scaling = ScaledProducts::Scaling;
  const auto with = [](const Precision& precision) {
    A100s two(2, llama());
    two.device.table->peak_tflops[static_cast<std::size_t>(KernelType::fp8)] = 600;
    two.workload.training.precision = precision;
    const std::int64_t all =
        layer(two.model({.axes = {{AxisRole::data, 2}}, .global_batch = 2})).parameters;
    const std::int64_t own =
        layer(two.model({.axes = {{AxisRole::tensor, 2}}, .global_batch = 1})).parameters;
    EXPECT_EQ(all, 2 * kHidden + 4 * kHidden * kHidden + 3 * kHidden * kFfn);
    EXPECT_EQ(own, 2 * kHidden + (4 * kHidden * kHidden + 3 * kHidden * kFfn) / 2);
  };
  Precision autocast;
  autocast.weights = ElementType::fp32;
  autocast.activations = ElementType::bf16;
  with(autocast);
  for (const Scaling scaling : {Scaling::delayed, Scaling::current}) {
    Precision fp8 = mixed_precision().precision;
    fp8.products.emplace();
    fp8.products->scaling = scaling;
    with(fp8);
  }
}

TEST(Strategies, ACausalMaskHalvesTheScoresOfContextRanksToo) {
  const auto forward = [](std::int64_t context, bool causal) {
    TransformerShape shape = llama();
    shape.sequence = 8192;
    shape.causal = causal;
    A100s some = fused(context, shape);
    some.device.table->host_ns_per_kernel = 0;
    const BlockCost found =
        layer(some.model({.axes = {{AxisRole::context, context}}, .global_batch = 1}));
    return static_cast<double>(found.forward - found.collectives);
  };
  const double saved = forward(1, false) - forward(1, true);
  EXPECT_GT(saved, 0.1 * forward(1, false));
  EXPECT_NEAR(forward(4, false) - forward(4, true), saved / 4,
              0.25 * saved / 4); // products of other shapes
}

TEST(Strategies, UtilisationCountsNeitherMaskedScoresNorThoseMadeAgain) {
  for (const bool causal : {false, true}) {
    TransformerShape shape = llama();
    shape.causal = causal;
    const double share = causal ? 0.5 : 1;
    const BlockCost kernel = layer(fused(1, shape).model({}));
    const BlockCost exported = layer(A100s(1, shape).model({}));
    // Twice as much backward. The kernel's gradient makes its scores again: 1 of 2 products more.
    const double scores = forward_flops(1) - forward_flops(0);
    for (const BlockCost& found : {kernel, exported}) {
      EXPECT_DOUBLE_EQ(found.model_flops, 3 * forward_flops(share));
      EXPECT_DOUBLE_EQ(found.model_flops + found.masked_flops, 3 * forward_flops(1));
    }
    EXPECT_DOUBLE_EQ(exported.hardware_flops, 3 * forward_flops(1));
    EXPECT_DOUBLE_EQ(kernel.hardware_flops, 3 * forward_flops(share) + share * scores / 2);
  }
}

/// Of a token: its products with weights at as many experts as it chose, scores and context.
TEST(Strategies, UtilisationOfExpertsCountsNoPaddingAndNoDispatch) {
  for (const double capacity_factor : {1.0, 1.25, 4.0}) {
    TransformerShape shape = llama();
    shape.experts = 8;
    shape.topk = 2;
    shape.capacity_factor = capacity_factor;
    const BlockCost found = layer(A100s(1, shape).model({}));
    constexpr double kWeights = 4.0 * kHidden * kHidden + 2 * 3.0 * kHidden * kFfn + 8.0 * kHidden;
    const double flops = 6 * kTokens * (kWeights + 2.0 * kTokens * kHidden);
    EXPECT_NEAR(found.model_flops + found.masked_flops, flops, 1e-9 * flops) << capacity_factor;
    EXPECT_GT(found.hardware_flops, flops);
  }
}

TEST(Strategies, UtilisationOfHardwareIsAtMostOne) {
  for (const auto recompute :
       {RecomputeKind::none, RecomputeKind::selective, RecomputeKind::full}) {
    TransformerShape shape = llama();
    shape.sequence = 1 << 15;
    const ClusterStep step = fused(1, shape).model({.recompute = recompute});
    EXPECT_LE(step.hfu, 1);
    EXPECT_LT(step.mfu, step.hfu);
    EXPECT_LT(step.mfu, step.mfu_with_masked);
  }
}

TEST(Strategies, ZeroSharesStatesOverRanksOfTokensToo) {
  const A100s eight = fused(8, llama());
  const std::int64_t p =
      eight.model({.axes = {{AxisRole::data, 8}}, .global_batch = 8}).stages.front().parameters;
  for (const auto& [data, context] : {std::pair(8, 1), std::pair(2, 4), std::pair(1, 8)}) {
    for (const int zero : {1, 2, 3}) {
      const StageResult stage = eight
                                    .model({.axes = {{AxisRole::data, data},
                                                     {AxisRole::context, context},
                                                     {AxisRole::zero, zero}},
                                            .global_batch = data})
                                    .stages.front();
      EXPECT_EQ(bytes(stage, MemoryOwner::optimizer_state), 12 * p / 8);
      EXPECT_EQ(bytes(stage, MemoryOwner::gradients), zero < 2 ? 2 * p : 2 * p / 8);
      EXPECT_EQ(bytes(stage, MemoryOwner::parameters), zero < 3 ? 2 * p : 2 * p / 8);
    }
  }
}

TEST(Strategies, ATiedTableIsAddedUpBetweenTheStagesThatHaveIt) {
  TransformerShape tied = llama();
  tied.tied = true;
  for (const std::int64_t data : {1, 2}) {
    const A100s with(4 * data, tied);
    const ParallelStrategy strategy{.axes = {{AxisRole::data, data}, {AxisRole::pipeline, 4}},
                                    .global_batch = 8 * data};
    const ClusterStep step = with.model(strategy);
    const ClusterStep apart = A100s(4 * data, llama()).model(strategy);
    const GroupAxis group{3 * data, 2};
    const double table = 2.0 * kWords * kHidden;
    const Nanoseconds exchange =
        collective_cost(place(with.cluster, std::span(&group, 1)), Collective::all_reduce, table)
            .time;
    EXPECT_GE(step.time, apart.time + exchange) << data;
    EXPECT_LE(step.time, apart.time + exchange + apart.time / 1000) << data;
    for (const std::size_t stage : {std::size_t{0}, std::size_t{3}})
      EXPECT_NEAR(static_cast<double>(step.stages[stage].share.gradients),
                  static_cast<double>(apart.stages[stage].share.gradients + exchange), 5)
          << data;
    EXPECT_EQ(step.blocks.back().backward_weight, apart.blocks.back().backward_weight);
  }
}

TEST(Strategies, OneStageUpdatesATiedTableOnce) {
  for (const bool master : {false, true}) {
    const auto update = [&](bool tied) {
      TransformerShape shape = llama();
      shape.tied = tied;
      A100s one(1, shape);
      if (!master)
        one.workload.training.precision = {};
      const ClusterStep step = one.model({});
      return std::pair(static_cast<double>(step.stages[0].share.update),
                       static_cast<double>(step.stages[0].parameters));
    };
    const auto [tied, fewer] = update(true);
    const auto [apart, all] = update(false);
    EXPECT_NEAR(tied / apart, fewer / all, 0.01) << master;
  }
}

TEST(Strategies, OffloadNeverNeedsMoreThanNone) {
  std::mt19937_64 random(5);
  const auto pick = [&](std::initializer_list<std::int64_t> from) {
    return *(from.begin() + static_cast<std::ptrdiff_t>(random() % from.size()));
  };
  for (int i = 0; i < test::cases(20, 200, 200); ++i) {
    TransformerShape shape = llama();
    shape.layers = pick({1, 2, 4, 8});
    shape.vocabulary = pick({64, 1024, 32768});
    const std::int64_t pipeline = pick({1, 1, 2});
    if (shape.layers % pipeline != 0)
      continue;
    ParallelStrategy strategy{.axes = {{AxisRole::pipeline, pipeline}},
                              .micro_batch = pick({1, 4}),
                              .global_batch = 16,
                              .recompute =
                                  random() % 2 == 0 ? RecomputeKind::none : RecomputeKind::full};
    const A100s some(pipeline, shape);
    const std::int64_t none = some.model(strategy).largest_memory;
    for (const OffloadKind kind :
         {OffloadKind::states, OffloadKind::activations, OffloadKind::both}) {
      strategy.offload = kind;
      EXPECT_LE(some.model(strategy).largest_memory, none) << to_string(strategy);
    }
  }
}

TEST(Strategies, StatesOnTheirWayAreThoseOfThreeBlocksInARow) {
  TransformerShape shape = llama();
  shape.vocabulary = 32768; // the embedding is larger than all layers
  const A100s one(1, shape);
  const ClusterStep step = one.model({.offload = OffloadKind::states});
  const std::int64_t begin = step.blocks[0].state_bytes;
  const std::int64_t block = layer(step).state_bytes;
  EXPECT_EQ(step.blocks.back().state_bytes, begin + 12 * kHidden); // logits and a norm
  EXPECT_EQ(bytes(step.stages[0], MemoryOwner::optimizer_state), begin + 12 * kHidden + 2 * block);
}

TEST(Strategies, LongSequencesOnManyRanksAreModelled) {
  TransformerShape shape = llama();
  shape.heads = shape.hidden / 64;
  shape.kv_heads = shape.heads;
  shape.sequence = std::int64_t{1} << 20;
  for (const std::int64_t data : {1, 64, 1024}) {
    const A100s some = fused(16 * data, shape);
    const ParallelStrategy strategy{
        .axes = {{AxisRole::data, data}, {AxisRole::context, 16}, {AxisRole::zero, 1}},
        .global_batch = data};
    EXPECT_GT(some.model(strategy).time, 0) << data;
  }
}

TEST(Strategies, OneThatIsTooLargeEndsNoSearch) {
  TransformerShape shape = llama();
  shape.sequence = std::int64_t{1} << 22;
  const A100s some = fused(1 << 14, shape);
  StrategySpace space{.axes = {{AxisRole::tensor, {1}},
                               {AxisRole::pipeline, {1}},
                               {AxisRole::virtual_stages, {1}},
                               {AxisRole::context, {1 << 4, 1 << 8}},
                               {AxisRole::expert, {1}},
                               {AxisRole::zero, {3}},
                               {AxisRole::sequence, {0}}},
                      .micro_batch = {1},
                      .schedule = {PipelineKind::one_f_one_b},
                      .recompute = {RecomputeKind::none},
                      .offload = {OffloadKind::none},
                      .global_batch = 1 << 10};
  WarningScope scope;
  const PlannerResult found =
      plan_parallelism(some.cluster, some.device, some.workload, space, {}, {});
  ASSERT_TRUE(found.best || found.smallest);
  EXPECT_EQ(found.counts.all(), 2);
  EXPECT_EQ(found.counts.impossible, 1);
  ASSERT_EQ(scope.warnings().size(), 1U);
  EXPECT_EQ(scope.warnings()[0].what.find("1 of 2 strategies cannot be modelled"), 0U)
      << scope.warnings()[0].what;
}

} // namespace monet
