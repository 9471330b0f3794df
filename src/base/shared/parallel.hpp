// Parallel loops whose results do not depend on the number of threads.
#pragma once

#include <cstddef>
#include <functional>

namespace monet {

/// Calls body(i) once for every i in [0, count), on up to `jobs` threads (0 = all cores, 1 = the
/// calling thread). Each call must write only to its slot i. After all threads have stopped, the
/// exception of the smallest failing i is rethrown, whichever thread threw it. check_stop() in a
/// body checks the caller's stop scopes.
void parallel_for(std::size_t count, int jobs, const std::function<void(std::size_t)>& body);

/// Calls body(first, n) for consecutive ranges of `length` indices that cover [0, count), on up to
/// `jobs` threads; the last range may be shorter. Errors and stops as in parallel_for().
void parallel_runs(std::size_t count, std::size_t length, int jobs,
                   const std::function<void(std::size_t, std::size_t)>& body);

} // namespace monet
