// Calls of Python functions from the library's threads. Used by bindings with progress or with
// parts in Python.
#pragma once

#include "console.hpp"
#include "interruptible.hpp"

#include <cxxabi.h>
#include <pybind11/pybind11.h>

#include <atomic>
#include <exception>
#include <functional>
#include <utility>

namespace monet::python {

/// The first exception that Python code raises during a call of the library, which it stops. Create
/// and destroy it with the interpreter's lock.
class Raised {
public:
  /// Runs `call` with the lock. Returns false if it raises, and sets `stop`, or if an earlier call
  /// raised.
  template <class Call>
  MONET_CATCHES_UNWINDING bool guard(std::atomic<bool>& stop, Call&& call) {
#ifdef __GLIBCXX__
    try {
      return with_lock(stop, std::forward<Call>(call));
    } catch (const abi::__forced_unwind&) { // before the lock is acquired
      sleep_until_the_end();
    }
#else
    return with_lock(stop, std::forward<Call>(call));
#endif
  }
  /// Rethrows the exception, if any. Acquires no lock: call it in the thread that called the
  /// library, after the work has ended.
  void rethrow() {
    if (exception_)
      std::rethrow_exception(exception_);
  }

private:
  template <class Call>
  MONET_CATCHES_UNWINDING bool with_lock(std::atomic<bool>& stop, Call&& call) {
    const pybind11::gil_scoped_acquire lock;
    if (exception_)
      return false;
    try {
      std::forward<Call>(call)();
      return true;
#ifdef __GLIBCXX__
    } catch (const abi::__forced_unwind&) { // here, since `lock` would release a lost lock
      sleep_until_the_end();
#endif
    } catch (...) {
      exception_ = std::current_exception();
      stop = true;
      return false;
    }
  }

  std::exception_ptr exception_; ///< guarded by the lock
};

/// Calls a Python callable with the name of every stage, and with the progress of searches: a dict
/// with phase, done, total, best, bound and seconds_left, with None for unknown values.
class ProgressCalls {
public:
  /// `callable`: may be None, which disables the calls.
  explicit ProgressCalls(pybind11::object callable) : callable_(std::move(callable)) {}

  /// Registers the calls with a session, which this object and `stop` must outlive. Progress is
  /// reported at most every 50 ms.
  void listen_to(cli::Session& session, std::atomic<bool>& stop) const;
  /// Calls run_interruptible(), then raises the exception of the callable, if any, in place of
  /// other exceptions.
  void run(const std::function<void(std::atomic<bool>& stop)>& work,
           OnInterrupt on_interrupt = OnInterrupt::raise);

private:
  pybind11::object callable_;
  mutable Raised raised_;
};

} // namespace monet::python
