// UpdateFormula: the element-wise part of every optimiser as a list of scalar operations. The cost
// of the fused operator, its numbers in execution and the operators of an unfused update are all
// derived from this list, and thus agree.
#pragma once

#include "monet/workload/graph.hpp"

#include <span>
#include <string>
#include <vector>

namespace monet {

/// Index of an input of update operators; inputs that a rule does not need are omitted. States
/// follow, with a master copy of the weight last. Outputs are the weight, then the states in the
/// same order.
enum UpdateInput : std::size_t {
  kUpdateWeight = 0,
  kUpdateGradient = 1,
  kUpdateLearningRate = 2,  ///< scalar
  kUpdateStep = 3,          ///< scalar: number of this step, from 1
  kUpdateGradientScale = 4, ///< scalar factor of the gradient: clipping, loss scaling
  kUpdateSkip = 5,          ///< scalar: not 0 if nothing changes in this step
  kUpdateFirstState = 6,
  /// Updates of rows (of an embedding, by a sparse gradient): int64, for each row of the gradient,
  /// the row of the weight and states. Indices out of range have no effect. States follow this
  /// input.
  kUpdateRows = 6,
};

/// Operation of a ScalarInstruction.
enum class ScalarOp { add, subtract, multiply, divide, minimum, maximum, power, square_root, sign };

/// Operand of a scalar operation.
struct UpdateValue {
  enum class Kind { number, input, result };
  Kind kind = Kind::number;
  double number = 0.0;
  std::size_t index = 0; ///< input of the operator, or operation with this result

  friend bool operator==(const UpdateValue&, const UpdateValue&) = default;
};

/// An operation `a op b`; square_root and sign ignore b.
struct ScalarInstruction {
  ScalarOp op = ScalarOp::add;
  UpdateValue a;
  UpdateValue b;
  /// Whether the result is equal for all elements: it is computed once and not counted as work.
  bool uniform = false;
};

/// The element-wise update of an optimiser.
struct UpdateFormula {
  std::vector<ScalarInstruction> instructions;
  std::vector<UpdateValue> outputs; ///< per output of the operator
  std::vector<UpdateValue> kept;    ///< per output: its value if the step is skipped
};

/// Operator types with a formula, all in the domain ai.monet.
std::span<const OpType> formula_operators();
/// Formula of such an operator, by its attributes and inputs. Throws InputError located at the node
/// if inputs or outputs are missing.
UpdateFormula update_formula(const Graph& graph, const Operator& op);
/// Scalar operations per element. A division by a uniform number counts as a multiplication.
VectorWork work_of(const UpdateFormula& formula);
/// Whether the operator updates only the rows of its tensors in input kUpdateRows.
bool updates_rows(const Operator& op);
/// Role of an input from kUpdateFirstState on: "momentum", "second_moment", "master".
std::string update_role(const Operator& op, std::size_t input);

/// Result of `a op b` in doubles or floats.
template <class Real>
Real apply(ScalarOp op, Real a, Real b);
extern template double apply(ScalarOp op, double a, double b);
extern template float apply(ScalarOp op, float a, float b);

} // namespace monet
