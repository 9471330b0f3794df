// Rules of gradients of reductions. Loops over X, the second input; dY (and Y) have size 1 on
// reduced axes.
#include "workload/operators/families.hpp"

namespace monet {

namespace {

struct ReductionGrad {
  std::string_view op_type;
  VectorWork work;      ///< per element of X
  bool coupled = false; ///< the gradient depends on all elements of a sum
};

// Order of work: add, multiply, divide, compare, square_root, transcendental.
constexpr ReductionGrad kReductionGrads[]{
    {"ReduceExtremumGrad", {1, 0, 1, 1, 0, 0}, true}, // x == y ? dy / equal ones : 0
    {"ReduceL1Grad", {1, 0, 0, 2, 0, 0}},             // dy * sign(x)
    {"ReduceL2Grad", {0, 1, 1, 1, 0, 0}},             // y == 0 ? 0 : dy * x / y
    {"ReduceLogSumExpGrad", {1, 1, 0, 0, 0, 1}},      // dy * exp(x - y)
    {"ReduceProdGrad", {0, 4, 0, 0, 0, 0}, true},     // products before and after x
    {"ReduceSumSquareGrad", {0, 2, 0, 0, 0, 0}},      // dy * 2 * x
};

LoopNest build(const Graph& graph, const Operator& op) {
  const ReductionGrad& row = row_of(kReductionGrads, op);
  const auto& whole = input_shape(graph, op, 1);
  const auto& kept = input_shape(graph, op, 0);
  LoopNestBuilder nest(graph, op, ComputeKind::vector, row.work);
  const std::vector<LoopIndex> loops = nest.loops_over(whole);
  for (std::size_t d = 0; row.coupled && d < loops.size() && kept.size() == whole.size(); ++d) {
    if (kept[d] != whole[d])
      nest.couple(loops[d]);
  }
  const int passes = row.coupled ? 2 : 1;
  nest.output(0, "O", axes_of(loops));
  nest.input(0, "I", nest.broadcast(kept, loops));
  nest.input(1, "W", axes_of(loops), passes);
  nest.inputs_over(loops, 2, {"I2"});
  return nest.finish();
}

} // namespace

std::vector<OperatorRule> reduction_grad_rules() {
  return rules_of(kReductionGrads, kMonetDomain, build);
}

} // namespace monet
