// Recomputation as a shortest path over (number of first runs, live buffers).
#pragma once

#include "monet/optimise/recompute_problem.hpp"
#include "monet/optimise/search.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

namespace monet {

struct StateSearchOptions {
  std::size_t states = 200'000; ///< maximum number of visited states
  /// Only plans with a lower cost beyond running everything once are of interest.
  std::int64_t below = std::numeric_limits<std::int64_t>::max();
  /// Per operator and one more: lower bound on the cost of recomputation from its first run on.
  std::span<const std::int64_t> later;
};

struct StateSearch {
  bool complete = false;             ///< otherwise nothing is proven
  std::optional<RecomputePlan> plan; ///< cheapest plan below; empty and complete: no plan exists
};

/// Exact A* search in which any operator may run again anywhere. Returns incomplete if more than 64
/// buffers have bytes and a producer, or there are too many states. Buffers are evicted only when
/// memory is needed, in every order that makes a difference.
StateSearch search_states(const RecomputeProblem& problem, std::int64_t budget,
                          const SearchControl& control, const StateSearchOptions& options);

} // namespace monet
