// Both gradients of a matrix product as one problem, for tests.
#pragma once

#include "monet/core_cost/core_cost.hpp"

#include <cstdint>
#include <utility>

namespace monet::test {

/// dX(m,k) += dY(m,n) W(k,n), dW(k,n) += X(m,k) dY(m,n) of bytes, partial sums of 32 bits. Loops D,
/// C, K; operands dX, dW, dY, X, W.
inline CoreProblem gradient_pair(std::int64_t m, std::int64_t k, std::int64_t n) {
  using enum MemoryOperand;
  CoreProblem problem;
  problem.dims = {{"D", m}, {"C", k}, {"K", n}};
  const auto add = [&](AccessMode mode, MemoryOperand memory, std::uint32_t row,
                       std::uint32_t column) {
    ProblemOperand operand;
    operand.mode = mode;
    operand.memory = memory;
    operand.bits = 8;
    operand.partial_bits = mode == AccessMode::read ? 8 : 32;
    for (const std::uint32_t loop : {row, column}) {
      operand.axes.push_back({{{loop, 1}}, 0, false});
      operand.extents.push_back(problem.dims[loop].size);
    }
    problem.operands.push_back(std::move(operand));
  };
  add(AccessMode::write, O, 0, 1);
  add(AccessMode::write, O, 1, 2);
  add(AccessMode::read, I1, 0, 2);
  add(AccessMode::read, I2, 0, 1);
  add(AccessMode::read, I2, 1, 2);
  problem.products = {{0, 2, 4}, {1, 3, 2}};
  return problem;
}

/// What core_cost() solves parts with.
inline CoreCost solve_alone(const CoreProblem& part, const Core& on, const CoreCostOptions& how) {
  return core_cost(part, on, how);
}

} // namespace monet::test
