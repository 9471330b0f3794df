// Warnings: what was ignored, guessed, clipped or assumed of the user's input, with its place.
#pragma once

#include "monet/base/errors.hpp"

#include <functional>
#include <mutex>
#include <string_view>
#include <vector>

namespace monet {

/// Collects the warnings of its thread, and of the threads of parallel loops that start from there,
/// while it lives. The innermost scope receives them. Any number of threads may warn at once.
class WarningScope {
public:
  using Listener = std::function<void(const InputProblem&)>;

  /// `listener` is called with each warning as it comes, but once for equal ones; it may be empty.
  explicit WarningScope(Listener listener = {});
  ~WarningScope();
  WarningScope(const WarningScope&) = delete;
  WarningScope& operator=(const WarningScope&) = delete;

  /// The innermost of this thread, or null.
  static WarningScope* current();
  /// Makes the scope of the thread that started this one the innermost.
  class Adopt {
  public:
    explicit Adopt(WarningScope* of_starter);
    ~Adopt();
    Adopt(const Adopt&) = delete;
    Adopt& operator=(const Adopt&) = delete;

  private:
    WarningScope* before_;
  };

  void add(InputProblem warning);
  /// Each warning once, by place, then by text, whatever thread found it.
  std::vector<InputProblem> warnings() const;

private:
  Listener listener_;
  WarningScope* before_;
  mutable std::mutex mutex_;
  std::vector<InputProblem> warnings_;
};

/// Adds a warning to the innermost scope of this thread; without a scope it is lost.
void warn(SourceLoc where, std::string_view what, std::string_view hint = {});

} // namespace monet
