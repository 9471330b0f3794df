// Steps of whole clusters: bytes as published formulas say them, shares that add up, and one device
// as it is without a cluster.
#include "cluster/a100s.hpp"
#include "cluster/networks.hpp"
#include "cluster/step/step.hpp"
#include "level.hpp"
#include "workload/shared/views.hpp"

#include "monet/base/errors.hpp"
#include "monet/cluster/cluster_step.hpp"
#include "monet/core_cost/core_cost.hpp"
#include "monet/hardware/read_hardware.hpp"
#include "monet/optimise/step_mode.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace monet {

namespace {

constexpr std::int64_t kTokens = 256;
constexpr std::int64_t kHidden = 512;
constexpr std::int64_t kHeads = 8;

TransformerShape gpt(std::int64_t layers) {
  return {.layers = layers,
          .hidden = kHidden,
          .heads = kHeads,
          .sequence = kTokens,
          .vocabulary = 1024,
          .dropout = 0.1};
}

std::int64_t bytes(const StageMemory& memory, MemoryOwner owner) {
  return memory.bytes[static_cast<std::size_t>(owner)];
}

const BlockCost& layer(const ClusterStep& step) {
  return step.blocks.at(2); // begin, h.0, h.1 ...
}

Nanoseconds sum_of(const StageShare& share) {
  return share.compute + share.recompute + share.host + share.collectives + share.offload +
         share.sends + share.gradients + share.update + share.bubble;
}

} // namespace

TEST(ClusterModel, ShardsStatesGradientsAndParametersByTheirFormulas) {
  const A100s eight(8, gpt(4));
  const auto memory = [&](int zero) {
    const ClusterStep step =
        eight.model({.axes = {{AxisRole::data, 8}, {AxisRole::zero, zero}}, .global_batch = 8});
    return step.stages.front();
  };
  const StageResult whole = memory(0);
  const std::int64_t p = whole.parameters;
  const auto states_of = [&](const StageResult& stage) {
    return bytes(stage.memory, MemoryOwner::parameters) +
           bytes(stage.memory, MemoryOwner::gradients) +
           bytes(stage.memory, MemoryOwner::optimizer_state);
  };
  const std::int64_t mask = kTokens * kTokens; // causal, one byte each, is no parameter
  EXPECT_EQ(states_of(whole), 16 * p) << mask;
  EXPECT_EQ(states_of(memory(1)), 4 * p + 12 * p / 8);
  EXPECT_EQ(states_of(memory(2)), 2 * p + 14 * p / 8);
  EXPECT_EQ(states_of(memory(3)), 16 * p / 8);
}

/// The head reads the table that ZeRO gathers for the embedding. It is no activation that the first
/// layer would store to compute itself again, nor one that stages send.
TEST(ClusterModel, AGatheredTiedTableIsNotHandedOn) {
  TransformerShape shape = gpt(4);
  shape.tied = true;
  shape.vocabulary = 8192; // more bytes than a layer's input
  const A100s four(4, shape);
  for (const std::int64_t stages : {1, 2}) {
    const auto model = [&](int zero) {
      ParallelStrategy strategy{.axes = {{AxisRole::data, 4 / stages},
                                         {AxisRole::pipeline, stages},
                                         {AxisRole::zero, zero}},
                                .global_batch = 8};
      strategy.recompute = RecomputeKind::full;
      return four.model(strategy);
    };
    const ClusterStep whole = model(0);
    const ClusterStep gathered = model(3);
    EXPECT_EQ(gathered.blocks.front().output_bytes, whole.blocks.front().output_bytes);
    for (std::size_t i = 0; i < whole.stages.size(); ++i)
      EXPECT_EQ(bytes(gathered.stages[i].memory, MemoryOwner::stored_activations),
                bytes(whole.stages[i].memory, MemoryOwner::stored_activations));
  }
}

TEST(ClusterModel, ShardsStatesThatNoAxisDivides) {
  const A100s seven(7, gpt(4)); // of 512 and 1,024 numbers
  for (const int zero : {1, 2, 3}) {
    const StageResult stage =
        seven.model({.axes = {{AxisRole::data, 7}, {AxisRole::zero, zero}}, .global_batch = 7})
            .stages.front();
    const std::int64_t p = stage.parameters;
    const auto near = [&](MemoryOwner owner, std::int64_t expected) {
      const std::int64_t found = bytes(stage.memory, owner);
      EXPECT_GE(found, expected);
      EXPECT_LE(found, expected + 1000); // a byte or two of each tensor
    };
    near(MemoryOwner::optimizer_state, 12 * p / 7);
    near(MemoryOwner::gradients, zero < 2 ? 2 * p : 2 * p / 7);
    near(MemoryOwner::parameters, zero < 3 ? 2 * p : 2 * p / 7);
  }
}

TEST(ClusterModel, StoresWhatKorthikantiCounts) {
  constexpr std::int64_t kBatch = 2;
  constexpr std::int64_t s = kTokens, b = kBatch, h = kHidden, a = kHeads;
  const std::int64_t sbh = s * b * h;
  const std::int64_t statistics = 2 * 2 * 4 * s * b; // mean and deviation of two norms, fp32
  for (const std::int64_t t : {1, 2, 4, 8}) {
    const A100s some(t, gpt(4));
    ParallelStrategy strategy{.axes = {{AxisRole::tensor, t}}, .micro_batch = b, .global_batch = b};
    EXPECT_EQ(layer(some.model(strategy)).stored_bytes,
              sbh * 10 + sbh * 24 / t + 5 * a * s * s * b / t + statistics)
        << t;
    if (t == 1)
      continue;
    strategy.axes[AxisRole::sequence] = 1;
    EXPECT_EQ(layer(some.model(strategy)).stored_bytes,
              (sbh * 34 + 5 * a * s * s * b + statistics) / t)
        << t;
    strategy.recompute = RecomputeKind::selective;
    EXPECT_EQ(layer(some.model(strategy)).stored_bytes, (34 * sbh + statistics) / t) << t;
    strategy.recompute = RecomputeKind::full;
    EXPECT_EQ(layer(some.model(strategy)).stored_bytes, 2 * sbh / t) << t;
  }
}

TEST(ClusterModel, InterleavingHoldsMoreByItsFactor) {
  const A100s eight(4, gpt(16));
  const auto stored = [&](std::int64_t v) {
    ParallelStrategy strategy{.axes = {{AxisRole::pipeline, 4}, {AxisRole::virtual_stages, v}},
                              .schedule =
                                  v == 1 ? PipelineKind::one_f_one_b : PipelineKind::interleaved,
                              .global_batch = 16};
    const ClusterStep step = eight.model(strategy);
    return static_cast<double>(step.stages.front().memory.in_flight) *
           static_cast<double>(step.stages.front().blocks) / static_cast<double>(v);
  };
  // p micro-batches of a stage's layers, times 1 + (p - 1) / (p v).
  EXPECT_NEAR(stored(2) / stored(1), 1 + 3.0 / 8, 1e-12);
  EXPECT_NEAR(stored(4) / stored(1), 1 + 3.0 / 16, 1e-12);
}

/// One block: 100 ns of kernels and 20 ns of collectives forward, the same again, and 200 ns and 20
/// ns backward. Two micro-batches take 2 * (120 + 120 + 220) = 920 ns: 600 ns of kernels, 200 ns of
/// kernels again and 120 ns of collectives.
TEST(ClusterModel, ShareOfRecomputationHasNoCollectives) {
  const A100s one(1, gpt(4));
  cluster_cost::Profile profile;
  profile.blocks = {{.name = "only",
                     .forward = {.compute = 100, .exchange = 20},
                     .recompute = {.compute = 100, .exchange = 20},
                     .backward = {.compute = 200, .exchange = 20}}};
  profile.sequence = {0};
  const auto share = [&] {
    const ParallelStrategy strategy{.global_batch = 2};
    return cluster_step::build_step(one.cluster, one.device, profile, strategy, 0)
        .stages.front()
        .share;
  };
  EXPECT_EQ(share().compute, 600);
  EXPECT_EQ(share().recompute, 200);
  EXPECT_EQ(share().collectives, 120);
  EXPECT_EQ(share().host, 0);
  // The host launches 150 ns forward and again, and 200 ns backward: the device waits for 30 ns
  // forward, and for 350 - 340 = 10 ns in the passes after it.
  profile.blocks[0].forward.host = profile.blocks[0].recompute.host = 150;
  profile.blocks[0].backward.host = 200;
  EXPECT_EQ(share().compute, 600);
  EXPECT_EQ(share().recompute, 200);
  EXPECT_EQ(share().collectives, 120);
  EXPECT_EQ(share().host, 2 * (30 + 10));
}

TEST(ClusterModel, SharesOfAStageAddUpToTheStep) {
  const A100s some(16, gpt(8));
  for (const auto recompute :
       {RecomputeKind::none, RecomputeKind::selective, RecomputeKind::full}) {
    for (const bool overlap : {false, true}) {
      const ParallelStrategy strategy{.axes = {{AxisRole::data, 2},
                                               {AxisRole::tensor, 2},
                                               {AxisRole::pipeline, 4},
                                               {AxisRole::sequence, 1},
                                               {AxisRole::zero, 1}},
                                      .global_batch = 16,
                                      .recompute = recompute,
                                      .overlap = overlap};
      const ClusterStep step = some.model(strategy);
      ASSERT_EQ(step.stages.size(), 4U);
      for (const StageResult& stage : step.stages)
        EXPECT_EQ(sum_of(stage.share), step.time) << to_string(strategy);
      EXPECT_GT(step.mfu, 0);
      EXPECT_GE(step.hfu, step.mfu);
    }
  }
}

TEST(ClusterModel, GradientsAddedUpInFp32TakeTwoBytesMore) {
  A100s eight(8, gpt(4));
  eight.workload.training.precision.weight_gradients = ElementType::fp32;
  const auto bytes_with = [&](int zero) {
    const StageResult stage =
        eight.model({.axes = {{AxisRole::data, 8}, {AxisRole::zero, zero}}, .global_batch = 8})
            .stages.front();
    EXPECT_EQ(bytes(stage.memory, MemoryOwner::gradients) * (zero < 2 ? 1 : 8),
              4 * stage.parameters * (zero < 3 ? 1 : 8));
    return std::pair(stage.parameters, bytes(stage.memory, MemoryOwner::parameters) +
                                           bytes(stage.memory, MemoryOwner::gradients) +
                                           bytes(stage.memory, MemoryOwner::optimizer_state));
  };
  const auto [p, whole] = bytes_with(0);
  EXPECT_EQ(whole, 18 * p);
  EXPECT_EQ(bytes_with(1).second, 6 * p + 12 * p / 8); // as Megatron's documents say
}

TEST(ClusterModel, AddsGradientsUpOverMicroBatches) {
  // As many products of halves; a gradient is read with what it is added to, which is written.
  const auto added = [](std::optional<ElementType> type) {
    A100s one(1, gpt(4));
    one.device.table->host_ns_per_kernel = 0;
    one.workload.training.precision.weight_gradients = type;
    return std::pair(layer(one.model({})), *one.device.table);
  };
  const auto [halves, table] = added(std::nullopt);
  const auto [floats, same] = added(ElementType::fp32);
  // Sums over tokens for biases and norms write two bytes more as well: some nanoseconds.
  const double bytes = (2 + 2 * 4 - 3 * 2) * static_cast<double>(halves.parameters);
  EXPECT_NEAR(static_cast<double>(floats.backward_weight - halves.backward_weight),
              bytes / (table.memory_bandwidth_gb_per_s * table.memory_share), 12.0);
}

TEST(ClusterModel, CutsAsManyLayersAsItIsTold) {
  const A100s four(4, gpt(6));
  const auto blocks = [&](std::vector<std::int64_t> layers) {
    std::vector<std::int64_t> found;
    for (const StageResult& stage : four.model({.axes = {{AxisRole::pipeline, 4}},
                                    .global_batch = 4,
                                    .layers = std::move(layers)})
                                        .stages)
      found.push_back(stage.blocks);
    return found;
  };
  EXPECT_EQ(blocks({1, 2, 2, 1}), (std::vector<std::int64_t>{2, 2, 2, 2})); // embedding and logits
  EXPECT_EQ(blocks({0, 3, 3, 0}), (std::vector<std::int64_t>{1, 3, 3, 1}));
  EXPECT_THROW(blocks({}), InfeasibleError);           // 6 by 4
  EXPECT_THROW(blocks({1, 2, 2}), InfeasibleError);    // four parts
  EXPECT_THROW(blocks({2, 2, 2, 1}), InfeasibleError); // 6 layers
  EXPECT_THROW(blocks({3, 0, 2, 1}), InfeasibleError); // a stage with nothing
}

TEST(ClusterModel, ChecksWhatDividesWhereCostsAreKnownToo) {
  const A100s two(2, gpt(4));
  ClusterModel model(two.cluster, two.device, two.workload);
  ParallelStrategy strategy{.axes = {{AxisRole::pipeline, 2}}, .global_batch = 2};
  model.model(strategy);
  strategy.axes[AxisRole::virtual_stages] = 4; // 8 parts of 4 layers
  strategy.schedule = PipelineKind::interleaved;
  EXPECT_THROW(model.model(strategy), InfeasibleError);
}

TEST(ClusterModel, ContextAndSequenceTogetherDivideTheWork) {
  const auto step = [&](const ParallelStrategy& strategy) {
    return A100s(strategy.devices(), gpt(4)).model(strategy);
  };
  const ClusterStep one = step({.global_batch = 1});
  const ClusterStep four =
      step({.axes = {{AxisRole::tensor, 2}, {AxisRole::sequence, 1}, {AxisRole::context, 2}},
            .global_batch = 1});
  for (std::size_t i = 0; i < one.blocks.size(); ++i)
    EXPECT_NEAR(four.blocks[i].model_flops * 4, one.blocks[i].model_flops,
                1e-3 * one.blocks[i].model_flops)
        << one.blocks[i].name;
}

TEST(ClusterModel, LogitsAreThereInHalvesAndInFloats) {
  TransformerShape shape = gpt(2);
  shape.vocabulary = 1 << 16;
  for (const std::int64_t t : {1, 2, 4}) {
    const A100s some(t, shape);
    const BlockCost logits =
        some.model({.axes = {{AxisRole::tensor, t}}, .global_batch = 1}).blocks.back();
    const auto elements = static_cast<double>(kTokens * shape.vocabulary / t);
    // Log-probabilities in fp32 and their gradient in halves, or before that the logits.
    EXPECT_NEAR(static_cast<double>(logits.stored_bytes) / elements, 4, 0.1) << t;
    EXPECT_NEAR(static_cast<double>(logits.temporary_bytes) / elements, 2, 0.1) << t;
  }
}

TEST(ClusterModel, FusedAttentionStoresNoScores) {
  TransformerShape shape = gpt(2);
  shape.attention_dropout = 0.0; // inside of the kernel
  A100s one(1, shape);
  one.workload.training.attention = AttentionForm::fused;
  constexpr std::int64_t kStatistics = (2 * 2 + kHeads) * 4 * kTokens;
  EXPECT_EQ(layer(one.model({})).stored_bytes, 34 * kTokens * kHidden + kStatistics);
}

TEST(ClusterModel, RowsThatAreNotAlignedLeaveTheMatrixUnits) {
  const auto forward = [](std::int64_t size) {
    TransformerShape shape = gpt(2);
    shape.head_size = size;
    return layer(A100s(1, shape).model({.micro_batch = 16, .global_batch = 16})).forward;
  };
  EXPECT_GT(forward(60), forward(64) * 11 / 10); // 120 and 128 bytes
  EXPECT_LT(forward(56), forward(64));
}

TEST(ClusterModel, OneChipTakesWhatItsScheduleTakes) {
  const Cluster cluster =
      with_devices(read_cluster(MONET_SOURCE_DIR "/data/cluster/edge_tpu_x4.yaml"), 1);
  const ClusterDevice device = read_cluster_device(cluster.device);
  const auto network = [](std::int64_t samples) { return test::small_mlp(samples); };
  ClusterWorkload workload;
  workload.network = network;
  const ClusterStep step = ClusterModel(cluster, device, workload).model({});
  const TrainingGraph alone = fold_views(make_training_graph(network(1), workload.training));
  CoreCostCache costs;
  const StepChoice choice =
      choose_step(alone, *device.chip, {}, {StepMode::automatic, Objective::latency}, costs);
  EXPECT_EQ(std::llround(static_cast<double>(step.time) * 1e-9 * device.chip->frequency_hz),
            choice.figures.latency_cycles);
  EXPECT_NEAR(step.energy_pj / choice.figures.energy_pj, 1, 1e-9);
}

/// Layers in the middle stand for all that are like them, though what runs fused reaches over from
/// one to the next and into the logits.
TEST(ClusterModel, AlikeLayersOfAChipTakeWhatAllOfThemTake) {
  MONET_FROM_LEVEL(full);
  const Cluster cluster =
      with_devices(read_cluster(MONET_SOURCE_DIR "/data/cluster/fusemax_x8.yaml"), 1);
  const ClusterDevice device = read_cluster_device(cluster.device);
  ClusterWorkload workload;
  workload.transformer = gpt(4);
  workload.training = mixed_precision();
  const ClusterStep step = ClusterModel(cluster, device, workload).model({});
  TransformerShape shape = gpt(4);
  shape.batch = 1;
  const TrainingGraph whole =
      fold_views(make_training_graph(make_transformer(shape), workload.training));
  CoreCostCache costs;
  const StepChoice choice =
      choose_step(whole, *device.chip, {}, {StepMode::automatic, Objective::latency}, costs);
  const double cycles = static_cast<double>(step.time) * 1e-9 * device.chip->frequency_hz;
  const double ratio = cycles / static_cast<double>(choice.figures.latency_cycles);
  RecordProperty("of_all_layers", std::to_string(ratio));
  EXPECT_NEAR(ratio, 1, 0.1);
}

/// Modelled with the passes of one micro-batch, an update would be paid with each of them.
TEST(ClusterModel, OneChipUpdatesOnceForAllMicroBatches) {
  const Cluster cluster =
      with_devices(read_cluster(MONET_SOURCE_DIR "/data/cluster/edge_tpu_x4.yaml"), 1);
  const ClusterDevice device = read_cluster_device(cluster.device);
  ClusterWorkload workload;
  workload.network = [](std::int64_t samples) { return test::small_mlp(samples); };
  const auto step = [&](std::int64_t samples) {
    return ClusterModel(cluster, device, workload).model({.global_batch = samples});
  };
  const ClusterStep one = step(1);
  const ClusterStep two = step(2);
  const ClusterStep eight = step(8);
  EXPECT_EQ(eight.timeline.stages[0].busy, 4 * two.timeline.stages[0].busy);
  EXPECT_EQ(eight.stages[0].share.update, two.stages[0].share.update);
  EXPECT_GT(two.stages[0].share.update, 0);
  EXPECT_LT(eight.time, 8 * one.time);
  EXPECT_LT(eight.energy_pj, 8 * one.energy_pj);
}

/// What weight gradients read waits with them: inputs of products, and the gradients of results.
TEST(ClusterModel, KeepsWhatWeightGradientsWaitFor) {
  const A100s four(4, gpt(4));
  const auto stored = [&](PipelineKind kind, std::size_t stage) {
    const ClusterStep step =
        four.model({.axes = {{AxisRole::pipeline, 4}}, .schedule = kind, .global_batch = 8});
    return bytes(step.stages[stage].memory, MemoryOwner::stored_activations);
  };
  EXPECT_GT(stored(PipelineKind::zero_bubble_h1, 3), stored(PipelineKind::one_f_one_b, 3));
  EXPECT_GT(stored(PipelineKind::zero_bubble_h1, 2), stored(PipelineKind::one_f_one_b, 2));
}

TEST(ClusterModel, SaysWhatDoesNotDivide) {
  const A100s eight(8, gpt(4));
  EXPECT_THROW(eight.model({.axes = {{AxisRole::data, 4}}}), InfeasibleError);
  EXPECT_THROW(eight.model({.axes = {{AxisRole::data, 8}}, .global_batch = 12}), InfeasibleError);
  EXPECT_THROW(
      eight.model(
          {.axes = {{AxisRole::tensor, 8}, {AxisRole::sequence, 1}, {AxisRole::expert, 2}}}),
      InfeasibleError);
  EXPECT_THROW(eight.model({.axes = {{AxisRole::pipeline, 8}}, .global_batch = 8}),
               InfeasibleError); // 4 layers
  const A100s three(3, gpt(3));
  EXPECT_THROW(three.model({.axes = {{AxisRole::tensor, 3}}}), InfeasibleError); // 8 heads
}

} // namespace monet
