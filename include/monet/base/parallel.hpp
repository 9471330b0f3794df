// Parallel loops whose results do not depend on the number of threads.
#pragma once

#include <cstddef>
#include <functional>

namespace monet {

/// Calls body(i) once for every i in [0, count), on up to `jobs` threads (0 = all cores, 1 = here).
/// Each call must write only to its own slot i. The exception of the smallest failing i is
/// rethrown, whatever thread met it, after all have stopped. check_stop() in a body heeds the
/// scopes of the caller.
void parallel_for(std::size_t count, int jobs, const std::function<void(std::size_t)>& body);

/// The same in runs of neighbours: body(first, how many) for [0, count), `length` of them at a
/// time; the last run may be shorter.
void parallel_runs(std::size_t count, std::size_t length, int jobs,
                   const std::function<void(std::size_t, std::size_t)>& body);

} // namespace monet
