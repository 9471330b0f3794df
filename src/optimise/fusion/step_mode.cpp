// choose_step(): evaluates candidate tilings of a step by closed forms and schedules and returns
// the best; schedule, train and the searches start from it.
#include "monet/optimise/step_mode.hpp"

#include "base/shared/names.hpp"
#include "optimise/fusion/candidates.hpp"
#include "optimise/fusion/improve.hpp"
#include "tiling/shared/turns.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/stop.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <utility>

namespace monet {

namespace {

constexpr std::array<Named<StepMode>, 3> kModes{{{"auto", StepMode::automatic},
                                                 {"layer-by-layer", StepMode::layer_by_layer},
                                                 {"fused", StepMode::fused}}};

/// Lower bound on the objective of a schedule with this floor; 0 if the floor does not bound it.
double min_value(const ScheduleFloor& floor, Objective objective) {
  const auto latency = static_cast<double>(floor.latency.value);
  switch (objective) {
  case Objective::latency:
    return latency;
  case Objective::energy:
    return floor.energy.value;
  case Objective::edp:
    return latency * floor.energy.value;
  default:
    return 0;
  }
}

/// Typical ratio of a fused plan's scheduled cycles to its closed-form estimate.
constexpr double kMissed = 1.3;

/// Candidate ratios of all images to the images of a turn; the first that divides evenly is used.
constexpr std::array<std::int64_t, 6> kTurns{4, 2, 3, 5, 7, 11};
/// Maximum tiles of a step in turns; larger ones are not scheduled.
constexpr std::size_t kMaxTilesOfTurns = 1'000'000;

std::optional<TilingOptions> best_in_turns(const TrainingGraph& step, const Chip& chip,
                                           StepOptions options, Objective objective,
                                           CoreCostCache& costs);

class Choice {
public:
  Choice(const TrainingGraph& step, const Chip& chip, const StepOptions& options,
         const StepChoiceOptions& choice, CoreCostCache& costs)
      : step_(step), chip_(chip), options_(options), objective_(choice.objective),
        effort_(choice.effort), costs_(costs),
        known_(choice.shared ? &choice.shared->schedules : nullptr) {
    control_.jobs = options.schedule.jobs;
    control_.progress = choice.progress;
  }

  /// Adds a way. If `cycles` is an estimate, the way is skipped if another way is faster than that.
  void add(std::string name, TilingOptions tiling, double cycles = 0) {
    ways_.push_back({std::move(name), std::move(tiling), cycles});
  }

  /// Adds plans by cost, and variants on fewer cores where these may be better. Small slices gain
  /// nothing from more cores, and each core reads the shared inputs again.
  void add_groups(const TilingOptions& fused) {
    const FusionCovers covers(step_, fused.halo);
    const auto add_all = [&](const TilingOptions& tiling, std::string_view where, bool fewer) {
      auto found = estimated_plans(covers, step_, chip_, tiling, options_.schedule, costs_);
      for (std::size_t i = 0; i < found.plans.size(); ++i)
        add(fmt::format("groups {}{}", i + 1, where), tiling.with(std::move(found.plans[i])),
            fewer ? found.cycles[i] : 0);
    };
    add_all(fused, "", false);
    if (!fused.idle.empty() || fused.allocation != nullptr || gives_cores(fused.mapping))
      return;
    for (const std::vector<bool>& idle : idle_cores(chip_)) {
      TilingOptions some = fused;
      some.idle = idle;
      add_all(some, fmt::format(", {} cores unused", std::ranges::count(idle, true)), true);
    }
  }

  void add_turns(const TilingOptions& fused) {
    StepOptions options = options_;
    options.tiling = fused;
    if (auto tiling = best_in_turns(step_, chip_, options, objective_, costs_))
      add("turns", std::move(*tiling));
  }

  StepChoice run() {
    try_ways(true);
    if (!best_ && choice_.complete)
      throw InfeasibleError(why_not_);
    return std::move(choice_);
  }

  /// Runs all ways, then a brief search from the best. Layer by layer influences neither, so
  /// results do not depend on it.
  StepChoice run_and_search(const std::optional<TilingOptions>& unfused) {
    if (unfused)
      consider("layer by layer", *unfused, false);
    const std::optional<double> apart_value = std::exchange(best_, std::nullopt);
    const StepFigures figures = choice_.figures;
    try_ways(false);
    if (best_)
      search();
    if (apart_value && (!best_ || *apart_value <= *best_)) {
      best_ = apart_value;
      choice_.figures = figures;
      choice_.tiling = *unfused;
    }
    if (!best_)
      throw InfeasibleError(why_not_);
    if (options_.schedule.hopeless)
      choice_.complete = !options_.schedule.hopeless(
          {Cycles{choice_.figures.latency_cycles}, Picojoules{choice_.figures.energy_pj}});
    return std::move(choice_);
  }

private:
  /// Tries the ways. With `ask`, options.schedule.hopeless may end the last one.
  void try_ways(bool ask) {
    for (std::int64_t i = 0; i < std::ssize(ways_); ++i) {
      const Candidate& way = ways_[static_cast<std::size_t>(i)];
      control_.tell({"fusion: candidates", i, std::ssize(ways_), value()});
      const auto best = static_cast<double>(choice_.figures.latency_cycles);
      if (!best_ || objective_ != Objective::latency || way.cycles < best)
        consider(way.name, way.tiling, ask && i + 1 == std::ssize(ways_));
    }
  }

  void search() {
    FusionProblem problem{step_, chip_, costs_, choice_.tiling, options_.schedule};
    problem.tiling = choice_.tiling.with(fusion_of(step_, chip_, choice_.tiling));
    problem.schedule.hopeless = {};
    try {
      std::optional<FusionResult> found =
          search_briefly(problem, {objective_, effort_}, choice_.figures, control_);
      choice_.evaluations += found ? found->evaluations : 0;
      if (found && found->method != FusionMethod::none) // layer by layer is a separate way
        take({"search", found->figures, {}}, problem.tiling.with(std::move(found->plan)));
    } catch (const Stopped& stopped) {
      if (!stopped.by_clock()) // after a time limit, the ways tried so far suffice
        throw;
    }
  }

  /// Records the way with its tiling, and keeps it if it is the best.
  void take(StepCandidate tried, const TilingOptions& tiling) {
    if (tried.figures && (!best_ || tried.figures->value(objective_) < *best_)) {
      best_ = tried.figures->value(objective_);
      choice_.figures = *tried.figures;
      choice_.tiling = tiling;
    }
    choice_.tried.push_back(std::move(tried));
  }

  double value() const { return best_.value_or(std::numeric_limits<double>::quiet_NaN()); }

  void consider(const std::string& name, const TilingOptions& tiling, bool last) {
    const bool has_turns = std::ranges::any_of(
        tiling.slices, [](const auto& slices) { return slices && slices->turns > 1; });
    StepCandidate tried{name, std::nullopt, {}};
    StepOptions options = options_;
    options.tiling = tiling;
    if (has_turns)
      options.max_tiles = std::min(options.max_tiles, kMaxTilesOfTurns);
    bool given_up = false;
    ++choice_.evaluations;
    options.schedule.hopeless = [&](const ScheduleFloor& floor) {
      given_up = last && options_.schedule.hopeless && options_.schedule.hopeless(either(floor));
      return given_up || (best_ && min_value(floor, objective_) >= *best_);
    };
    try {
      tried.figures = figures_of(name, options);
    } catch (const InfeasibleError& error) {
      tried.why_not = error.what();
      if (why_not_.empty())
        why_not_ = tried.why_not;
    }
    choice_.complete = choice_.complete && !given_up;
    take(std::move(tried), tiling);
  }

  /// Figures of a way; nothing if its schedule was abandoned.
  std::optional<StepFigures> figures_of(const std::string& way, const StepOptions& options) const {
    ModelContext context{costs_};
    std::string key;
    std::optional<KnownSchedules::Outcome> known;
    if (known_ != nullptr && !options_.schedule.hopeless) {
      context.known = [&](const TileCosts& costs) {
        key = KnownSchedules::key(chip_, costs, way, best_);
        known = known_->find(key);
        return known.has_value();
      };
    }
    const ModelledStep modelled = model_step(step_, chip_, options, context);
    if (known)
      return known->figures;
    const auto figures =
        modelled.timeline.complete ? std::optional(modelled.figures) : std::nullopt;
    if (!key.empty())
      known_->add(std::move(key), {figures});
    return figures;
  }

  /// Element-wise minimum of the floor and the best way so far.
  ScheduleFloor either(ScheduleFloor floor) const {
    if (best_) {
      floor.latency = std::min(floor.latency, Cycles{choice_.figures.latency_cycles});
      floor.energy.value = std::min(floor.energy.value, choice_.figures.energy_pj);
    }
    return floor;
  }

  const TrainingGraph& step_;
  const Chip& chip_;
  const StepOptions& options_;
  Objective objective_;
  Effort effort_;
  CoreCostCache& costs_;
  KnownSchedules* known_;
  SearchControl control_;
  struct Candidate {
    std::string name;
    TilingOptions tiling;
    double cycles = 0; ///< estimate
  };
  std::vector<Candidate> ways_;
  StepChoice choice_;
  std::optional<double> best_;
  std::string why_not_;
};

bool gives_slices(const MappingFile* mapping) {
  return mapping != nullptr && std::ranges::any_of(mapping->entries, [](const MappingEntry& e) {
           return !e.intra_core_tiling.empty();
         });
}

/// The best way for a part of the images, found as in choose_step(), run in turns for all images.
/// Larger batches then cost the same per image, unless the accumulated gradients do not stay on the
/// chip between turns. Nothing if the step cannot run in turns (find_turns()) or its allocation is
/// given. `options.tiling` is fused.
std::optional<TilingOptions> best_in_turns(const TrainingGraph& step, const Chip& chip,
                                           StepOptions options, Objective objective,
                                           CoreCostCache& costs) {
  const std::optional<StepTurns> turns = find_turns(step);
  if (!turns || options.tiling.allocation != nullptr)
    return std::nullopt;
  const auto* count =
      std::ranges::find_if(kTurns, [&](std::int64_t n) { return turns->most % n == 0; });
  if (count == kTurns.end())
    return std::nullopt;
  const TrainingGraph one = one_turn(step, *turns, *count);
  options.schedule.hopeless = {};
  try {
    const StepChoice chosen =
        choose_step(one, chip, options, {StepMode::automatic, objective}, costs);
    return chosen.tiling.with(in_turns(fusion_of(one, chip, chosen.tiling), step, *turns, *count));
  } catch (const InfeasibleError&) {
    return std::nullopt; // all images cannot run in turns
  }
}

} // namespace

std::string_view name_of(Effort effort) {
  constexpr std::array<std::string_view, 3> kNames{"quick", "normal", "thorough"};
  return kNames.at(static_cast<std::size_t>(effort));
}

std::string_view name_of(StepMode mode) {
  return name_in(kModes, mode);
}

std::optional<StepMode> step_mode_named(std::string_view name) {
  return value_named(kModes, name);
}

StepChoice choose_step(const TrainingGraph& step, const Chip& chip, const StepOptions& options,
                       const StepChoiceOptions& how, CoreCostCache& costs) {
  const StepMode mode = how.mode;
  const SharedPlans* const shared = how.shared;
  Choice choice(step, chip, options, how, costs);
  TilingOptions fused = options.tiling;
  fused.mode = TilingMode::fused;
  TilingOptions unfused = options.tiling;
  unfused.mode = TilingMode::layer_by_layer;
  unfused.stacks.reset();
  unfused.slices.clear();
  unfused.idle.clear();
  const bool free = !options.tiling.stacks && !gives_slices(options.tiling.mapping);
  if (mode == StepMode::layer_by_layer || !free) {
    if (mode != StepMode::fused)
      choice.add("layer by layer", unfused);
    if (mode != StepMode::layer_by_layer)
      choice.add("stacks", fused);
    return choice.run();
  }
  if (shared == nullptr) {
    choice.add_groups(fused);
    choice.add_turns(fused);
    choice.add("stacks", fused);
    return choice.run_and_search(mode == StepMode::automatic ? std::optional(unfused)
                                                             : std::nullopt);
  }
  FusionCovers::Estimates estimates = shared->covers.plans(chip, options.tiling);
  choice.add("stacks", fused.with(shared->covers.stacks_by_memory(chip, options.tiling)));
  if (!estimates.plans.empty())
    choice.add("groups 1", fused.with(std::move(estimates.plans.front())),
               kMissed * estimates.cycles.front());
  if (mode == StepMode::automatic)
    choice.add("layer by layer", unfused, estimates.cycles_apart);
  return choice.run();
}

std::vector<StepChoice> first_ways(const TrainingGraph& step, const Chip& chip,
                                   const StepOptions& options, Objective objective,
                                   CoreCostCache& costs, const StepProgress& progress) {
  std::vector<StepChoice> ways;
  const auto add = [&](const StepOptions& how, Objective by) {
    try {
      ways.push_back(choose_step(step, chip, how, {StepMode::fused, by, nullptr, progress}, costs));
    } catch (const InfeasibleError&) { // other ways may fit
    }
  };
  add(options, objective);
  if (options.schedule.core_cost.objective != objective)
    add(options, options.schedule.core_cost.objective);
  if (options.tiling.stacks) {
    StepOptions free = options;
    free.tiling.stacks.reset();
    free.tiling.slices.clear();
    free.tiling.idle.clear();
    add(free, objective);
  }
  return ways;
}

} // namespace monet
