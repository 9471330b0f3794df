// Ranks and stages of transformers made from their sizes, dense and with experts.
#include "cluster/networks.hpp"
#include "cluster/ranks.hpp"
#include "level.hpp"
#include "workload/shared/views.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>

namespace monet {

namespace {

std::string described(const TransformerShape& shape, const TrainingOptions& options) {
  return fmt::format("kv {} norm {} act {} pos {} biases {} tied {} experts {} topk {} cap {} "
                     "every {} recompute {} micro {}",
                     shape.heads_of_keys(), static_cast<int>(shape.norm),
                     static_cast<int>(shape.activation), static_cast<int>(shape.positions),
                     shape.biases, shape.tied, shape.experts.value_or(0), shape.topk,
                     shape.capacity_factor, shape.expert_every,
                     options.storage.recompute.empty() ? "" : options.storage.recompute.front(),
                     options.micro_batches);
}

/// Groups of heads that tensor ranks cannot share are drawn again as single ones.
TransformerShape fitted(TransformerShape shape, const std::vector<MeshAxis>& mesh) {
  if (mesh.back().size > shape.heads_of_keys())
    shape.kv_heads.reset();
  return shape;
}

struct Case {
  TransformerShape shape;
  TrainingOptions options;
  std::vector<MeshAxis> mesh;
};

struct Limits {
  bool experts = false;
  std::int64_t micro_batches = 0; ///< 0: as drawn
  std::int64_t ranks = 16;
};

Case some_case(std::mt19937_64& random, const Limits& limits) {
  Case drawn;
  drawn.options = test::some_options(random);
  drawn.options.storage.recompute = test::some_recomputation(random);
  const std::vector<std::string>& again = drawn.options.storage.recompute;
  if (drawn.options.attention == AttentionForm::fused && again.size() > 1) // it has no scores
    drawn.options.storage.recompute.clear();
  if (limits.micro_batches > 0)
    drawn.options.micro_batches = limits.micro_batches;
  const std::int64_t batch = 4 / std::min<std::int64_t>(drawn.options.micro_batches, 2);
  drawn.mesh = test::some_mesh(
      random, {.tokens = true, .experts = limits.experts, .samples = batch, .ranks = limits.ranks});
  drawn.shape = fitted(limits.experts ? test::some_mixture(random, batch)
                                      : test::some_transformer(random, batch),
                       drawn.mesh);
  return drawn;
}

TrainingGraph step_of(const Case& of) {
  return fold_views(make_training_graph(make_transformer(of.shape), of.options));
}

void expect_same_as_one_device(const Case& of, std::optional<test::PipelineCase> pipeline = {}) {
  SCOPED_TRACE(described(of.shape, of.options) + "; " + test::words(of.mesh));
  const TrainingGraph step = step_of(of);
  const RankStep ranks = partition_step(step, of.mesh);
  verify(ranks.step);
  std::vector<test::StageStep> stages;
  if (pipeline)
    stages = test::even_stages(ranks, *pipeline);
  const auto found = test::differences(step, ranks, 2, false, stages);
  ASSERT_FALSE(found.empty());
  EXPECT_LE(found.front().relative, 1e-11) << found.front().tensor;
}

std::int64_t count_of(const RankStep& ranks, std::string_view what, std::string_view axis,
                      Phase phase) {
  return std::ranges::count_if(ranks.step.graph.operators(), [&](const Operator& op) {
    return op.op_type == what && op.phase == phase && op.attributes.text("mesh_axis", "") == axis;
  });
}

/// Two layers with 4 experts each, all of the same kind.
Case mixture(std::vector<MeshAxis> mesh) {
  Case made;
  made.shape = {.layers = 2,
                .hidden = 16,
                .heads = 4,
                .ffn = 24,
                .sequence = 8,
                .vocabulary = 32,
                .batch = 4,
                .experts = 4};
  made.mesh = std::move(mesh);
  return made;
}

bool is_of_expert(const std::string& name) {
  return name.find(".moe.fc.") != std::string::npos || name.find(".moe.proj.") != std::string::npos;
}

/// The weights of experts, as a rank keeps them: name and shape.
std::map<std::string, std::vector<std::int64_t>> expert_weights(const RankStep& ranks) {
  std::map<std::string, std::vector<std::int64_t>> found;
  for (const ParameterRecord& record : ranks.step.parameters) {
    const Tensor& weight = ranks.step.graph.tensor(record.weight);
    if (is_of_expert(weight.name))
      found.emplace(weight.name, weight.shape);
  }
  return found;
}

} // namespace

TEST(Transformers, DenseOnesOnRanksComputeWhatOneDeviceComputes) {
  std::mt19937_64 random(11);
  for (int i = 0; i < test::cases(4, 60, 60); ++i) {
    SCOPED_TRACE(i);
    EXPECT_NO_THROW(expect_same_as_one_device(some_case(random, {})));
  }
}

TEST(Transformers, WithExpertsOnRanksComputeWhatOneDeviceComputes) {
  std::mt19937_64 random(12);
  for (int i = 0; i < test::cases(8, 80, 80); ++i) {
    SCOPED_TRACE(i);
    EXPECT_NO_THROW(expect_same_as_one_device(some_case(random, {.experts = true})));
  }
}

TEST(Transformers, InStagesComputeWhatOneDeviceComputes) {
  std::mt19937_64 random(513);
  for (int i = 0; i < test::cases(4, 60, 60); ++i) {
    const auto pipeline = test::some_pipeline(random);
    SCOPED_TRACE(fmt::format("{}: {}", i, test::words(pipeline)));
    const Limits limits{.experts = i % 2 == 0, .micro_batches = 4, .ranks = 16 / pipeline.stages};
    EXPECT_NO_THROW(expect_same_as_one_device(some_case(random, limits), pipeline));
  }
}

TEST(Transformers, ExpertsOnRanksSendTokensAndNotWeights) {
  for (const int zero : {0, 1, 2, 3}) {
    SCOPED_TRACE(zero);
    const Case of =
        mixture({{.name = "data", .size = 2, .inputs = 0, .zero = zero},
                 {.name = "expert", .size = 2, .inputs = 0, .experts = true, .zero = zero}});
    const RankStep ranks = partition_step(step_of(of), of.mesh);
    EXPECT_EQ(count_of(ranks, "AllToAll", "expert", Phase::forward), 2 * of.shape.layers);
    EXPECT_EQ(count_of(ranks, "AllToAll", "expert", Phase::backward), 2 * of.shape.layers);
    EXPECT_EQ(count_of(ranks, "AllToAll", "data", Phase::forward), 0);
    for (const Operator& op : ranks.step.graph.operators()) {
      if (!is_collective(op) || op.op_type == "AllToAll" || !is_of_expert(op.name))
        continue;
      EXPECT_EQ(op.attributes.text("mesh_axis", ""), "data") << op.name;
    }
    const std::int64_t kept = zero == 3 ? 1 : 2; // of 4 experts
    EXPECT_EQ(expert_weights(ranks).at("h.0.moe.fc.weight"),
              (std::vector<std::int64_t>{kept, 16, 24}));
    for (const ParameterRecord& record : ranks.step.parameters) {
      const Tensor& weight = ranks.step.graph.tensor(record.weight);
      if (!is_of_expert(weight.name))
        continue;
      ASSERT_FALSE(record.states.empty());
      for (const TensorId state : record.states)
        EXPECT_EQ(ranks.step.graph.tensor(state).shape.front(), zero == 0 ? 2 : 1) << weight.name;
    }
  }
}

TEST(Transformers, TensorRanksShareTheInnerSizeOfExpertsAndKeepTheRouter) {
  for (const bool between : {false, true}) {
    SCOPED_TRACE(between);
    MeshAxis axis{.name = "tensor", .size = 2, .weights = true, .between = between};
    if (between)
      axis.inputs = 1;
    const Case of = mixture({axis});
    const RankStep ranks = partition_step(step_of(of), of.mesh);
    const auto weights = expert_weights(ranks);
    EXPECT_EQ(weights.at("h.0.moe.fc.weight"), (std::vector<std::int64_t>{4, 16, 12}));
    EXPECT_EQ(weights.at("h.0.moe.fc.bias"), (std::vector<std::int64_t>{4, 1, 1, 12}));
    EXPECT_EQ(weights.at("h.0.moe.proj.weight"), (std::vector<std::int64_t>{4, 12, 16}));
    EXPECT_EQ(weights.at("h.0.moe.proj.bias"), (std::vector<std::int64_t>{4, 1, 1, 16}));
    for (const ParameterRecord& record : ranks.step.parameters) {
      const Tensor& weight = ranks.step.graph.tensor(record.weight);
      if (weight.name == "h.0.moe.router.weight") {
        EXPECT_EQ(weight.shape, (std::vector<std::int64_t>{16, 4}));
      }
    }
    for (const Operator& op : ranks.step.graph.operators())
      EXPECT_FALSE(op.op_type == "AllToAll" && op.name.starts_with("h.")) << op.name;
  }
}

} // namespace monet
