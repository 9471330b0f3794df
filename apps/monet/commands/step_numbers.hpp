// The numbers that a step is executed with: given, from the network's file, or generated.
#pragma once

#include "monet/execute/execute.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace monet::cli {

class StepNumbers {
public:
  /// Keeps references.
  StepNumbers(Execution& execution, const TrainingGraph& step)
      : execution_(execution), step_(step) {}

  /// The tensor that a pair TENSOR=FILE.npy names.
  static std::string name_in(const std::string& pair);
  /// Numbers of a pair; several replace each other. InputError as give().
  void from_npy(const std::string& pair);
  void from_npy(const std::vector<std::string>& pairs);
  /// InputError where the step computes the tensor, has none of this name, or one of another shape;
  /// `where` names what the numbers came from.
  void give(const std::string& name, const std::vector<std::int64_t>& shape,
            std::span<const double> numbers, const std::string& where);
  /// The initialisers of an ONNX file.
  void from_network(const std::string& path);
  void generate_rest(std::uint64_t seed);

  std::int64_t given = 0;
  std::int64_t stored = 0;
  std::int64_t generated = 0;

private:
  /// In the step or, of a weight in parts, in the network's file.
  const std::vector<std::int64_t>& shape_of(const std::string& name) const;

  Execution& execution_;
  const TrainingGraph& step_;
};

/// One step of several on the same numbers, counted from 0.
void run_step(Execution& execution, const TrainingGraph& step, int number);

} // namespace monet::cli
