// Calls of Python functions from the library's threads: stages and progress of a session. Used by
// module.cpp and commands.cpp.
#include "python_calls.hpp"

#include <chrono>
#include <cmath>
#include <memory>
#include <mutex>
#include <string>

namespace py = pybind11;

namespace monet::python {

namespace {

py::object known(double value) {
  return std::isfinite(value) ? py::object(py::float_(value)) : py::object(py::none());
}

py::dict state_of(const SearchProgress& state, double seconds_left) {
  py::dict told;
  told["phase"] = std::string(state.phase);
  told["done"] = state.done;
  told["total"] = state.total > 0 ? py::object(py::int_(state.total)) : py::object(py::none());
  told["best"] = known(state.best);
  told["bound"] = known(state.bound);
  told["seconds_left"] = known(seconds_left);
  return told;
}

} // namespace

void ProgressCalls::run(const std::function<void(std::atomic<bool>& stop)>& work,
                        OnInterrupt on_interrupt) {
  try {
    run_interruptible(work, on_interrupt);
  } catch (...) {
    raised_.rethrow();
    throw;
  }
  raised_.rethrow();
}

void ProgressCalls::listen_to(cli::Session& session, std::atomic<bool>& stop) const {
  if (callable_.is_none())
    return;
  session.context.begins = [this, &stop](std::string_view name) {
    if (!raised_.guard(stop, [&] { callable_(std::string(name)); }))
      throw Stopped("progress", false);
  };
  using Clock = std::chrono::steady_clock;
  session.progress.listener = [this, &stop, mutex = std::make_shared<std::mutex>(),
                               next = Clock::time_point{}](const SearchProgress& state,
                                                           double seconds_left) mutable {
    constexpr std::chrono::milliseconds kBetween{50};
    {
      const std::lock_guard lock(*mutex);
      const Clock::time_point now = Clock::now();
      if (now < next)
        return;
      next = now + kBetween;
    }
    raised_.guard(stop, [&] { callable_(state_of(state, seconds_left)); });
  };
}

} // namespace monet::python
