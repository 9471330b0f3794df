// make_training_graph(): makes the graph of one training step (forward, loss, backward, optimiser
// update) from a forward graph.
// Example:
//   TrainingGraph make_step(const std::string& network) {
//     TrainingOptions training;
//     training.update.optimizer = Sgd{.learning_rate = 0.1, .momentum = 0.9};
//     OnnxReadOptions reading;
//     reading.batch = 4;
//     read_for(reading, training);
//     return fold_views(make_training_graph(read_onnx(network, reading), training));
//   }
#pragma once

#include "monet/base/stage.hpp"
#include "monet/training_graph/options.hpp"
#include "monet/workload/graph.hpp"
#include "monet/workload/onnx_reader.hpp"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

class ProblemList;
struct YamlNode;

/// Reads the `training:` part of an experiment or a training.yaml. Every key has a default; unknown
/// keys are errors.
TrainingOptions read_training_options(const YamlNode& node, ProblemList& problems);
/// Reads a list of training options, each with a `name` and optionally `repeat`. Operators that a
/// loss does not need are omitted unless `outputs: all` is set.
std::vector<AlternateStep> read_alternate_steps(const YamlNode& node, ProblemList& problems);

/// Reads a `precision:` part: one type for weights, activations, gradients and states, or a map of
/// roles.
Precision read_precision_options(const YamlNode& node, ProblemList& problems);

/// Owner of a tensor's bytes in the memory report. The last one, offloaded_activations, is in the
/// host's memory; sums over owners, of live bytes and their peak, exclude it.
enum class MemoryOwner {
  parameters,
  gradients,
  optimizer_state,
  stored_activations,
  temporaries,
  offloaded_activations,
};
std::string_view name_of(MemoryOwner owner);
/// Number of owners.
inline constexpr int kMemoryOwners = 6;
/// Sum of the bytes of owners in the device's memory.
std::int64_t total(const std::array<std::int64_t, kMemoryOwners>& bytes);

/// A trained parameter with its gradient and states.
struct ParameterRecord {
  TensorId weight;
  TensorId gradient;
  std::vector<TensorId> states;
  TensorId updated; ///< output of the update, an alias of the weight
  /// Sparse gradients only: for each row of the gradient, the row of the weight.
  std::optional<TensorId> rows;
  std::optional<TensorId> average; ///< state: moving average of the parameter
  std::optional<TensorId> master;  ///< state: the weight in full precision
};

/// A number that is an input of every step.
struct StepInput {
  TensorId tensor; ///< a scalar
  double value = 0.0;
};

/// Value of a state before the first step: a number, or a copy of the parameter.
struct InitialState {
  TensorId state;
  double value = 0.0;
  std::optional<TensorId> copy_of;
};

/// A parameter of the step that is a part of a parameter in the network's file (sparse updates).
struct WeightPart {
  std::string name;
  std::string whole; ///< name in the file
  Integers whole_shape;
  std::size_t axis = 0;
  std::int64_t from = 0; ///< index of its first slice along the axis
};

/// One training step, ready for modelling, export or execution. For inference it has only the
/// forward part.
struct TrainingGraph {
  Graph graph;
  bool training = false;
  std::optional<TensorId> loss;
  std::vector<ParameterRecord> parameters;
  std::vector<StepInput> learning_rates; ///< the optimiser's first, then those of groups
  /// Scalar input, 1 in the first step; nullopt if the step does not depend on it.
  std::optional<TensorId> step_number;
  std::vector<InitialState> initial;  ///< states that do not start as zeros
  std::vector<WeightPart> parts;      ///< parameters that are parts of those in the file
  std::optional<TensorId> loss_scale; ///< state: factor of the loss's gradient
  std::optional<TensorId> found_inf;  ///< 1 in a step that is skipped, else 0
  /// Arithmetic of its precision, for execution in the formats of its tensors.
  StepArithmetic arithmetic;
  std::int64_t micro_batches = 1;
  /// Number of forward and backward passes before the update: one per micro-batch, or two per
  /// micro-batch with sharpness-aware minimisation.
  std::int64_t passes = 1;
  /// Names of products whose two gradients one operator computes, without the suffixes of
  /// micro-batches; ascending.
  std::vector<std::string> paired;
  std::optional<TensorId> gradient_norm; ///< of all gradients together, if it is clipped
  /// Forward tensors stored for the backward part: tensors that it reads, or that PyTorch keeps.
  std::vector<TensorId> stored_activations;
  /// Bytes of the stored activations in one pass. With pytorch-eager they are counted as in
  /// autograd: a copied view counts separately from its source, and a number counts as a tensor of
  /// eight bytes.
  std::int64_t stored_bytes = 0;
  /// Bytes that PyTorch's autograd would keep, independent of `store`.
  std::int64_t eager_bytes = 0;
  StorePolicy store = StorePolicy::minimal;
  std::vector<MemoryOwner> owner;             ///< per tensor
  ElementType accumulate = ElementType::fp32; ///< type of partial sums
};

/// Differentiates `forward` and appends the loss, the backward part and one fused update per
/// parameter. Gradients that no update needs (of inputs, of frozen parameters) are not computed.
/// Throws one InputError with every operator without a gradient rule between a trained parameter
/// and the loss. `observe` is called after each pass.
TrainingGraph make_training_graph(const Graph& forward, const TrainingOptions& options,
                                  const PassObserver& observe = {});

/// Makes the forward part for inference: batch normalisation uses its running statistics, and
/// dropout is removed. `observe` is called after each pass.
TrainingGraph make_inference_graph(const Graph& forward, const Precision& precision = {},
                                   const PassObserver& observe = {});

/// Step after fold_views() of its graph, with owners, records and stored activations updated.
TrainingGraph fold_views(const TrainingGraph& step);

/// Checks the invariants of a step: verify(graph), one gradient and one update per trained
/// parameter, phases in order, owners consistent with the kinds of tensors. Throws InternalError if
/// one is violated.
void verify(const TrainingGraph& step);

/// Number of leading owners that reports list; the host's is included only if activations are
/// offloaded.
std::size_t reported_owners(const TrainingGraph& step);

/// Number of elements of all trained parameters.
std::int64_t trained_count(const TrainingGraph& step);

/// Multiply-accumulates by purpose.
struct MacSplit {
  std::int64_t forward = 0;
  std::int64_t backward_input = 0;
  std::int64_t backward_weight = 0;
  std::int64_t update = 0; ///< products inside an optimiser (Muon)
};
/// Counts the multiply-accumulates of a graph by purpose.
MacSplit count_macs(const Graph& graph);

/// Configures the reader of a network for a training step. The reader then reports obstacles to
/// training before anything is computed, and its parameters are those of the options.
void read_for(OnnxReadOptions& reading, const TrainingOptions& training);

/// Support for gradients of an operator type.
enum class GradientSupport {
  yes,
  stops, ///< outputs do not depend differentiably on inputs: no gradient passes
  no,    ///< training steps with the operator are rejected
};
/// Support for gradients of an operator type.
GradientSupport gradient_support(std::string_view domain, std::string_view op_type);

/// Tensors produced before the backward part (including inputs and labels) that an operator of the
/// backward part reads, sorted by id. Views count as the tensor that they view. A recomputed
/// operator belongs to the part that follows it.
std::vector<TensorId> tensors_read_by_backward(const Graph& graph);

/// Owner of every tensor by its kind. Stored activations are separate from other temporaries, and
/// tensors on the host from both.
std::vector<MemoryOwner> find_owners(const Graph& graph, const std::vector<TensorId>& stored);

/// Reason why the operator cannot run again with the same result and without a second effect
/// ("draws random numbers, which are not drawn twice"). Empty if it can, which requires the
/// forward, loss or recompute phase. A repeated batch normalisation does not update its running
/// statistics.
std::string recompute_obstacle(const Graph& graph, const Operator& op);

/// Makes the step with its operators in the order of `runs`. Every operator of the graph must be in
/// `runs` at least once; first runs are in the graph's order. Every further run becomes a separate
/// operator with separate tensors. It has Phase::recompute, `forward_op`, and the name
/// "<name>.recomputed", ".recomputed.2", ... Operators read the result of the last run before them.
/// Views of recomputed tensors are recreated where they are read. Tensor ids remain; stored
/// activations, their bytes and owners are those of the new order. Throws InternalError for invalid
/// `runs`, and InputError at the node of an operator that cannot run again.
TrainingGraph with_recomputation(const TrainingGraph& step, const std::vector<OpId>& runs);

/// Makes the step with its views (for export) and with recomputation. `folded` is fold_views(step),
/// and `folded_runs` refers to its operators.
TrainingGraph with_recomputation(const TrainingGraph& step, const TrainingGraph& folded,
                                 const std::vector<OpId>& folded_runs);

} // namespace monet
