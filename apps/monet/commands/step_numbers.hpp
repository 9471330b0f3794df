// Numbers that a step is executed with: from the user, from the network's file, or generated.
#pragma once

#include "monet/execute/execute.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace monet::cli {

class StepNumbers {
public:
  /// Keeps references to both arguments.
  StepNumbers(Execution& execution, const TrainingGraph& step)
      : execution_(execution), step_(step) {}

  /// Name of the tensor in a pair TENSOR=FILE.npy.
  static std::string name_in(const std::string& pair);
  /// Sets a tensor from a pair; later pairs for a tensor replace earlier ones. Throws InputError as
  /// give() does.
  void from_npy(const std::string& pair);
  void from_npy(const std::vector<std::string>& pairs);
  /// Sets a tensor. Throws InputError if the step computes it, has no tensor of this name, or has
  /// one of another shape; `where` names the source of the numbers.
  void give(const std::string& name, const std::vector<std::int64_t>& shape,
            std::span<const double> numbers, const std::string& where);
  /// Sets tensors from the initialisers of an ONNX file.
  void from_network(const std::string& path);
  void generate_rest(std::uint64_t seed);

  std::int64_t given = 0;
  std::int64_t stored = 0;
  std::int64_t generated = 0;

private:
  /// Shape of a tensor in the step; for a weight in parts, its shape in the network's file.
  const std::vector<std::int64_t>& shape_of(const std::string& name) const;

  Execution& execution_;
  const TrainingGraph& step_;
};

/// Runs one of several steps on the same numbers; `number` counts from 0.
void run_step(Execution& execution, const TrainingGraph& step, int number);

} // namespace monet::cli
