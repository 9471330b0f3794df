// Recomputation as a shortest way over (operators run for the first time, buffers there).
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
  std::size_t states = 200'000; ///< at most so many are looked at
  /// Plans that cost this or more beyond running everything once are of no interest.
  std::int64_t below = std::numeric_limits<std::int64_t>::max();
  /// Per operator and one more: what runs again from before its first run on costs at least.
  std::span<const std::int64_t> later;
};

struct StateSearch {
  bool complete = false;             ///< else nothing is known
  std::optional<RecomputePlan> plan; ///< the cheapest below; none, and complete: there is none
};

/// Exact, by A*: any operator again anywhere. Gives up where more than 64 buffers have bytes and a
/// producer, or there are too many states. Buffers go only when room is needed, in every order that
/// makes a difference.
StateSearch search_states(const RecomputeProblem& problem, std::int64_t budget,
                          const SearchControl& control, const StateSearchOptions& options);

} // namespace monet
