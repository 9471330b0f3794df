// Budgets of memory, whatever they are: plans within them, a larger one never has a worse plan, and
// all searches together find nothing worse than each of them alone.
#include "level.hpp"
#include "schedule/random_networks.hpp"
#include "schedule/random_systems.hpp"
#include "training_graph/tiny_network.hpp"
#include "workload/shared/views.hpp"

#include "monet/base/errors.hpp"
#include "monet/optimise/allocation.hpp"
#include "monet/optimise/joint.hpp"
#include "monet/optimise/step_mode.hpp"
#include "monet/training_graph/training.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

namespace monet {
namespace MONET_TEST_FILE {

using testing::Random;

/// Steps that fit their chip, each with kBudgets random budgets.
const int kSteps = test::cases(1, 2, 25);
constexpr int kBudgets = 4;

/// Layers whose activations are much larger than their weights: recomputation saves memory.
TrainingGraph random_layers(Random& random) {
  TinyNetwork n;
  const std::int64_t rows = 32 * random.between(1, 4);
  TensorId x = n.input("x", {rows, 8});
  std::int64_t width = 8;
  for (std::int64_t i = 0; i < random.between(2, 4); ++i) {
    const std::int64_t next = random.chance(50) ? width : 4 * random.between(1, 4);
    const TensorId weight = n.parameter("w" + std::to_string(i), {width, next});
    const TensorId product = n.op("MatMul", {x, weight}, {rows, next});
    const TensorId made = n.op(random.chance(50) ? "Tanh" : "Relu", {product}, {rows, next});
    x = next == width && random.chance(50) ? n.op("Add", {made, x}, {rows, next}) : made;
    width = next;
  }
  n.output(x);
  return fold_views(make_training_graph(n.graph, {}));
}

struct Case {
  explicit Case(std::uint64_t seed)
      : random(seed),
        step(seed % 2 == 0 ? random_layers(random)
                           : testing::random_step(random, {.operators = 5, .training = true})),
        chip(testing::random_chip(random, {.cores = 3})) {
    options.objective = static_cast<Objective>(seed % 4);
    options.levels = 2;
    options.plan_effort = 100'000;
    options.fusion.evaluations = 4;
    options.fusion.group_evaluations = 20;
    options.allocation_evaluations = 4;
    options.checkpointing.effort = 200'000;
    options.checkpointing.nodes = 20;
  }

  std::optional<JointResult> search(std::optional<std::int64_t> budget) {
    if (budget)
      options.budget = [&](std::int64_t) { return *budget; };
    else
      options.budget = nullptr;
    try {
      return optimise_jointly(step, chip, options, {});
    } catch (const InfeasibleError&) {
      return std::nullopt;
    }
  }

  ModelledStep model(const TrainingGraph& graph, const TilingOptions& tiling, Priority priority) {
    StepOptions how{tiling, {}, {}};
    how.schedule.priority = priority;
    return model_step(graph, chip, how, {costs});
  }

  /// What the searches for groups and for cores find alone, whatever memory that takes.
  std::vector<StepFigures> parts() {
    std::vector<StepFigures> found;
    options.fusion.objective = options.objective;
    found.push_back(optimise_fusion({step, chip, costs, {}, {}}, options.fusion, {}).figures);
    const TilingOptions tiling =
        choose_step(step, chip, {}, {StepMode::automatic, options.objective}, costs).tiling;
    AllocationEvaluator evaluator(step, chip, tiling, {});
    AllocationSearchOptions search;
    search.objective = options.objective;
    search.evaluations = static_cast<std::size_t>(options.allocation_evaluations);
    found.push_back(search_allocation(evaluator, search, {}).best.figures);
    return found;
  }

  /// What recomputation alone finds for a budget, layer by layer and fused.
  std::vector<StepFigures> recomputed(std::int64_t budget) {
    const OperatorCosts used = operator_costs(model(step, {}, Priority::order).timeline, step);
    const CheckpointSpace space =
        checkpoint_space(step, options.objective == Objective::latency ? used.cycles : used.energy);
    const auto found = checkpoint_front(space, {&budget, 1}, options.checkpointing, {}).front();
    if (!found.plan)
      return {};
    const TrainingGraph again = with_recomputation(step, runs_of(*found.plan));
    std::vector<StepFigures> figures{model(again, {}, Priority::order).figures};
    ScheduleOptions in_order;
    in_order.priority = Priority::order;
    figures.push_back(choose_step(again, chip, {{}, in_order, {}},
                                  {StepMode::automatic, options.objective}, costs)
                          .figures);
    return figures;
  }

  Random random;
  TrainingGraph step;
  Chip chip;
  JointOptions options;
  CoreCostCache costs;
};

TEST(Budgets, JointPlansAreWithinThemMonotoneAndNoWorseThanTheParts) {
  MONET_FROM_LEVEL(full);
  int within = 0;
  int recomputed = 0;
  int steps = 0;
  for (std::uint64_t seed = 0; steps < kSteps; ++seed) {
    Case c(seed);
    const auto free = c.search({});
    if (!free)
      continue;
    ++steps;
    const std::int64_t whole = free->base.figures.peak_memory_bytes;
    std::vector<std::int64_t> budgets;
    for (int i = 0; i < kBudgets; ++i)
      budgets.push_back(whole * c.random.between(70, 105) / 100);
    std::ranges::sort(budgets, std::ranges::greater());
    const std::vector<StepFigures> parts = c.parts();
    double before = free->found.best;
    for (const StepFigures& part : parts)
      EXPECT_LE(before, part.value(c.options.objective)) << seed;
    for (const std::int64_t budget : budgets) {
      const auto found = c.search(budget);
      const double best = found ? found->found.best : std::numeric_limits<double>::infinity();
      EXPECT_GE(best, before) << seed << ": a larger budget has a worse plan than " << budget;
      before = best;
      if (found) {
        ++within;
        recomputed += found->both.runs.empty() ? 0 : 1;
        EXPECT_LE(found->both.figures.peak_memory_bytes, budget) << seed;
        EXPECT_EQ(found->both.figures.value(c.options.objective), best) << seed;
      }
      std::vector<StepFigures> alone = parts;
      for (const StepFigures& figures : c.recomputed(budget))
        alone.push_back(figures);
      for (const StepFigures& part : alone) {
        if (part.peak_memory_bytes <= budget) {
          EXPECT_LE(best, part.value(c.options.objective)) << seed << ", " << budget;
        }
      }
    }
  }
  EXPECT_GT(within, kSteps);
  EXPECT_GT(recomputed, kSteps / 10);
}

TEST(Budgets, CheckpointingPlansAreWithinThemAndMonotone) {
  int recomputed = 0;
  for (std::uint64_t seed = 0; seed < 10 * static_cast<std::uint64_t>(kSteps); ++seed) {
    Case c(seed);
    std::vector<std::int64_t> costs;
    for (std::size_t i = 0; i < c.step.graph.operators().size(); ++i)
      costs.push_back(c.random.between(1, 1000));
    const CheckpointSpace space = checkpoint_space(c.step, costs);
    const CheckpointPoint all = evaluate(space, store_everything(space.problem));
    for (const CheckpointMemory memory : {CheckpointMemory::peak, CheckpointMemory::stored}) {
      const std::int64_t most = all.memory(memory);
      CheckpointOptions options;
      options.memory = memory;
      options.effort = 1'000'000;
      std::vector<std::int64_t> budgets{most};
      for (int i = 0; i < kBudgets; ++i)
        budgets.push_back(most * c.random.between(20, 100) / 100);
      std::ranges::sort(budgets, std::ranges::greater());
      std::int64_t before = 0;
      bool none = false;
      for (const std::int64_t budget : budgets) { // each asked for alone
        const RecomputeResult found = checkpoint_front(space, {&budget, 1}, options, {}).front();
        if (!found.plan) {
          none = true;
          continue;
        }
        EXPECT_FALSE(none) << seed << ": a larger budget has no plan";
        EXPECT_LE(evaluate(space, *found.plan).memory(memory), budget) << seed;
        EXPECT_GE(found.outcome.cost, before) << seed << ", " << budget;
        before = found.outcome.cost;
        recomputed += found.plan->runs.size() > space.problem.ops.size() ? 1 : 0;
      }
    }
  }
  EXPECT_GT(recomputed, kSteps);
}

TEST(Budgets, NothingIsAboveThemWhenTimeIsUp) {
  MONET_FROM_LEVEL(full);
  int within = 0;
  for (std::uint64_t seed = 0; seed < 10 * static_cast<std::uint64_t>(kSteps); ++seed) {
    Case c(seed);
    c.options.budget = [](std::int64_t whole) { return whole * 9 / 10; };
    SearchControl control;
    int asked = 0; // ends at every place in turn
    std::atomic<bool> stop{false};
    control.stop = &stop;
    control.progress = [&](const SearchProgress&) { stop = ++asked > static_cast<int>(seed % 8); };
    try {
      const JointResult found = optimise_jointly(c.step, c.chip, c.options, control);
      EXPECT_LE(found.both.figures.peak_memory_bytes, *found.budget_bytes) << seed;
      ++within;
    } catch (const InfeasibleError&) { // proven, or nothing fits the chip at all
    } catch (const Stopped&) {
      EXPECT_TRUE(stop);
    }
  }
  EXPECT_GT(within, 0);
}

} // namespace MONET_TEST_FILE
} // namespace monet
