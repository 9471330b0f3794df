// The element-wise part of every optimiser, written once as a list of scalar operations. The cost
// of the fused operator, its numbers when executed and the chain of operators of an unfused update
// all follow from this list, so they cannot disagree.
#pragma once

#include "monet/workload/graph.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// Inputs of every update operator; what a rule does not need is left out. States follow, a master
/// copy of the weight last. Outputs: the weight, then the states in the same order.
enum UpdateInput : std::size_t {
  kUpdateWeight = 0,
  kUpdateGradient = 1,
  kUpdateLearningRate = 2,  ///< scalar
  kUpdateStep = 3,          ///< scalar: number of this step, from 1
  kUpdateGradientScale = 4, ///< scalar that the gradient is multiplied by: clipping, loss scaling
  kUpdateSkip = 5,          ///< scalar: not 0 = nothing changes in this step
  kUpdateFirstState = 6,
  /// Of updates of rows (an embedding's, by a sparse gradient): int64, the row of weight and states
  /// that each row of the gradient belongs to; outside of them = none. States come behind it.
  kUpdateRows = 6,
};

enum class ScalarOp { add, subtract, multiply, divide, minimum, maximum, power, square_root, sign };

/// What an operation reads.
struct UpdateValue {
  enum class Kind { number, input, result };
  Kind kind = Kind::number;
  double number = 0.0;
  std::size_t index = 0; ///< input of the operator, or operation whose result it is

  friend bool operator==(const UpdateValue&, const UpdateValue&) = default;
};

/// a op b; b is not read by square_root and sign.
struct ScalarInstruction {
  ScalarOp op = ScalarOp::add;
  UpdateValue a;
  UpdateValue b;
  bool uniform = false; ///< the same for all elements: done once, not counted as work
};

struct UpdateFormula {
  std::vector<ScalarInstruction> instructions;
  std::vector<UpdateValue> outputs; ///< by output of the operator
  std::vector<UpdateValue> kept;    ///< by output: what it holds when the step is skipped
};

/// Types of operators that have a formula, all of domain ai.monet.
std::span<const std::string_view> formula_operators();
/// The formula of such an operator, by its attributes and the inputs that it has. Throws InputError
/// located at the node when inputs or outputs are missing.
UpdateFormula update_formula(const Graph& graph, const Operator& op);
/// Scalar operations per element. A division by a uniform number counts as a multiplication.
VectorWork work_of(const UpdateFormula& formula);
/// The operator updates those rows of its tensors that input kUpdateRows names.
bool updates_rows(const Operator& op);
/// Roles of the inputs from kUpdateFirstState on: "momentum", "second_moment", "master".
std::string update_role(const Operator& op, std::size_t input);

/// `a op b` in doubles or floats.
template <class Real>
Real apply(ScalarOp op, Real a, Real b);
extern template double apply(ScalarOp op, double a, double b);
extern template float apply(ScalarOp op, float a, float b);

} // namespace monet
