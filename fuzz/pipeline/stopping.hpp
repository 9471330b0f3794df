// Ctrl-C after some seconds: a question may take long, but what asked it must be able to end it.
#pragma once

#include <atomic>

namespace monet::fuzz {

/// While it lives. No signal: libFuzzer has those for itself.
class StopAfter {
public:
  explicit StopAfter(double seconds = 3);
  ~StopAfter();
  StopAfter(const StopAfter&) = delete;
  StopAfter& operator=(const StopAfter&) = delete;

  const std::atomic<bool>* flag() const;
};

} // namespace monet::fuzz
