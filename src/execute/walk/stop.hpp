// Whether the user asked to stop, for loops that may run long.
#pragma once

#include "monet/base/stage.hpp"

#include <atomic>

namespace monet {

class StopCheck {
public:
  StopCheck() = default;
  /// Null: nobody asks. The flag must outlive the check.
  explicit StopCheck(const std::atomic<bool>* flag) : flag_(flag) {}

  /// Throws Stopped. Costs a load: inner loops of a few iterations go without.
  void operator()() const {
    if (flag_ != nullptr && flag_->load(std::memory_order_relaxed))
      throw Stopped("stopped while the graph was executed");
  }

private:
  const std::atomic<bool>* flag_ = nullptr;
};

} // namespace monet
