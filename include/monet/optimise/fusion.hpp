// optimise_fusion(): optimises the groups of operators that run together slice by slice, and the
// number of slices.
//
// Plans are evaluated by schedule() on the tiles of make_tiles(). A plan partitions the operators
// into groups that are convex (no operator outside lies between two members) and connected. Members
// are connected through tensors that one hands to another or that both read. The graph of groups is
// acyclic.
// Example:
//   FusionPlan fuse_for_energy(const TrainingGraph& step, const Chip& chip) {
//     CoreCostCache costs;
//     FusionOptions options;
//     options.objective = Objective::energy;
//     return optimise_fusion({step, chip, costs, {}, {}, 0, {}}, options, {}).plan;
//   }
#pragma once

#include "monet/base/options.hpp"
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

/// Method of the search for groups.
enum class FusionMethod {
  cost,          ///< search driven by the objective
  fewest_groups, ///< original study's: fewest groups under its constraints
  min_traffic,   ///< original study's: fewest bits between groups, same constraints
  automatic,     ///< groups of choose_step()
  none,          ///< layer by layer
};
std::string_view name_of(FusionMethod method);
/// All methods, in the order of --help.
inline constexpr std::array kFusionMethods{FusionMethod::cost, FusionMethod::fewest_groups,
                                           FusionMethod::min_traffic, FusionMethod::automatic,
                                           FusionMethod::none};

/// A step on a chip, with its tiling and schedule options. The mapping, halo mode and allocation
/// apply to every plan. Stacks, slices and idle cores only affect the initial plans.
struct FusionProblem {
  const TrainingGraph& step; ///< with views folded
  const Chip& chip;
  CoreCostCache& costs;
  TilingOptions tiling;
  ScheduleOptions schedule;
  /// Limit on live bytes, each tensor counted once; plans above it are infeasible. 0: no limit.
  std::int64_t max_live_bytes = 0;
  /// Initial plans. nullopt: those of first_ways(), which no limit of the search interrupts.
  std::optional<std::vector<FusionPlan>> starts;
};

/// Objectives that the search for groups supports; memory is not among them.
inline constexpr std::array kFusionObjectives{Objective::latency, Objective::energy, Objective::edp,
                                              Objective::dram};

/// Options of optimise_fusion().
struct FusionOptions {
  Objective objective = Objective::latency;
  FusionMethod method = FusionMethod::cost;
  /// Number of schedules of the whole step, in addition to those of first_ways(), of layer by layer
  /// and of plans by closed forms.
  std::int64_t evaluations = 300;
  /// Total number of tiles up to which the search may exceed `evaluations`, at most fivefold; 0: it
  /// may not.
  double tiles = 0;
  std::int64_t group_evaluations = 7000; ///< evaluations of isolated groups
  /// Total number of tiles in evaluations of isolated groups, after which no more are made; 0: no
  /// limit.
  double group_tiles = 0;
  std::size_t longest = 6; ///< maximum operators of an isolated group, without updates
  /// Number of plans up to which a space is searched exhaustively.
  std::int64_t complete_below = 3000;
  /// Maximum number of slices of a group.
  std::int64_t max_slices = 64;
  /// Number of outermost loops of the first and last operators that slicing considers.
  std::size_t loops = 2;
  /// Whether the search by cost also evaluates the two plans of the original study.
  bool tries_original = true;
  /// Whether to consider recomputed halos also.
  bool recomputed_halos = false;

  /// Limits the search to its `evaluations`, and groups to 20 times this number, 1,000,000 at most.
  void limit_effort();
};
/// Options of `monet optimise fusion`.
inline constexpr OptionRow<FusionOptions> kFusionOptions[] = {
    {"objective", option_choice<kFusionObjectives, &FusionOptions::objective>,
     "Objective to minimise; dram: bytes to and from the off-chip memory"},
    {"method",
     option_choice<kFusionMethods, &FusionOptions::method>,
     "cost: search; fewest-groups, least-traffic: the original study's objectives",
     {.place = OptionPlace::command}},
    {"with_original",
     option_field<&FusionOptions::tries_original>,
     "Also evaluate and list the plans of the original study's objectives",
     {.place = OptionPlace::command}},
    {"evaluations",
     option_field<&FusionOptions::evaluations>,
     "Maximum number of schedules of the whole step after the initial ones; for single groups 20 "
     "times this number",
     {.range = NumberRange{1, 1'000'000}, .hides_default = true},
     [](FusionOptions& options) { options.limit_effort(); }},
};

/// Slices to try for a group, whose members are ascending. The first choice is no slicing. Each
/// other choice cuts one of the first `loops` loops of the last or first member. It makes 2, 4, 8,
/// ... parts, up to `max_slices` or the size of the loop. With recomputed_halos, each of these is
/// followed by one with recomputed halos. A single operator has only the first choice.
std::vector<StackSlices> slice_choices(const Graph& graph, std::span<const OpId> members,
                                       const FusionOptions& options);

/// Whether the members are connected through tensors that one hands to another or that both read.
bool connected(const Graph& graph, std::span<const OpId> members);

/// Plan of one method and its figures.
struct FusionAnswer {
  FusionMethod method = FusionMethod::none;
  FusionPlan plan;
  /// Figures of the plan; nullopt if it cannot be scheduled.
  std::optional<StepFigures> figures;
  std::string why_not; ///< reason for missing figures
};

/// Number of candidates that a pruning rule saw and kept.
struct KeepRate {
  std::string rule;
  std::int64_t candidates = 0;
  std::int64_t kept = 0;

  /// Counts a candidate and returns `holds`; the candidate is kept if the rule holds.
  bool note(bool holds) {
    ++candidates;
    kept += holds ? 1 : 0;
    return holds;
  }
};

/// Result of optimise_fusion().
struct FusionResult {
  FusionMethod method = FusionMethod::none; ///< method that found the plan
  FusionPlan plan;
  StepFigures figures;
  /// Value and bound of the objective. The bound covers every plan with at most 200,000 tiles. The
  /// limit is higher if the best start, or layer by layer times 24, has more tiles.
  Certificate certificate;
  bool complete = false; ///< true: exhaustive search; no plan is better
  /// A plan on the front, and its figures.
  struct Point {
    FusionPlan plan;
    StepFigures figures;
  };
  /// Scheduled plans within the memory limit for which no other is as good in both the objective
  /// and peak memory, sorted by the objective.
  std::vector<Point> front;
  /// Plan of each method that was tried.
  std::vector<FusionAnswer> compared;
  /// Effect of each pruning rule.
  std::vector<KeepRate> kept;
  std::vector<std::string> ends; ///< per stack of the plan: reason why it ends
  std::vector<double> trace;     ///< best value after each schedule of the whole step
  std::int64_t evaluations = 0;  ///< schedules of the whole step
  std::int64_t group_evaluations = 0;
};

/// Searches for the best groups. The search by cost is no worse than layer by layer, the plans of
/// problem.starts and, with tries_original, the original study's plans (if they can be scheduled,
/// with at most 200,000 tiles). Without problem.starts it is no worse than choose_step() in any
/// mode, even if it is interrupted early. The result depends on the seed, not on the number of
/// threads. Throws InfeasibleError if the step cannot be scheduled at all.
FusionResult optimise_fusion(const FusionProblem& problem, const FusionOptions& options,
                             const SearchControl& control);

} // namespace monet
