// Long calls into the library, which run without the interpreter's lock and stop on Ctrl-C.
#pragma once

#include "monet/base/stop.hpp"

#include <atomic>
#include <functional>

namespace monet::python {

/// The effect of Ctrl-C, which stops the work in any case.
enum class OnInterrupt {
  raise, ///< raises KeyboardInterrupt after the work has ended
  end,   ///< returns the result so far; a second Ctrl-C raises
};

/// Runs `work` in a new thread without the lock, and rethrows its exceptions. Signals that Python
/// handles (Ctrl-C) set the flag `stop`; exceptions of their handlers are raised after `work` has
/// ended. `work` may set the flag, too. Its warnings are kept for take_warnings().
void run_interruptible(const std::function<void(std::atomic<bool>& stop)>& work,
                       OnInterrupt on_interrupt = OnInterrupt::raise);

/// Sleeps until the process has ended. If Python finalizes while a daemon thread is in the library,
/// pthread_exit() unwinds a thread that acquires the lock. The process aborts if this passes
/// destructors or handlers of C++, so handlers of abi::__forced_unwind call this function.
[[noreturn]] void sleep_until_the_end();

/// Disables the null sanitizer for functions that catch abi::__forced_unwind, because that
/// exception has no object.
#define MONET_CATCHES_UNWINDING __attribute__((no_sanitize("null")))

} // namespace monet::python
