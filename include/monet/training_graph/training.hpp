// Forward graph -> the graph of one training step: forward, loss, backward, optimiser update.
#pragma once

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

/// Reads the `training:` part of an experiment or a training.yaml; every key has a default, unknown
/// keys are errors.
TrainingOptions read_training_options(const YamlNode& node, ProblemList& problems);
/// A list of them, each with a `name` and perhaps `repeat`; what a loss does not need is left out
/// unless `outputs: all` says otherwise.
std::vector<AlternateStep> read_alternate_steps(const YamlNode& node, ProblemList& problems);

/// Reads a `precision:` part: one type for weights, activations, gradients and states, or a map of
/// roles.
Precision read_precision_options(const YamlNode& node, ProblemList& problems);

/// Who a tensor's bytes belong to in the memory report.
/// The last lies in the host's memory; sums over owners, of live bytes and their peak, leave it
/// out.
enum class MemoryOwner {
  parameters,
  gradients,
  optimizer_state,
  stored_activations,
  temporaries,
  offloaded_activations,
};
std::string_view name_of(MemoryOwner owner);
inline constexpr int kMemoryOwners = 6;
/// Bytes by owner that lie in the device's memory.
std::int64_t total(const std::array<std::int64_t, kMemoryOwners>& bytes);

/// A trained parameter and everything kept for it.
struct ParameterRecord {
  TensorId weight;
  TensorId gradient;
  std::vector<TensorId> states;
  TensorId updated; ///< output of the update; alias_of the weight
  /// Of a sparse gradient: the row of the weight that each of its rows belongs to.
  std::optional<TensorId> rows;
  std::optional<TensorId> average; ///< state: the moving average of the parameter
  std::optional<TensorId> master;  ///< state: the weight in full precision
};

/// A number that is fed into every step.
struct StepInput {
  TensorId tensor; ///< a scalar
  double value = 0.0;
};

/// What a state holds before the first step: a number, or a copy of the parameter.
struct InitialState {
  TensorId state;
  double value = 0.0;
  std::optional<TensorId> copy_of;
};

/// A parameter of the step that is a part of one in the network's file (sparse updates).
struct WeightPart {
  std::string name;
  std::string whole; ///< the file's name
  Integers whole_shape;
  std::size_t axis = 0;
  std::int64_t from = 0; ///< first of its slices along the axis
};

/// One step, ready to be costed, exported or executed. For inference only the forward part is
/// there.
struct TrainingGraph {
  Graph graph;
  bool training = false;
  std::optional<TensorId> loss;
  std::vector<ParameterRecord> parameters;
  std::vector<StepInput> learning_rates; ///< the optimiser's own first, then those of groups
  std::optional<TensorId> step_number;   ///< scalar input, 1 in the first step; where it matters
  std::vector<InitialState> initial;     ///< states that do not begin as zeros
  std::vector<WeightPart> parts;         ///< parameters that are cut out of the file's
  std::optional<TensorId> loss_scale;    ///< state: what the loss's gradient is multiplied by
  std::optional<TensorId> found_inf;     ///< 1 in a step that is skipped, else 0
  StepArithmetic
      arithmetic; ///< of its precision, for who executes it in the formats of its tensors
  std::int64_t micro_batches = 1;
  /// Forward and backward passes before the update: one for every micro-batch, with
  /// sharpness-aware minimisation twice as many.
  std::int64_t passes = 1;
  /// Products whose two gradients are computed by one operator, by name, as they are called before
  /// micro-batches multiply them; ascending.
  std::vector<std::string> paired;
  std::optional<TensorId> gradient_norm; ///< of all gradients together, when it is clipped
  /// Forward tensors kept for the backward part: those that it reads, or what PyTorch keeps.
  std::vector<TensorId> stored_activations;
  /// Their bytes in one pass. With pytorch-eager as autograd counts them: a copied view
  /// apart from its source, a number as a tensor of eight bytes.
  std::int64_t stored_bytes = 0;
  /// What PyTorch's autograd would keep, whatever is stored here.
  std::int64_t eager_bytes = 0;
  StorePolicy store = StorePolicy::minimal;
  std::vector<MemoryOwner> owner;             ///< per tensor
  ElementType accumulate = ElementType::fp32; ///< type of partial sums
};

/// Differentiates `forward` and appends loss, backward and one fused update per parameter.
/// Gradients nobody needs (of inputs, of frozen parameters) are not computed. Throws one InputError
/// listing every operator without a gradient rule that lies between a trained parameter and the
/// loss.
TrainingGraph make_training_graph(const Graph& forward, const TrainingOptions& options);

/// The forward part as it runs at inference: batch-norm with its running statistics, dropout gone.
TrainingGraph make_inference_graph(const Graph& forward, const Precision& precision = {});

/// fold_views() on the step; owners, records and stored activations follow their tensors.
TrainingGraph fold_views(const TrainingGraph& step);

/// Invariants as InternalError: verify(graph), every parameter trained has one gradient and one
/// update, phases in order, every owner consistent with the tensor's kind.
void verify(const TrainingGraph& step);

/// Owners that reports name, the first so many: the host's only where something is offloaded.
std::size_t reported_owners(const TrainingGraph& step);

/// Elements of all trained parameters.
std::int64_t trained_count(const TrainingGraph& step);

/// MACs by what they compute.
struct MacSplit {
  std::int64_t forward = 0;
  std::int64_t backward_input = 0;
  std::int64_t backward_weight = 0;
  std::int64_t update = 0; ///< products inside an optimiser (Muon)
};
MacSplit count_macs(const Graph& graph);

/// Makes reading a network report what stands between it and its training step, before anything is
/// computed, and take for parameters what the options say.
void read_for(OnnxReadOptions& reading, const TrainingOptions& training);

/// Whether a training step can go backwards through operators of a type.
enum class GradientSupport {
  yes,
  stops, ///< outputs do not depend differentiably on inputs: no gradient passes
  no,    ///< a training step through it is refused
};
GradientSupport gradient_support(std::string_view domain, std::string_view op_type);

/// Tensors made before the backward part, inputs and labels that some operator of the backward part
/// reads; views count as what they view. What is computed again belongs to the part that it stands
/// in front of. Sorted by id.
std::vector<TensorId> tensors_read_by_backward(const Graph& graph);

/// Owner of every tensor: by kind, except that stored activations are apart from other temporaries,
/// and what lies in the host from both.
std::vector<MemoryOwner> find_owners(const Graph& graph, const std::vector<TensorId>& stored);

} // namespace monet
