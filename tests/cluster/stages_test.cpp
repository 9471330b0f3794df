// A pipeline's stages compute together what one device computes.
#include "cluster/networks.hpp"
#include "cluster/ranks.hpp"

#include "monet/cluster/stages.hpp"
#include "monet/workload/views.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <random>

namespace monet {

namespace {

struct PipelineCase {
  PipelineKind kind;
  std::int64_t stages, chunks;
};

std::vector<std::int64_t> even_begins(const TrainingGraph& step, std::int64_t parts) {
  std::vector<std::int64_t> begins;
  const std::int64_t operators = forward_operators(step);
  for (std::int64_t part = 0; part < parts; ++part)
    begins.push_back(part * operators / parts);
  return begins;
}

void expect_same_in_stages(const TrainingGraph& step, const std::vector<MeshAxis>& mesh,
                           const PipelineCase& as) {
  const RankStep ranks = partition_step(step, mesh);
  const auto places = place_operators(ranks.step, even_begins(ranks.step, as.stages * as.chunks));
  const auto stages = stage_steps(ranks.step, places, as.kind, as.stages, as.chunks);
  ASSERT_EQ(stages.size(), static_cast<std::size_t>(as.stages));
  for (const StageStep& stage : stages)
    verify(stage.step.graph);
  const auto found = test::differences(step, ranks, 2, false, stages);
  EXPECT_LE(found.front().relative, 1e-11)
      << found.front().tensor << " with " << name_of(as.kind) << " " << as.stages << " stages "
      << as.chunks << " chunks; " << test::words(mesh);
}

const std::vector<PipelineCase> kCases{
    {PipelineKind::gpipe, 2, 1},          {PipelineKind::one_f_one_b, 2, 1},
    {PipelineKind::one_f_one_b, 4, 1},    {PipelineKind::interleaved, 2, 2},
    {PipelineKind::zero_bubble_h1, 2, 1}, {PipelineKind::zero_bubble_h2, 4, 1},
    {PipelineKind::zero_bubble_v, 2, 2},
};

} // namespace

TEST(Stages, OfAnMlpComputeWhatOneDeviceComputes) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 60; ++i) {
    TrainingOptions options = test::some_options(random);
    options.micro_batches = 4;
    const TrainingGraph step = fold_views(make_training_graph(test::small_mlp(4), options));
    SCOPED_TRACE(i);
    expect_same_in_stages(step, test::some_mesh(random, {.most = 4}),
                          kCases[random() % kCases.size()]);
  }
}

TEST(Stages, OfATransformerComputeWhatOneDeviceComputes) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 30; ++i) {
    TrainingOptions options = test::some_options(random);
    options.micro_batches = 4;
    const TrainingGraph step =
        fold_views(make_training_graph(test::read_network("gpt2_nano.onnx", 2), options));
    SCOPED_TRACE(i);
    expect_same_in_stages(step, test::some_mesh(random, {.tokens = true, .most = 2}),
                          kCases[random() % kCases.size()]);
  }
}

} // namespace monet
