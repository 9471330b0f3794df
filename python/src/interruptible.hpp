// Long calls into the library: without the interpreter's lock, and stopped by Ctrl-C.
#pragma once

#include "monet/base/stop.hpp"

#include <atomic>
#include <functional>

namespace monet::python {

/// Runs `work` in a thread of its own, without the lock. Signals that Python handles (Ctrl-C) set
/// the flag it is given, and are raised once it has ended. What `work` throws is thrown here.
void run_interruptible(const std::function<void(const std::atomic<bool>& stop)>& work);

} // namespace monet::python
