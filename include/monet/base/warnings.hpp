// Warnings: parts of the user's input that were ignored, guessed, clipped or assumed, with their
// positions.
// Example:
//   std::vector<InputProblem> warnings_of(const std::function<void()>& read) {
//     const WarningScope scope;
//     read(); // such as read_onnx()
//     return scope.warnings();
//   }
#pragma once

#include "monet/base/errors.hpp"

#include <functional>
#include <mutex>
#include <string_view>
#include <vector>

namespace monet {

/// A scope that collects the warnings of its thread and of the parallel loops started from it. Only
/// the innermost scope receives a warning. Any number of threads may warn at once.
class WarningScope {
public:
  using Listener = std::function<void(const InputProblem&)>;

  /// `listener` is called at once for each warning, but only once for equal ones; it may be empty.
  explicit WarningScope(Listener listener = {});
  ~WarningScope();
  WarningScope(const WarningScope&) = delete;
  WarningScope& operator=(const WarningScope&) = delete;

  /// Innermost scope of this thread, or null.
  static WarningScope* current();
  /// Makes the starting thread's scope the innermost one of a new thread.
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
  /// All warnings without duplicates, sorted by position, then text; independent of the threads
  /// that added them.
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
