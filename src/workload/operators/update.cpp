// Optimiser updates, one fused operator per parameter: (weight, gradient, states...) -> the same,
// in place. With a master copy (the last state) the weight itself is only written.
#include "workload/operators/families.hpp"
#include "workload/operators/nest_builder.hpp"

#include <array>

namespace monet {

namespace {

struct Update {
  std::string_view op_type;
  VectorWork work;  ///< per element, without weight decay
  VectorWork decay; ///< more with weight decay
  std::array<std::string_view, 2> states;
};

// Order of work: add, multiply, divide, compare, square_root, transcendental.
constexpr std::array kTable{
    // w -= lr*g
    Update{"SgdUpdate", {1, 1, 0, 0, 0, 0}, {1, 1, 0, 0, 0, 0}, {}},
    // m = mu*m + g; w -= lr*m
    Update{"MomentumUpdate", {2, 2, 0, 0, 0, 0}, {1, 1, 0, 0, 0, 0}, {"momentum"}},
    // m = b1*m + (1-b1)*g; v = b2*v + (1-b2)*g*g; w -= (lr/c1) * m / (sqrt(v)/c2 + eps)
    Update{"AdamUpdate", {4, 7, 1, 0, 1, 0}, {1, 1, 0, 0, 0, 0}, {"first_moment", "second_moment"}},
    // the same after w *= 1 - lr*decay
    Update{
        "AdamWUpdate", {4, 7, 1, 0, 1, 0}, {0, 1, 0, 0, 0, 0}, {"first_moment", "second_moment"}},
};

const Update& update_of(const Operator& op) {
  std::size_t i = 0;
  while (kTable[i].op_type != op.op_type)
    ++i;
  return kTable[i];
}

std::string role_of_state(const Update& update, std::size_t i) {
  const bool named = i < update.states.size() && !update.states[i].empty();
  return named ? std::string(update.states[i]) : "master";
}

LoopNest build(const Graph& graph, const Operator& op) {
  const Update& update = update_of(op);
  VectorWork work = update.work;
  if (op.attributes.number("weight_decay", 0.0) != 0.0) {
    work.add += update.decay.add;
    work.multiply += update.decay.multiply;
  }
  LoopNestBuilder nest(graph, op, ComputeKind::vector, work);
  const std::vector<LoopIndex> loops = nest.loops_over(output_shape(graph, op, 0));
  const std::vector<AxisExpr> axes = nest.broadcast(output_shape(graph, op, 0), loops);
  nest.output(0, "O", axes);
  for (std::size_t i = 1; i < op.outputs.size(); ++i)
    nest.output(i, role_of_state(update, i - 1), axes);
  nest.input(0, "W", axes);
  nest.input(1, "I", axes);
  for (std::size_t i = 2; i < op.inputs.size(); ++i)
    nest.input(i, role_of_state(update, i - 2), axes);
  return nest.finish();
}

} // namespace

std::span<const OperatorRule> update_rules() {
  static constexpr std::array kRules{
      OperatorRule{kMonetDomain, "SgdUpdate", &build, false},
      OperatorRule{kMonetDomain, "MomentumUpdate", &build, false},
      OperatorRule{kMonetDomain, "AdamUpdate", &build, false},
      OperatorRule{kMonetDomain, "AdamWUpdate", &build, false},
  };
  return kRules;
}

} // namespace monet
