// Calls back into Python from the library's threads.
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

/// An exception of Python that ends what is under way; the first counts. Made and destroyed with
/// the interpreter's lock.
class Raised {
public:
  /// Runs `call` with the lock; false where it raised, now or before: then `stop` is set.
  template <class Call>
  MONET_CATCHES_UNWINDING bool guard(std::atomic<bool>& stop, Call&& call) {
#ifdef __GLIBCXX__
    try {
      return with_lock(stop, std::forward<Call>(call));
    } catch (const abi::__forced_unwind&) { // before it has the lock
      sleep_until_the_end();
    }
#else
    return with_lock(stop, std::forward<Call>(call));
#endif
  }
  /// Without the lock, in the thread that called the library.
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
    } catch (const abi::__forced_unwind&) { // in here: `lock` would give back what it has lost
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

/// A callable that is told the name of every stage, and of searches how far they are: a dict with
/// phase, done, total, best and bound (None where not known) and seconds_left.
class ProgressCalls {
public:
  /// None: nobody is told.
  explicit ProgressCalls(pybind11::object callable) : callable_(std::move(callable)) {}

  /// For as long as both live. Searches are told of a few times a second.
  void listen_to(cli::Session& session, std::atomic<bool>& stop) const;
  /// run_interruptible(), and what a call raised in place of what came of that.
  void run(const std::function<void(std::atomic<bool>& stop)>& work,
           OnInterrupt on_interrupt = OnInterrupt::raise);

private:
  pybind11::object callable_;
  mutable Raised raised_;
};

} // namespace monet::python
