// A pipeline's stages compute together what one device computes.
#include "cluster/networks.hpp"
#include "cluster/ranks.hpp"
#include "cluster/shared/stages.hpp"
#include "level.hpp"
#include "workload/shared/views.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <random>

namespace monet {

namespace {

void expect_same_in_stages(const TrainingGraph& step, const std::vector<MeshAxis>& mesh,
                           const test::PipelineCase& as) {
  const RankStep ranks = partition_step(step, mesh);
  const auto stages = test::even_stages(ranks, as);
  ASSERT_EQ(stages.size(), static_cast<std::size_t>(as.stages));
  const auto found = test::differences(step, ranks, 2, false, stages);
  EXPECT_LE(found.front().relative, 1e-11)
      << found.front().tensor << " with " << test::words(as) << "; " << test::words(mesh);
}

} // namespace

TEST(Stages, OfAnMlpComputeWhatOneDeviceComputes) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 60; ++i) {
    TrainingOptions options = test::some_options(random);
    options.micro_batches = 4;
    const TrainingGraph step = fold_views(make_training_graph(test::small_mlp(4), options));
    SCOPED_TRACE(i);
    expect_same_in_stages(step, test::some_mesh(random, {.most = 4}), test::some_pipeline(random));
  }
}

TEST(Stages, OfATransformerComputeWhatOneDeviceComputes) {
  std::mt19937_64 random(4);
  for (int i = 0; i < test::cases(2, 30, 30); ++i) {
    TrainingOptions options = test::some_options(random);
    options.micro_batches = 4;
    const TrainingGraph step =
        fold_views(make_training_graph(test::read_network("gpt2_nano.onnx", 2), options));
    SCOPED_TRACE(i);
    expect_same_in_stages(step, test::some_mesh(random, {.tokens = true, .most = 2}),
                          test::some_pipeline(random));
  }
}

TEST(Stages, GiveIntegersThroughLinearNetworksToTheBit) {
  TrainingOptions options;
  options.loss = Mse{.reduction = Reduction::sum};
  options.update.optimizer = Sgd{.learning_rate = 1.0};
  options.micro_batches = 4;
  const TrainingGraph step = fold_views(make_training_graph(test::small_mlp(4, true), options));
  const std::vector<test::PipelineCase> pipelines{{PipelineKind::gpipe, 3, 1},
                                                  {PipelineKind::one_f_one_b, 3, 1},
                                                  {PipelineKind::zero_bubble_h1, 3, 1},
                                                  {PipelineKind::zero_bubble_h2, 2, 1}};
  for (const test::PipelineCase& pipeline : pipelines) {
    for (const int zero : {0, 1, 2, 3}) {
      const std::vector<MeshAxis> mesh{{.name = "data", .size = 2, .inputs = 0, .zero = zero},
                                       {.name = "tensor", .size = 2, .weights = true}};
      const RankStep ranks = partition_step(step, mesh);
      const auto found =
          test::differences(step, ranks, 1, true, test::even_stages(ranks, pipeline));
      EXPECT_EQ(found.front().relative, 0)
          << found.front().tensor << test::words(mesh) << test::words(pipeline);
    }
  }
}

} // namespace monet
