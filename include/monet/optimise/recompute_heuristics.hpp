// What others use to choose what to recompute, to start from and to compare with. None of them
// knows how good its answer is.
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

enum class RecomputeHeuristic {
  chen_sqrt,   ///< Chen et al. 2016: one kept operator in sqrt(n)
  chen_greedy, ///< the same paper: a kept operator whenever a segment's bytes pass a threshold
  dtr,         ///< Kirisame et al. 2021, h_DTR with the evicted neighbourhood by union-find
  dtr_local,   ///< cost / (bytes x staleness)
  msps,        ///< cost with that of evicted ancestors / bytes
  lru,         ///< the least recently used
  largest,     ///< the largest
};
inline constexpr std::array kRecomputeHeuristics = {
    RecomputeHeuristic::chen_sqrt, RecomputeHeuristic::chen_greedy, RecomputeHeuristic::dtr,
    RecomputeHeuristic::dtr_local, RecomputeHeuristic::msps,        RecomputeHeuristic::lru,
    RecomputeHeuristic::largest};
/// "sqrt", "greedy", "dtr", "dtr-local", "msps", "lru", "largest"
std::string_view to_string(RecomputeHeuristic heuristic);

struct HeuristicPlan {
  std::optional<RecomputePlan> plan; ///< replays within the budget
  RecomputeOutcome outcome;
  std::string why_not; ///< without a plan
};

/// The heuristic's plan for a budget in bytes.
///
/// The online ones are re-simulated run by run: an operator's outputs and scratch must fit beside
/// what is there before it runs, outputs of a run again beside their old copies; what is evicted is
/// made again when it is read, its inputs first. `released` gives the operator after which the
/// program drops each buffer, which is then evicted at once; empty: after its last reader. Kept
/// buffers are made again at the end. A run that costs more than ten times the base is given up.
///
/// Chen's choose among operators before the peak of storing everything: those whose output alone
/// crosses to later ones (articulation points), or all; the better of the two. What is not kept is
/// made again, its inputs first, when it is first read after the peak, and then stays.
HeuristicPlan run_heuristic(const RecomputeProblem& problem, std::int64_t budget,
                            RecomputeHeuristic heuristic, const SearchControl& control = {},
                            std::span<const std::uint32_t> released = {});

} // namespace monet
