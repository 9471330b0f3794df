// The catalogue of operators: what each reads, costs, keeps and how it is differentiated. A new
// operator is one row in src/workload/operators/operators.def, and code in the file of its family.
#pragma once

#include "workload/shared/fusion.hpp"
#include "workload/shared/op_types.hpp"

#include "monet/base/errors.hpp"

#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace monet {

/// Function that builds the nest of `op`; the shapes of its tensors must be known. Throws
/// InputError located at the node if attributes and shapes contradict each other.
using NestBuilder = LoopNest (*)(const Graph& graph, const Operator& op);

/// Checks relations between operand shapes that the nest cannot prove; throws InputError.
using RelationCheck = void (*)(const Graph& graph, const Operator& op);

/// How the gradient of an operator with one differentiable input follows.
enum class GradientForm {
  coded,     ///< by a rule in training_graph/gradients, or not at all
  stops,     ///< the output does not depend differentiably on the inputs
  of_input,  ///< one operator, named with "Grad" behind: (dY, X) -> dX
  of_output, ///< one operator, named with "Grad" behind: (dY, Y) -> dX
};

/// An operator in the catalogue, src/workload/operators/operators.def.
struct OperatorRow {
  /// A product of x and a function of x, which readers of files take for the operator.
  enum class Chain { none, x_sigmoid, x_gaussian, x_clipped, x_tanh_softplus };

  /// Tensors that PyTorch's autograd keeps for an operator, as bits: the first two inputs, the
  /// first two outputs, statistics, running statistics. Source: derivatives.yaml of PyTorch 1.13.
  enum Kept : unsigned {
    kNothing = 0,
    kX = 1,
    kX1 = 2,
    kY = 4,
    kY1 = 8,
    kStatistics = 16,
    kRunning = 32,
  };

  /// Properties of an operator type, as bits.
  enum Trait : unsigned {
    kDiscrete = 1,        ///< results are indices or truth values
    kElementwiseLoss = 2, ///< sum over all iterations, divided by the attribute `divisor`
    kLabelLoss = 4,       ///< loss of rows with a label; its divisor depends on the data
    kSumsLoops = 8,       ///< the result is a sum over loops that it has no axis of
    kCasts = 16,          ///< converts its operand to another format
    kSoftmaxRows = 64,    ///< a softmax of rows, or its logarithm
    kSoftmaxFamily = 256, ///< a softmax, its gradient or a loss that contains one
    kProbabilities = 512, ///< rows become positive numbers with the sum 1
    kFlattened = 128,     ///< before opset 13: of a matrix into which the input is flattened
    kLinearSum = 32,      ///< a weighted sum of its operands
  };

  std::string_view domain; ///< empty: ai.onnx
  OpType op_type;
  /// Operand kinds, inputs before the arrow: r real, i integer, b truth, w whole, n number, s same
  /// as the first n. Suffixes: ? optional, * any count including zero, 0 may be empty.
  std::string_view operands;
  NestBuilder nest = nullptr; ///< null for a view
  /// Whether it only rearranges or aliases its input; fold_views() removes it.
  bool view = false;
  VectorWork work = {};         ///< per output element, or per input element of reductions
  VectorWork further_work = {}; ///< gradients: per further output
  bool per_operand = false;     ///< `work` counts for each operand after the first
  int passes = 1;               ///< reductions: sweeps over the input
  RelationCheck check = nullptr;
  Fusion fusion = Fusion::tiles; ///< most severe restriction, whatever the attributes and shapes
  int shape_of = -1;             ///< input whose shape and type output 0 has, unknown to libonnx
  std::optional<unsigned> kept = {}; ///< Kept; nullopt: decided by code, or unknown
  GradientForm gradient = GradientForm::coded;
  /// of_output: Y determines the branch that X took only if alpha (and gamma) is at least 0.
  bool needs_sign = false;
  double alpha = 1.0;             ///< of_output: default of the operator's definition
  bool torch_reads_input = false; ///< of_output: PyTorch keeps X although Y is sufficient
  Chain chain = Chain::none;
  unsigned traits = 0; ///< Trait
};

/// Row of an operator; null if the catalogue lacks it.
const OperatorRow* find_row(std::string_view domain, OpType op_type);
/// Row of an operator in whatever domain; null if the catalogue lacks it.
const OperatorRow* find_row(OpType op_type);
/// Row of an operator of a graph.
const OperatorRow& row_of(const Operator& op);
/// Whether operators of the type have this trait.
bool has_trait(OpType op_type, OperatorRow::Trait trait);
/// Whether the operator is a view.
bool has_view_rule(const Operator& op);
/// All rows, sorted by domain and type (for documentation and messages).
const std::vector<OperatorRow>& all_rows();

/// Whether the operator is ai.monet.Offload, which copies a tensor from the device to the host's
/// memory.
bool is_offload(const Operator& op);
/// Whether the operator is ai.monet.Fetch, which copies a tensor from the host's memory to the
/// device.
bool is_fetch(const Operator& op);
/// Whether the tensor is the copy that an Offload makes, which uses no memory of the device.
bool lies_in_host(const Graph& graph, TensorId tensor);

/// Sets op.nest by the operator's rule, which must exist.
void build_nest(Graph& graph, OpId op);

/// Location of a node for messages: "net.onnx [node '/conv1/Conv' (Conv)]".
SourceLoc location_of(const Graph& graph, const Operator& op, std::string_view detail = {});

/// Operator types, in the domain ai.monet, of the gradients of a product Y = product(X, W).
struct ProductGradients {
  OpType forward; ///< type of the product
  OpType first;   ///< (dY, W) -> dX
  OpType second;  ///< (X, dY) -> dW
};
/// Gradient types of all products.
std::span<const ProductGradients> product_gradients();

/// Operator type that computes both gradients of a product: (X, W, dY) -> dX, dW.
inline constexpr OpType kProductGrad = ops::ProductGrad;

/// Tensors that a gradient of a product reads and produces. X is the product's first operand and W
/// its second, whether or not it is a weight.
struct GradientTensors {
  TensorId dy;
  std::optional<TensorId> x, w;   ///< nullopt: not read
  std::optional<TensorId> dx, dw; ///< nullopt: not produced
};
/// Tensors of an operator that computes gradients of a product; nullopt for other operators.
std::optional<GradientTensors> gradient_tensors(const Operator& op);

} // namespace monet
