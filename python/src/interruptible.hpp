// Long calls into the library: without the interpreter's lock, and stopped by Ctrl-C.
#pragma once

#include "monet/base/stop.hpp"

#include <atomic>
#include <functional>

namespace monet::python {

/// What Ctrl-C does beside stopping the work.
enum class OnInterrupt {
  raise, ///< KeyboardInterrupt, once the work has ended
  end,   ///< nothing: the work gives what it has so far; a second Ctrl-C raises
};

/// Runs `work` in a thread of its own, without the lock. Signals that Python handles (Ctrl-C) set
/// the flag it is given, and what they raise is raised once it has ended. `work` may set the flag
/// itself. What it throws is thrown here. Its warnings are kept for take_warnings().
void run_interruptible(const std::function<void(std::atomic<bool>& stop)>& work,
                       OnInterrupt on_interrupt = OnInterrupt::raise);

/// Where Python ends while a daemon thread is in the library, whoever asks for its lock is unwound
/// by pthread_exit(): destructors and handlers of C++ that are passed by that end the process with
/// an abort. So what catches it (abi::__forced_unwind) sleeps until the process has ended.
[[noreturn]] void sleep_until_the_end();

/// What an unwound thread catches has no object: the sanitizer of null references is not asked of
/// functions that catch it.
#define MONET_CATCHES_UNWINDING __attribute__((no_sanitize("null")))

} // namespace monet::python
