// SearchControl and certificates, shared by every search: limits, progress reports and optimality
// gaps.
#include "monet/optimise/search.hpp"

#include "monet/base/warnings.hpp"

#include <algorithm>
#include <cmath>

namespace monet {

bool SearchControl::interrupted() const {
  return (stop != nullptr && stop->load(std::memory_order_relaxed)) ||
         std::chrono::steady_clock::now() >= deadline;
}

void SearchControl::begin(const std::function<void()>& make) const {
  const StopScope scope(StopRequest{stop_at_once});
  try {
    make();
  } catch (const Stopped&) {
    if (stop_at_once != nullptr && stop_at_once->load(std::memory_order_relaxed))
      warn({}, "the search was terminated before it had the plan of monet schedule: its answer may "
               "be worse");
    throw;
  }
}

bool run_search(const SearchParts& parts, const SearchControl& control) {
  return control.finishes([&] {
    if (parts.start)
      control.begin(parts.start);
    if (parts.bound) {
      const StopScope scope(control.first_plan_request());
      parts.bound();
    }
    const StopScope scope(control.stop_request());
    parts.improve();
  });
}

Stopped SearchControl::stopped(const std::string& when) const {
  const bool is_asked = stop != nullptr && stop->load(std::memory_order_relaxed);
  return Stopped((is_asked ? "stopped " : "the time limit was reached ") + when, !is_asked);
}

double SearchControl::seconds_left() const {
  if (deadline == std::chrono::steady_clock::time_point::max())
    return std::numeric_limits<double>::infinity();
  const std::chrono::duration<double> left = deadline - std::chrono::steady_clock::now();
  return std::max(0.0, left.count());
}

SearchControl SearchControl::share(int parts) const {
  SearchControl control = *this;
  const double left = seconds_left();
  if (std::isfinite(left))
    control.deadline = std::chrono::steady_clock::now() +
                       std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                           std::chrono::duration<double>(left / parts));
  return control;
}

double Certificate::gap() const {
  if (best <= bound)
    return 0.0;
  return bound > 0 ? (best - bound) / bound : std::numeric_limits<double>::infinity();
}

} // namespace monet
