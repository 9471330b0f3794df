// Core costs for tests: known without a core model.
#pragma once

#include "monet/core_cost/core_cost.hpp"

namespace monet::testing {

inline std::int64_t bits_of_operand(const ProblemOperand& operand) {
  std::int64_t bits = operand.bits;
  for (const std::int64_t extent : operand.extents)
    bits *= extent;
  return bits;
}

/// One iteration a cycle on one lane; every streamed operand passes once; no working space.
inline CoreCost simple_cost(const CoreProblem& problem, const Core& core) {
  std::int64_t iterations = 1;
  for (const LoopDim& dim : problem.dims)
    iterations *= dim.size;
  CoreCost cost;
  cost.latency = {ceil_div(iterations, core.lanes())};
  cost.compute_energy = {static_cast<double>(iterations)};
  cost.memory_energy = {0.5 * static_cast<double>(iterations)};
  for (const ProblemOperand& operand : problem.operands) {
    const Bits bits{operand.offchip ? bits_of_operand(operand) : 0};
    const bool read = operand.mode == AccessMode::read;
    cost.offchip.push_back({read ? bits : Bits{0}, read ? Bits{0} : bits});
    cost.resident.push_back({operand.offchip ? 0 : bits_of_operand(operand)});
  }
  return cost;
}

} // namespace monet::testing
