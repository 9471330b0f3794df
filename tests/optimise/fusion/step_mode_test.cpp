// The choice between layer by layer and fused.
#include "level.hpp"
#include "schedule/random_networks.hpp"
#include "schedule/random_systems.hpp"
#include "schedule/schedule_alone.hpp"

#include "monet/base/errors.hpp"
#include "monet/hardware/read_hardware.hpp"
#include "monet/optimise/step_mode.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>

namespace monet {
namespace {

using testing::Random;

StepFigures stages(const TrainingGraph& step, const Chip& chip, const TilingOptions& tiling) {
  CoreCostCache costs;
  return model_step(step, chip, {tiling, {}, {}}, {costs}).figures;
}

TEST(StepMode, automatic_is_never_above_the_others) {
  int fused_wins = 0;
  int apart_chosen = 0;
  int searched = 0;
  const int steps = test::cases(40, 120, 120);
  for (std::uint64_t seed = 121; seed < 121 + static_cast<std::uint64_t>(steps); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    const TrainingGraph step =
        testing::random_step(random, {.operators = 6, .training = seed % 3 == 0});
    const Chip chip = testing::random_chip(random, {.cores = 4});
    const auto objective = static_cast<Objective>(seed % 3);
    CoreCostCache costs;
    const auto choose = [&](StepMode mode) {
      return choose_step(step, chip, {}, {mode, objective}, costs);
    };
    StepChoice chosen;
    try {
      chosen = choose(StepMode::automatic);
    } catch (const InfeasibleError&) {
      EXPECT_THROW(choose(StepMode::layer_by_layer), InfeasibleError);
      EXPECT_THROW(choose(StepMode::fused), InfeasibleError);
      continue;
    }
    EXPECT_EQ(stages(step, chip, chosen.tiling), chosen.figures);
    const double value = chosen.figures.value(objective);
    double least = std::numeric_limits<double>::infinity();
    for (const StepMode mode : {StepMode::layer_by_layer, StepMode::fused}) {
      try {
        const double other = choose(mode).figures.value(objective);
        least = std::min(least, other);
        fused_wins += mode == StepMode::layer_by_layer && value < other ? 1 : 0;
      } catch (const InfeasibleError&) {
      }
    }
    apart_chosen += chosen.tiling.mode == TilingMode::layer_by_layer ? 1 : 0;
    EXPECT_EQ(value, least); // what is found fused does not depend on layer by layer
    const auto search = std::ranges::find(chosen.tried, "search", &StepCandidate::name);
    searched += search != chosen.tried.end() && search->figures->value(objective) == value &&
                        std::ranges::all_of(chosen.tried,
                                            [&](const StepCandidate& other) {
                                              return other.name == "search" || !other.figures ||
                                                     other.figures->value(objective) > value;
                                            })
                    ? 1
                    : 0;
  }
  EXPECT_GT(12 * fused_wins, steps);
  EXPECT_GT(apart_chosen, 0);      // both happen
  EXPECT_GT(12 * searched, steps); // and the brief search finds what no other way does
}

TEST(StepMode, given_stacks_are_the_only_way_to_fuse) {
  Random random(7);
  const TrainingGraph step = testing::random_step(random, {.operators = 6});
  const Chip chip = testing::random_chip(random, {.cores = 4});
  StepOptions options;
  options.tiling.stacks =
      std::vector<std::vector<OpId>>{{OpId(std::size_t{0}), OpId(std::size_t{1})}};
  CoreCostCache costs;
  const StepChoice fused =
      choose_step(step, chip, options, {StepMode::fused, Objective::latency}, costs);
  ASSERT_EQ(fused.tried.size(), 1U);
  EXPECT_EQ(fused.tiling.stacks, options.tiling.stacks);
  EXPECT_EQ(choose_step(step, chip, options, {StepMode::automatic, Objective::latency}, costs)
                .tried.size(),
            2U);
}

TEST(StepMode, gives_up_with_a_floor_of_all_ways) {
  Random random(11);
  const TrainingGraph step = testing::random_step(random, {.operators = 6, .training = true});
  const Chip chip = testing::random_chip(random, {.cores = 4});
  CoreCostCache costs;
  const StepFigures best =
      choose_step(step, chip, {}, {StepMode::automatic, Objective::latency}, costs).figures;
  StepOptions options;
  int asked = 0;
  options.schedule.hopeless = [&](const ScheduleFloor& floor) {
    ++asked;
    EXPECT_LE(floor.latency.value, best.latency_cycles);
    EXPECT_LE(floor.energy.value, best.energy_pj * (1 + 1e-9));
    return false;
  };
  EXPECT_EQ(
      choose_step(step, chip, options, {StepMode::automatic, Objective::latency}, costs).figures,
      best);
  EXPECT_GT(asked, 0);
  options.schedule.hopeless = [](const ScheduleFloor&) { return true; };
  EXPECT_FALSE(
      choose_step(step, chip, options, {StepMode::automatic, Objective::latency}, costs).complete);
}

/// Where there is a mapping, layer by layer is a plan too, of whole operators, but no way to fuse.
TEST(StepMode, what_is_fused_under_a_mapping_is_fused) {
  const MappingFile mapping;
  int searched = 0;
  for (std::uint64_t seed = 401; seed <= 440; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    const TrainingGraph step =
        testing::random_step(random, {.operators = 1 + static_cast<int>(seed % 3)});
    const Chip chip = testing::random_chip(random, {.cores = 3});
    StepOptions options;
    options.tiling.mapping = &mapping;
    CoreCostCache costs;
    try {
      const auto choose = [&](StepMode mode) {
        return choose_step(step, chip, options, {mode, Objective::latency}, costs);
      };
      const StepChoice fused = choose(StepMode::fused);
      const auto search = std::ranges::find(fused.tried, "search", &StepCandidate::name);
      if (search == fused.tried.end())
        continue;
      ++searched;
      EXPECT_LT(search->figures->latency_cycles,
                choose(StepMode::layer_by_layer).figures.latency_cycles);
    } catch (const InfeasibleError&) {
    }
  }
  EXPECT_GT(searched, 5);
}

TEST(StepMode, the_search_for_groups_is_never_above_it) {
  for (std::uint64_t seed = 301; seed <= 312; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    const TrainingGraph step = testing::random_step(random, {.operators = 7, .training = true});
    const Chip chip = testing::random_chip(random, {.cores = 3});
    StepOptions options;
    options.tiling.idle.assign(chip.cores.size(), false);
    CoreCostCache costs;
    try {
      const StepFigures chosen =
          choose_step(step, chip, options, {StepMode::automatic, Objective::latency}, costs)
              .figures;
      FusionOptions fusion;
      fusion.evaluations = 100;
      fusion.group_evaluations = 10;
      fusion.complete_below = 0;
      const FusionProblem problem{step, chip, costs, options.tiling, {}};
      EXPECT_LE(optimise_fusion(problem, fusion, {}).figures.latency_cycles, chosen.latency_cycles);
    } catch (const InfeasibleError&) {
    }
  }
}

/// What a chip with two of the cores, or with three, does best is looked at on four.
TEST(StepMode, looks_at_what_fewer_cores_do) {
  Random random(7);
  const TrainingGraph step = testing::random_step(random, {.operators = 6, .training = true});
  const Chip chip = read_chip(MONET_SOURCE_DIR "/data/hardware/tpu_like_quad_core.yaml");
  CoreCostCache costs;
  const StepChoice chosen =
      choose_step(step, chip, {}, {StepMode::automatic, Objective::energy}, costs);
  for (int idle = 1; idle <= 3; ++idle) {
    const std::string name = fmt::format("groups 1, {} cores unused", idle);
    EXPECT_NE(std::ranges::find(chosen.tried, name, &StepCandidate::name), chosen.tried.end())
        << name;
  }
}

TEST(StepMode, has_names) {
  for (const StepMode mode : {StepMode::layer_by_layer, StepMode::fused, StepMode::automatic})
    EXPECT_EQ(step_mode_named(name_of(mode)), mode);
  EXPECT_FALSE(step_mode_named("fuse"));
}

} // namespace
} // namespace monet
