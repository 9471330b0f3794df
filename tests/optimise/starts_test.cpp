// What searches begin with: the choice of `monet schedule`, which no limit ends, and progress that
// stays within its total.
#include "level.hpp"
#include "optimise/shared/pairing.hpp"
#include "schedule/random_networks.hpp"
#include "schedule/random_systems.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/warnings.hpp"
#include "monet/hardware/read_hardware.hpp"
#include "monet/optimise/allocation.hpp"
#include "monet/optimise/checkpoint_search.hpp"
#include "monet/optimise/fusion.hpp"
#include "monet/optimise/joint.hpp"
#include "monet/optimise/step_mode.hpp"
#include "monet/tiling/stacks_file.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <vector>

namespace monet {
namespace MONET_TEST_FILE {

using testing::Random;

/// Cores of one kind, which may be idle.
const Chip& quad_core() {
  static const Chip chip = read_chip(MONET_SOURCE_DIR "/data/hardware/tpu_like_quad_core.yaml");
  return chip;
}

/// A random step with what choose_step() makes of it.
struct Started {
  explicit Started(std::uint64_t seed)
      : random(seed), step(testing::random_step(random, {.operators = 6, .training = true})),
        chip(seed % 3 == 0 ? quad_core() : testing::random_chip(random, {.cores = 4})),
        objective(static_cast<Objective>(seed % 4)) {
    try {
      automatic =
          choose_step(step, chip, {tiling, {}, {}}, {StepMode::automatic, objective}, costs);
    } catch (const InfeasibleError&) { // its operands are too large
    }
  }

  bool has_idle_cores() const {
    return std::ranges::find(automatic->tiling.idle, true) != automatic->tiling.idle.end();
  }
  bool is_fused() const { return automatic->tiling.mode == TilingMode::fused; }
  double value() const { return automatic->figures.value(objective); }

  FusionOptions fusion() const {
    FusionOptions options;
    options.objective = objective;
    options.evaluations = 30;
    options.group_evaluations = 60;
    options.complete_below = 0;
    return options;
  }
  FusionResult search_groups(const SearchControl& control) {
    return optimise_fusion({step, chip, costs, tiling, {}, 0, {}}, fusion(), control);
  }
  JointResult search_jointly(const SearchControl& control) {
    JointOptions options;
    options.objective = objective;
    options.levels = 1;
    options.plan_effort = 100'000;
    options.fusion = fusion();
    options.allocation_evaluations = 4;
    options.checkpointing.effort = 100'000;
    options.checkpointing.nodes = 10;
    return optimise_jointly(step, chip, options, control);
  }

  StepFigures scheduled(const TilingOptions& how) {
    return model_step(step, chip, {how, {}, {}}, {costs}).figures;
  }

  Random random;
  TrainingGraph step;
  Chip chip;
  Objective objective;
  TilingOptions tiling;
  CoreCostCache costs;
  std::optional<StepChoice> automatic;
};

/// Is set when the search has told its progress so many times.
class Stop {
public:
  explicit Stop(std::int64_t ticks) : ticks_(ticks), flag_(ticks == 0) {
    control.stop = &flag_;
    control.progress = [this](const SearchProgress&) { flag_ = flag_ || --ticks_ <= 0; };
  }
  /// As SIGTERM does.
  Stop& at_once() {
    control.stop_at_once = &flag_;
    return *this;
  }

  SearchControl control;

private:
  std::int64_t ticks_;
  std::atomic<bool> flag_;
};

TEST(Starts, NoSearchIsWorseThanTheAutomaticChoiceWheneverItEnds) {
  const int steps = test::cases(6, 40, 120);
  int fused = 0;
  int interrupted = 0;
  for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(steps); ++seed) {
    Started c(seed);
    if (!c.automatic)
      continue;
    fused += c.is_fused() ? 1 : 0;
    const std::int64_t ticks = c.random.chance(30) ? 0 : c.random.between(1, 40);
    SCOPED_TRACE(fmt::format("seed {}, {} ticks", seed, ticks));
    const auto check = [&](const Certificate& found) {
      EXPECT_LE(found.start, c.value());
      EXPECT_LE(found.best, c.value());
      EXPECT_FALSE(found.is_worse_than_start());
      interrupted += found.interrupted ? 1 : 0;
    };
    check(c.search_groups(Stop(ticks).control).certificate);
    check(c.search_jointly(Stop(ticks).control).found);
    AllocationEvaluator evaluator(c.step, c.chip, c.automatic->tiling, {});
    AllocationSearchOptions options;
    options.objective = c.objective;
    options.evaluations = 20;
    check(search_allocation(evaluator, options, Stop(ticks).control).certificate);
  }
  EXPECT_GT(3 * fused, steps);
  EXPECT_GT(interrupted, steps);
}

TEST(Starts, TerminationEndsTheStartWithAWarning) {
  int without_start = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    Started c(seed);
    if (!c.automatic)
      continue;
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const auto check = [&](const auto& search, auto certificate) {
      const WarningScope scope;
      Stop stop(1); // once layer by layer is known
      const auto result = (c.*search)(stop.at_once().control);
      EXPECT_TRUE((result.*certificate).interrupted);
      EXPECT_EQ(scope.warnings().size(), 1);
      without_start += (result.*certificate).best > c.value() ? 1 : 0;
    };
    check(&Started::search_groups, &FusionResult::certificate);
    check(&Started::search_jointly, &JointResult::found);
  }
  EXPECT_GT(without_start, 4);
}

TEST(Starts, JointBeginsWithWhatTheSearchForGroupsFinds) {
  int better = 0;
  const int steps = test::cases(4, 12, 40);
  for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(steps); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Started c(seed);
    if (!c.automatic)
      continue;
    const FusionResult groups = c.search_groups({});
    std::atomic<bool> stop{false};
    SearchControl control;
    control.stop = &stop;
    control.progress = [&](const SearchProgress& state) {
      stop = stop || state.done >= groups.evaluations; // no time is left for anything else
    };
    const JointResult found = c.search_jointly(control);
    EXPECT_LE(found.found.best, groups.certificate.best);
    better += groups.certificate.best < c.value() ? 1 : 0;
  }
  EXPECT_GT(better, 0);
}

/// Idle cores are part of a plan: of its file, and of the cores that a search for cores begins
/// with.
TEST(Starts, IdleCoresAreKept) {
  int idle = 0;
  const int most = test::cases(1, 3, 6);
  for (std::uint64_t seed = 3; seed <= 120 && idle < most; seed += 3) {
    Started c(seed);
    if (!c.automatic || !c.has_idle_cores())
      continue;
    SCOPED_TRACE(fmt::format("seed {}", seed));
    ++idle;
    const FusionPlan plan = fusion_of(c.step, c.chip, c.automatic->tiling);
    EXPECT_EQ(c.scheduled(c.tiling.with(plan)), c.automatic->figures);
    const StacksFile file = parse_stacks(stacks_yaml(plan, c.step.graph), "s.yaml");
    FusionPlan read = resolve_stacks(file, c.step.graph, c.step.graph);
    read.idle = idle_cores_of(file, c.chip);
    EXPECT_EQ(read.idle, plan.idle);
    EXPECT_EQ(c.scheduled(c.tiling.with(read)), c.automatic->figures);
    AllocationEvaluator evaluator(c.step, c.chip, c.automatic->tiling, {});
    EXPECT_EQ(evaluator.evaluate(evaluator.automatic()), c.automatic->figures);
    EXPECT_EQ(evaluator.given(), evaluator.automatic());
    const auto uses_idle_core = [&](const OperatorAllocation& choice) {
      return std::ranges::any_of(
          choice.cores, [&](CoreId core) { return c.automatic->tiling.idle[core.index()]; });
    };
    EXPECT_TRUE(std::ranges::any_of(evaluator.choices(), [&](const auto& of_op) {
      return std::ranges::any_of(of_op, uses_idle_core);
    })); // though others may use them
  }
  EXPECT_GT(idle, 0);
}

/// What --mapping-out and --stacks-out write, read again by choose_step() as `monet schedule` does.
TEST(Starts, AllocationsAreReadBackFromTheirFiles) {
  int fused = 0;
  int cores_changed = 0;
  const int steps = test::cases(8, 24, 60);
  for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(steps); ++seed) {
    Started c(seed);
    if (!c.automatic)
      continue;
    SCOPED_TRACE(fmt::format("seed {}", seed));
    AllocationEvaluator evaluator(c.step, c.chip, c.automatic->tiling, {});
    AllocationSearchOptions options;
    options.objective = c.objective;
    options.evaluations = 30;
    options.exact_plans = 0;
    const AllocationResult found = search_allocation(evaluator, options, {});
    const MappingFile mapping = parse_mapping(
        mapping_text(mapping_of(evaluator.allocation(found.best.plan), c.step.graph, nullptr)),
        "m.yaml");
    TilingOptions again;
    again.mapping = &mapping;
    if (c.is_fused()) {
      ++fused;
      const FusionPlan plan = fusion_of(c.step, c.chip, evaluator.tiling());
      const FusionPlan read = resolve_stacks(
          parse_stacks(stacks_yaml(plan, c.step.graph), "s.yaml"), c.step.graph, c.step.graph);
      again.stacks = read.stacks;
      again.slices = read.slices;
    }
    cores_changed += found.best.plan != evaluator.automatic() ? 1 : 0;
    const StepMode mode = c.is_fused() ? StepMode::fused : StepMode::layer_by_layer;
    EXPECT_EQ(choose_step(c.step, c.chip, {again, {}, {}}, {mode, c.objective}, c.costs).figures,
              found.best.figures);
  }
  EXPECT_GT(fused, 1);
  EXPECT_GT(cores_changed, 0);
}

/// Progress of each phase goes up, and never passes the total that it states.
class Ticks {
public:
  Ticks() {
    control.progress = [this](const SearchProgress& state) {
      ++count;
      EXPECT_GE(state.done, 0) << state.phase;
      if (state.total > 0) {
        EXPECT_LE(state.done, state.total) << state.phase;
      }
    };
  }

  SearchControl control;
  int count = 0;
};

TEST(Starts, ProgressStaysWithinItsTotal) {
  const int steps = test::cases(4, 20, 60);
  for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(steps); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Started c(seed);
    if (!c.automatic)
      continue;
    Ticks ticks;
    for (const std::int64_t evaluations : {1, 3, 40}) {
      FusionOptions fusion = c.fusion();
      fusion.evaluations = evaluations;
      fusion.tiles = seed % 2 == 0 ? 2000 : 0;
      fusion.complete_below = seed % 3 == 0 ? 3000 : 0;
      optimise_fusion({c.step, c.chip, c.costs, c.tiling, {}, 0, {}}, fusion, ticks.control);
      for (const bool front : {false, true}) {
        AllocationEvaluator evaluator(c.step, c.chip, c.automatic->tiling, {});
        AllocationSearchOptions allocation;
        allocation.front = front;
        allocation.evaluations = static_cast<std::size_t>(evaluations);
        allocation.exact_plans = seed % 3 == 0 ? 1e4 : 0;
        search_allocation(evaluator, allocation, ticks.control);
        best_random_allocation(evaluator, c.objective, 7, ticks.control);
      }
    }
    c.search_jointly(ticks.control);
    choose_step(c.step, c.chip, {},
                {StepMode::automatic, c.objective, nullptr, ticks.control.progress}, c.costs);
    EXPECT_GT(ticks.count, 20);
  }
}

TEST(Starts, ProgressOfRecomputationStaysWithinItsTotal) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Started c(seed);
    const std::vector<std::int64_t> cycles(c.step.graph.operators().size(), 10);
    const CheckpointSpace space = checkpoint_space(c.step, cycles);
    const CheckpointPoint whole = evaluate(space, store_everything(space.problem));
    Ticks ticks;
    for (const CheckpointMemory memory : {CheckpointMemory::peak, CheckpointMemory::stored}) {
      for (const CheckpointMethod method :
           {CheckpointMethod::automatic, CheckpointMethod::heuristics, CheckpointMethod::genetic}) {
        CheckpointOptions options;
        options.memory = memory;
        options.method = method;
        options.genetic = {5, 3};
        options.effort = 100'000;
        options.nodes = 2;
        const std::vector<std::int64_t> budgets{whole.memory(memory) * 9 / 10,
                                                whole.memory(memory) * 7 / 10};
        checkpoint_front(space, budgets, options, ticks.control);
      }
    }
    EXPECT_GT(ticks.count, 5);
  }
}

/// A part that a limit ended is told, whichever part it is.
TEST(Starts, LimitsThatEndAPartAreTold) {
  const std::atomic<bool> stop{true};
  SearchControl control;
  control.stop = &stop;
  Started c(3);
  ASSERT_TRUE(c.automatic);
  const std::vector<std::int64_t> cycles(c.step.graph.operators().size(), 10);
  const CheckpointSpace space = checkpoint_space(c.step, cycles);
  const std::int64_t peak = evaluate(space, store_everything(space.problem)).peak_bytes;
  for (const CheckpointMethod method :
       {CheckpointMethod::automatic, CheckpointMethod::heuristics, CheckpointMethod::genetic}) {
    CheckpointOptions options;
    options.method = method;
    const std::int64_t budget = std::max(min_memory(space, options.memory), peak * 9 / 10);
    const RecomputeResult found = checkpoint_front(space, {&budget, 1}, options, control).front();
    EXPECT_TRUE(found.interrupted ||
                (found.plan && static_cast<double>(found.outcome.cost) <= found.bound))
        << static_cast<int>(method);
  }
  const PairedStepMaker make = [&](const auto&) { return c.step; };
  const PairingResult pairs = choose_pairs({make, {}, c.chip, {}, c.costs}, {}, control);
  EXPECT_TRUE(pairs.interrupted);
}

} // namespace MONET_TEST_FILE
} // namespace monet
