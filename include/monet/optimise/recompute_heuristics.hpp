// run_heuristic(): published recomputation heuristics, as starting points and for comparison. They
// provide no bounds.
#pragma once

#include "monet/optimise/recompute_problem.hpp"
#include "monet/optimise/search.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace monet {

/// A published heuristic. Those of Chen et al. select the operators to keep in advance; the others
/// are online and evict buffers when memory is full.
enum class RecomputeHeuristic {
  chen_sqrt, ///< Chen et al. 2016: keeps one operator in sqrt(n)
  /// Chen et al. 2016: keeps an operator whenever a segment's bytes exceed a threshold.
  chen_greedy,
  dtr,       ///< Kirisame et al. 2021: h_DTR, evicted neighbourhood by union-find
  dtr_local, ///< score: cost / (bytes x staleness)
  msps,      ///< score: (cost + cost of evicted ancestors) / bytes
  lru,       ///< evicts the least recently used buffer
  largest,   ///< evicts the largest buffer
};
/// All heuristics, in the order of the enumeration.
inline constexpr std::array kRecomputeHeuristics = {
    RecomputeHeuristic::chen_sqrt, RecomputeHeuristic::chen_greedy, RecomputeHeuristic::dtr,
    RecomputeHeuristic::dtr_local, RecomputeHeuristic::msps,        RecomputeHeuristic::lru,
    RecomputeHeuristic::largest};
/// Name of a heuristic: "sqrt", "greedy", "dtr", "dtr-local", "msps", "lru" or "largest".
std::string_view to_string(RecomputeHeuristic heuristic);

/// Plan of a heuristic and its figures.
struct HeuristicPlan {
  std::optional<RecomputePlan> plan; ///< within the budget; nullopt: no plan
  RecomputeOutcome outcome;
  std::string why_not; ///< reason for a missing plan
};

/// Finds a heuristic's plan within a budget of live bytes.
///
/// Online heuristics (dtr, dtr_local, msps, lru, largest) are simulated run by run. Before an
/// operator runs, its outputs and scratch must fit in addition to the live buffers; outputs of a
/// repeated run must fit in addition to their old copies. An evicted buffer is recomputed when it
/// is read, its inputs first. `released` contains the operator after which the program drops each
/// buffer, which is then evicted at once; empty: after its last reader. Kept buffers are recomputed
/// at the end. The simulation stops if the cost exceeds ten times the base cost.
///
/// Chen's heuristics select among operators before the peak of storing everything. They try both
/// the articulation points, whose output alone is read by later operators, and all operators, and
/// use the better result. A buffer that is not kept is recomputed, its inputs first, when it is
/// first read after the peak, and then stays.
HeuristicPlan run_heuristic(const RecomputeProblem& problem, std::int64_t budget,
                            RecomputeHeuristic heuristic, const SearchControl& control = {},
                            std::span<const std::uint32_t> released = {});

} // namespace monet
