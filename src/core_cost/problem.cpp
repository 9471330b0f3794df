// Helpers of CoreProblem, the loop nest that core_cost() evaluates.
#include "monet/core_cost/problem.hpp"

#include "monet/base/checked.hpp"

#include <algorithm>

namespace monet {

std::int64_t footprint(const ProblemOperand& operand) {
  return checked_multiply(checked_product(operand.extents),
                          std::max(operand.bits, operand.partial_bits));
}

bool streams(const CoreProblem& problem) {
  return std::ranges::any_of(problem.operands,
                             [](const ProblemOperand& operand) { return operand.offchip; });
}

} // namespace monet
