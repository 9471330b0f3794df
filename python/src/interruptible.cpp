#include "interruptible.hpp"

#include <pybind11/pybind11.h>

#include <chrono>
#include <exception>
#include <future>
#include <thread>

namespace py = pybind11;

namespace monet::python {

namespace {

/// With the lock, after a handler has raised: whether that is a Ctrl-C that only ends the work.
bool is_end(OnInterrupt on_interrupt, bool stopped) {
  if (on_interrupt == OnInterrupt::raise || stopped ||
      PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) == 0)
    return false;
  PyErr_Clear();
  return true;
}

} // namespace

void run_interruptible(const std::function<void(std::atomic<bool>& stop)>& work,
                       OnInterrupt on_interrupt) {
  constexpr std::chrono::milliseconds kBetweenSignals{20};
  std::atomic<bool> stop{false};
  bool interrupted = false;
  std::exception_ptr failure;
  {
    const py::gil_scoped_release without_lock;
    std::promise<void> ended;
    const std::future<void> end = ended.get_future();
    std::thread thread([&] {
      try {
        work(stop);
      } catch (...) {
        failure = std::current_exception();
      }
      ended.set_value();
    });
    while (end.wait_for(kBetweenSignals) == std::future_status::timeout) {
      const py::gil_scoped_acquire lock;
      if (PyErr_CheckSignals() == 0)
        continue;
      const bool ends = is_end(on_interrupt, stop);
      stop = true;
      if (ends)
        continue;
      interrupted = true;
      break; // the exception is set; no more Python until the work has ended
    }
    thread.join();
  }
  if (interrupted)
    throw py::error_already_set();
  if (failure)
    std::rethrow_exception(failure);
}

} // namespace monet::python
