// Runs the steps of all ranks of a mesh, operator by operator at once, and exchanges between them
// what their collectives say: what shows that a divided step computes what the whole one does.
#pragma once

#include "cluster/stage_steps.hpp"

#include "monet/cluster/partition.hpp"
#include "monet/execute/execute.hpp"

#include <memory>
#include <span>
#include <vector>

namespace monet::test {

/// The numbers of all ranks. Tensors are named as those of the step that was divided.
class RankExecution {
public:
  /// Both steps must outlive the execution. InputError and InfeasibleError as Execution; memory is
  /// that of all ranks.
  RankExecution(const TrainingGraph& whole, const RankStep& ranks,
                const ExecuteOptions& options = {});
  /// The same in the stages of a pipeline, each with all ranks of the mesh: what a stage makes for
  /// another is sent there. InternalError from run() where stages wait for each other for ever.
  RankExecution(const TrainingGraph& whole, const RankStep& ranks,
                std::span<const StageStep> stages, const ExecuteOptions& options = {});
  ~RankExecution();
  RankExecution(RankExecution&&) noexcept;
  RankExecution& operator=(RankExecution&&) noexcept;

  /// Gives every rank its part of a tensor's numbers. Nothing where no rank has the tensor.
  void set(TensorId whole, std::span<const double> numbers);
  /// One step of all ranks. InputError where numbers are missing.
  void run();
  /// The tensor put together from the ranks' parts: fed in, kept, a gradient of a parameter, an
  /// output or the loss. InternalError for others.
  std::vector<double> get(TensorId whole) const;
  /// The tensor as one rank has it, and whether all ranks with the same part agree in every bit.
  bool ranks_agree(TensorId whole) const;
  /// Updated weights and states take the place of those before.
  void advance();

private:
  struct Machine;
  std::unique_ptr<Machine> machine_;
};

} // namespace monet::test
