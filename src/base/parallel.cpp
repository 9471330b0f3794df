// Runs independent tasks on threads; emulation, data preparation and cost models use it.
#include "base/shared/parallel.hpp"

#include "monet/base/stop.hpp"
#include "monet/base/warnings.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace monet {

void parallel_for(std::size_t count, int jobs, const std::function<void(std::size_t)>& body) {
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  const std::size_t wanted = jobs <= 0 ? cores : static_cast<std::size_t>(jobs);
  const std::size_t threads = std::min(wanted, count);
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::size_t failed_at = count;
  std::exception_ptr failure;
  const StopScope* const scope = StopScope::current();
  WarningScope* const warnings = WarningScope::current();

  const auto work = [&] {
    for (std::size_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) {
      try {
        body(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (i < failed_at) {
          failed_at = i;
          failure = std::current_exception();
        }
      }
    }
  };
  std::vector<std::jthread> pool;
  try {
    for (std::size_t t = 1; t < threads; ++t)
      pool.emplace_back([&] {
        const StopScope::Adopt adopted(scope);
        const WarningScope::Adopt warned(warnings);
        work();
      });
  } catch (const std::system_error&) { // the threads created so far share the work
  }
  work();
  pool.clear(); // joins the threads
  if (failure)
    std::rethrow_exception(failure);
}

void parallel_runs(std::size_t count, std::size_t length, int jobs,
                   const std::function<void(std::size_t, std::size_t)>& body) {
  parallel_for((count + length - 1) / length, jobs, [&](std::size_t run) {
    const std::size_t first = run * length;
    body(first, std::min(length, count - first));
  });
}

} // namespace monet
