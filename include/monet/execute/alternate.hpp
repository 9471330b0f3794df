// Steps that take turns on the same weights and running statistics.
#pragma once

#include "monet/execute/execute.hpp"

#include <deque>
#include <vector>

namespace monet {

/// An execution for each step. What several of them have by one name, parameters and buffers, is
/// one tensor: it passes from the step that changed it to the others.
class AlternatingExecution {
public:
  /// Keeps pointers to the steps.
  explicit AlternatingExecution(std::vector<const TrainingGraph*> steps,
                                const ExecuteOptions& options = {});

  std::size_t size() const { return steps_.size(); }
  Execution& of(std::size_t step) { return executions_[step]; }
  const TrainingGraph& graph(std::size_t step) const { return *steps_[step]; }

  /// Gives the others what the first step that has a tensor has in it; after all numbers are set.
  void begin();
  /// Runs a step, the how manieth time its optimiser is told, and hands its results on. What it
  /// made may be read until it runs again.
  void run(std::size_t step);

private:
  void hand_on(std::size_t from);

  std::vector<const TrainingGraph*> steps_;
  std::deque<Execution> executions_;
  std::vector<std::int64_t> runs_; ///< of each step
};

} // namespace monet
