#include "monet/base/checked.hpp"
#include "monet/base/errors.hpp"
#include "monet/optimise/einsum_mapper.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace monet {

namespace {

constexpr std::size_t kMaxRanks = 32;
constexpr std::size_t kMaxOperands = 24;

void verify_operand(const EinsumCascade& cascade, const Einsum& einsum,
                    const EinsumOperand& operand) {
  internal_check(operand.tensor < cascade.tensors.size(), "Einsum operand without a tensor");
  const EinsumTensor& tensor = cascade.tensors[operand.tensor];
  internal_check(operand.axes.size() == tensor.shape.size(), "Einsum operand and tensor differ");
  for (const AxisExpr& axis : operand.axes) {
    for (const AffineTerm& term : axis.terms)
      internal_check(term.dim < einsum.bounds.size(), "Einsum operand without a rank");
  }
  // What crosses DRAM is less than a whole tensor for each iteration, and back.
  std::int64_t bits =
      checked_multiply(tensor.bits, 2 * static_cast<std::int64_t>(cascade.einsums.size()));
  for (const std::int64_t bound : einsum.bounds)
    bits = checked_multiply(bits, bound);
  for (std::size_t a = 0; a < operand.axes.size(); ++a) {
    if (operand.axes[a].terms.size() != 1 || operand.axes[a].data_dependent)
      bits = checked_multiply(bits, tensor.shape[a]);
  }
}

} // namespace

void verify(const EinsumCascade& cascade) {
  std::vector<bool> made(cascade.tensors.size(), false);
  std::vector<bool> read(cascade.tensors.size(), false);
  for (const Einsum& einsum : cascade.einsums) {
    internal_check(einsum.bounds.size() <= kMaxRanks && einsum.operands.size() <= kMaxOperands &&
                       !einsum.operands.empty(),
                   "an Einsum with too many ranks or operands");
    internal_check(einsum.whole.empty() || einsum.whole.size() == einsum.bounds.size(),
                   "an Einsum whose ranks are not all described");
    for (const EinsumOperand& operand : einsum.operands) {
      verify_operand(cascade, einsum, operand);
      if (operand.written) {
        internal_check(!made[operand.tensor] && !read[operand.tensor],
                       "a tensor of the cascade is made twice, or after it is read");
        made[operand.tensor] = true;
      } else {
        read[operand.tensor] = true;
      }
    }
  }
  for (std::size_t t = 0; t < cascade.tensors.size(); ++t)
    internal_check(cascade.tensors[t].external || (made[t] && read[t]) || (!made[t] && !read[t]),
                   "a tensor that only the cascade knows is not made or not used in it");
}

} // namespace monet
