// The joint search on small random steps and chips: its corners are what the stages make of them.
#include "level.hpp"
#include "schedule/random_networks.hpp"
#include "schedule/random_systems.hpp"
#include "schedule/shared/bounds.hpp"
#include "training_graph/tiny_network.hpp"
#include "workload/shared/views.hpp"

#include "monet/base/errors.hpp"
#include "monet/hardware/read_hardware.hpp"
#include "monet/optimise/joint.hpp"
#include "monet/training_graph/liveness.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <optional>
#include <string>

namespace monet {
namespace {

using testing::Random;

JointOptions small_effort(std::uint64_t seed) {
  JointOptions options;
  options.objective = static_cast<Objective>(seed % 4);
  options.levels = 2;
  options.plan_effort = 200'000;
  options.fusion.evaluations = 4;
  options.fusion.group_evaluations = 20;
  options.allocation_evaluations = 4;
  options.checkpointing.effort = 200'000;
  options.checkpointing.nodes = 20;
  return options;
}

double scheduled(const JointPoint& point, const Chip& chip, Objective objective) {
  CoreCostCache costs;
  ScheduleOptions options;
  options.priority = point.priority;
  const StepFigures figures =
      model_step(*point.step, chip, {point.tiling, options, {}}, {costs}).figures;
  EXPECT_EQ(figures, point.figures);
  return figures.value(objective);
}

std::optional<JointResult> search(const TrainingGraph& step, const Chip& chip,
                                  const JointOptions& options, int jobs) {
  SearchControl control;
  control.jobs = jobs;
  try {
    return optimise_jointly(step, chip, options, control);
  } catch (const InfeasibleError&) {
    return std::nullopt;
  }
}

TEST(Joint, CornersAreWhatTheScheduleSaysAndBothIsTheBest) {
  const int steps = test::cases(6, 12, 45);
  int run = 0;
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(steps); ++seed) {
    Random random(seed);
    const TrainingGraph step = testing::random_step(random, {.operators = 6, .training = true});
    const Chip chip = testing::random_chip(random, {.cores = 3});
    JointOptions options = small_effort(seed);
    if (seed % 3 != 0)
      options.budget = [&](std::int64_t peak) { return peak * (seed % 3 == 1 ? 10 : 9) / 10; };
    const auto found = search(step, chip, options, 1);
    if (!found)
      continue;
    ++run;
    const auto value = [&](const JointPoint& point) {
      return point.figures.value(options.objective);
    };
    for (const JointPoint* corner :
         {&found->base, &found->fused, &found->checkpointed, &found->both}) {
      EXPECT_EQ(scheduled(*corner, chip, options.objective), value(*corner)) << seed;
      EXPECT_GE(value(*corner), found->found.bound) << seed;
      if (found->within_budget(corner->figures)) {
        EXPECT_LE(value(found->both), value(*corner)) << seed;
      }
    }
    EXPECT_TRUE(found->base.runs.empty() && found->fused.runs.empty()) << seed;
    EXPECT_EQ(found->checkpointed.tiling.mode, TilingMode::layer_by_layer) << seed;
  }
  EXPECT_GT(run, steps * 2 / 3);
}

TEST(Joint, RecomputesWhereTheBudgetAsksForIt) {
  MONET_FROM_LEVEL(full);
  TinyNetwork n;
  TensorId x = n.input("x", {256, 16});
  for (int i = 0; i < 4; ++i) {
    x = n.op("MatMul", {x, n.parameter("w" + std::to_string(i), {16, 16})}, {256, 16});
    x = n.op("Tanh", {x}, {256, 16});
  }
  n.output(x);
  const TrainingGraph step = fold_views(make_training_graph(n.graph, {}));
  const Chip chip = read_chip(MONET_SOURCE_DIR "/data/hardware/edge_tpu.yaml");
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(test::cases(1, 1, 2)); ++seed) {
    JointOptions options = small_effort(seed);
    options.budget = [](std::int64_t peak) { return peak * 8 / 10; };
    const auto found = search(step, chip, options, 1);
    ASSERT_TRUE(found);
    const auto value = [&](const JointPoint& point) {
      return point.figures.value(options.objective);
    };
    EXPECT_FALSE(found->within_budget(found->base.figures));
    EXPECT_TRUE(found->within_budget(found->both.figures));
    EXPECT_FALSE(found->both.runs.empty());
    EXPECT_EQ(found->found.best, value(found->both));
    // Nothing without recomputation fits: there the objective alone counts.
    EXPECT_FALSE(found->within_budget(found->fused.figures));
    EXPECT_LE(value(found->fused), value(found->base));
  }
}

TEST(Joint, HasAPlanForTheBudgetBeforeWhatTakesLong) {
  OnnxReadOptions read;
  read.batch = 1;
  TrainingOptions training;
  training.update.optimizer = Adam{};
  const TrainingGraph step = fold_views(make_training_graph(
      read_onnx(MONET_SOURCE_DIR "/data/workload/gpt2_nano.onnx", read), training));
  const Chip chip = read_chip(MONET_SOURCE_DIR "/data/hardware/tpu_like_quad_core.yaml");
  JointOptions options;
  options.budget = [](std::int64_t peak) { return peak * 95 / 100; };
  std::atomic<bool> stop = false;
  SearchControl control;
  control.stop = &stop;
  std::int64_t needed = 0; // schedules until there is a plan within the budget
  control.progress = [&](const SearchProgress& state) {
    if (!std::isnan(state.best) && !stop.exchange(true))
      needed = state.done;
  };
  const JointResult found = optimise_jointly(step, chip, options, control);
  EXPECT_TRUE(found.found.interrupted);
  EXPECT_TRUE(found.within_budget(found.both.figures));
  EXPECT_EQ(needed, std::ranges::count_if(found.trials, [](const JointResult::Trial& trial) {
              return trial.name.find("fused") == std::string::npos;
            }));
}

TEST(Joint, ThreadsDoNotCount) {
  for (std::uint64_t seed = 100; seed < 110; ++seed) {
    Random random(seed);
    const TrainingGraph step = testing::random_step(random, {.operators = 7, .training = true});
    const Chip chip = testing::random_chip(random, {.cores = 3});
    JointOptions options = small_effort(seed);
    options.budget = [](std::int64_t peak) { return peak * 9 / 10; };
    const auto one = search(step, chip, options, 1);
    const auto two = search(step, chip, options, 2);
    ASSERT_EQ(one.has_value(), two.has_value());
    if (!one)
      continue;
    ASSERT_EQ(one->trials.size(), two->trials.size());
    for (std::size_t i = 0; i < one->trials.size(); ++i) {
      EXPECT_EQ(one->trials[i].name, two->trials[i].name);
      EXPECT_EQ(one->trials[i].figures, two->trials[i].figures);
    }
    EXPECT_EQ(one->both.runs, two->both.runs);
  }
}

} // namespace
} // namespace monet
