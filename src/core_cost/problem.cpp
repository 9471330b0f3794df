// Helpers of CoreProblem, the loop nest that core_cost() evaluates.
#include "base/shared/checked.hpp"

#include "monet/core_cost/core_cost.hpp"

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
