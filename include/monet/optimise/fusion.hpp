// Which operators of a step run together, slice by slice, and in how many slices.
//
// What counts is schedule() on the tiles that make_tiles() cuts. Plans part the operators into
// groups that are convex (nothing between two members is outside) and connected (members are linked
// through tensors that they hand on or both read), and whose graph has no circle.
#pragma once

#include "monet/model/model_step.hpp"
#include "monet/optimise/search.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

enum class FusionMethod {
  cost,          ///< the search driven by the objective
  fewest_groups, ///< the original's: fewest groups under its constraints
  min_traffic,   ///< the original's: fewest bits between groups, likewise
  automatic,     ///< what choose_step() fuses
  none,          ///< layer by layer
};
std::string_view name_of(FusionMethod method);

/// A step on a chip, as it is tiled (the mapping and halo count) and scheduled.
struct FusionProblem {
  const TrainingGraph& step; ///< views folded
  const Chip& chip;
  CoreCostCache& costs;
  TilingOptions tiling;
  ScheduleOptions schedule;
  /// Plans with more bytes alive at once, every tensor counted once, are none; 0: no limit.
  std::int64_t max_live_bytes = 0;
  /// Plans to begin with. None: those of first_ways(), which no limit of the search ends.
  std::optional<std::vector<FusionPlan>> starts;
};

/// What fusion may be searched by: memory is none of them.
inline constexpr std::array kFusionObjectives{Objective::latency, Objective::energy, Objective::edp,
                                              Objective::dram};

struct FusionOptions {
  Objective objective = Objective::latency;
  FusionMethod method = FusionMethod::cost;
  /// Schedules of the whole step, beyond those that first_ways() makes.
  std::int64_t evaluations = 300;
  /// More schedules, up to five times as many, as long as all have no more tiles together.
  double tiles = 0;
  std::int64_t group_evaluations = 7000; ///< of groups on their own
  double group_tiles = 0;                ///< no more of these once they had so many; 0: no limit
  std::size_t longest = 6;               ///< operators of a group that is looked at on its own
  /// Spaces with no more plans are searched as a whole.
  std::int64_t complete_below = 3000;
  std::int64_t max_slices = 64;
  std::size_t loops = 2; ///< of the first and of the last operator, from which slices are tried
  /// The search by cost also tries the original study's two plans.
  bool tries_original = true;
  /// Also try to make halos again.
  bool recomputed_halos = false;
};

/// Slices to try for a group (members ascending): none, then every combination of one of the first
/// `loops` loops of the last or first member that may be cut, a power of two up to `max_slices`
/// and a way with halos. Without those that leave every member whole.
std::vector<StackSlices> slice_choices(const Graph& graph, std::span<const OpId> members,
                                       const FusionOptions& options);

/// Members are linked through tensors that they hand on or both read.
bool connected(const Graph& graph, std::span<const OpId> members);

/// How the plan of one method does; none where no such plan can be scheduled.
struct FusionAnswer {
  FusionMethod method = FusionMethod::none;
  FusionPlan plan;
  std::optional<StepFigures> figures;
  std::string why_not; ///< where there are none
};

/// Of so many candidates, those that a rule kept.
struct KeepRate {
  std::string rule;
  std::int64_t candidates = 0;
  std::int64_t kept = 0;

  /// Counts a candidate, which is kept where the rule holds.
  bool note(bool holds) {
    ++candidates;
    kept += holds ? 1 : 0;
    return holds;
  }
};

struct FusionResult {
  FusionMethod method = FusionMethod::none; ///< that found the plan
  FusionPlan plan;
  StepFigures figures;
  /// Of the objective. The bound holds for every plan of up to 200,000 tiles, 24 times those of
  /// layer by layer or those of a start, be it found or not.
  Certificate certificate;
  bool complete = false; ///< every plan of the space was scheduled: none is better
  struct Point {
    FusionPlan plan;
    StepFigures figures;
  };
  /// Of all plans that were scheduled and are within the limit, those that no other is as good as
  /// in the objective and in peak memory; by the objective.
  std::vector<Point> front;
  std::vector<FusionAnswer> compared;
  std::vector<KeepRate> kept;
  std::vector<std::string> ends; ///< per stack of the plan: why it has no further operator
  std::vector<double> trace;     ///< the best after each whole schedule
  std::int64_t evaluations = 0;  ///< whole steps scheduled
  std::int64_t group_evaluations = 0;
};

/// By cost never worse than layer by layer, the plans of problem.starts and, with tries_original,
/// the original's objectives (those of them that can be scheduled, in up to 200,000 tiles). Without
/// problem.starts it is never worse than choose_step() in any mode, however early it is ended.
/// Deterministic for a seed, whatever the number of threads. InfeasibleError where the step cannot
/// be scheduled at all.
FusionResult optimise_fusion(const FusionProblem& problem, const FusionOptions& options,
                             const SearchControl& control);

} // namespace monet
