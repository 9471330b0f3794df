// Runs long calls of the library in a thread, without the interpreter's lock, while the calling
// thread handles signals. Used by all bindings of long calls.
#include "interruptible.hpp"

#include "call_warnings.hpp"

#include <cxxabi.h>
#include <pybind11/pybind11.h>

#include <chrono>
#include <exception>
#include <future>
#include <thread>

namespace py = pybind11;

namespace monet::python {

namespace {

/// Whether an exception of a signal handler is a Ctrl-C that only ends the work, and clears it if
/// so. Needs the lock.
bool is_end(OnInterrupt on_interrupt, bool stopped) {
  if (on_interrupt == OnInterrupt::raise || stopped ||
      PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) == 0)
    return false;
  PyErr_Clear();
  return true;
}

/// Whether this is Python's main thread, the only one that handles signals.
bool is_main_thread() {
  const py::module_ threading = py::module_::import("threading");
  const py::object here = threading.attr("get_ident")();
  const py::object of_main = threading.attr("main_thread")().attr("ident");
  return here.equal(of_main);
}

/// Whether the interpreter is finalizing. Needs no lock.
bool python_ends() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

MONET_CATCHES_UNWINDING void take_lock(PyThreadState* state) {
#ifdef __GLIBCXX__
  try {
    PyEval_RestoreThread(state);
  } catch (const abi::__forced_unwind&) {
    sleep_until_the_end();
  }
#else
  PyEval_RestoreThread(state);
#endif
}

} // namespace

void sleep_until_the_end() {
  for (;;)
    std::this_thread::sleep_for(std::chrono::hours(1));
}

void run_interruptible(const std::function<void(std::atomic<bool>& stop)>& work,
                       OnInterrupt on_interrupt) {
  constexpr std::chrono::milliseconds kBetweenSignals{20};
  const bool hears_signals = is_main_thread();
  std::atomic<bool> stop{false};
  bool interrupted = false;
  std::exception_ptr failure;
  CallWarnings warnings;
  std::promise<void> ended;
  const std::future<void> end = ended.get_future();
  std::thread thread([&] {
    const WarningScope::Adopt adopted(&warnings.scope());
    try {
      work(stop);
    } catch (...) {
      failure = std::current_exception();
    }
    ended.set_value();
  });
  PyThreadState* state = PyEval_SaveThread();
  while (!interrupted && end.wait_for(kBetweenSignals) == std::future_status::timeout) {
    if (!hears_signals) {
      if (python_ends())
        stop = true;
      continue;
    }
    take_lock(state);
    if (PyErr_CheckSignals() != 0) {
      interrupted = !is_end(on_interrupt, stop);
      stop = true;
    }
    state = PyEval_SaveThread(); // after an interrupt, the exception stays set
  }
  thread.join();
  take_lock(state);
  if (interrupted)
    throw py::error_already_set();
  if (failure)
    std::rethrow_exception(failure);
}

} // namespace monet::python
