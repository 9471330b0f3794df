// Forward graph -> the graph of one training step: forward, loss, backward, optimiser update.
#pragma once

#include "monet/base/yaml.hpp"
#include "monet/workload/graph.hpp"

#include <optional>
#include <string>
#include <vector>

namespace monet {

enum class LossKind { cross_entropy, mse, bce_with_logits, none };
enum class OptimizerKind {
  sgd,
  momentum, ///< sgd with a momentum of 0.9
  adam,
  adamw,
  rmsprop,
  adagrad,
  lion,
  adafactor,
  lamb,
  muon, ///< matrices; everything else is trained by AdamW
};

/// PyTorch's names and meanings; a field that is not set has the optimiser's own default
/// (with_defaults).
struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::adam;
  std::optional<double> learning_rate;
  std::optional<double> momentum;
  std::optional<double> beta1;
  std::optional<double> beta2;
  std::optional<double> epsilon;
  std::optional<double> weight_decay;
  std::optional<bool> nesterov;
  double dampening = 0.0;           ///< sgd, momentum
  double alpha = 0.99;              ///< rmsprop
  bool centered = false;            ///< rmsprop
  double learning_rate_decay = 0.0; ///< adagrad
  double initial_accumulator = 0.0; ///< adagrad
  double decay_rate = -0.8;         ///< adafactor: the moments' share grows as 1 - step^decay_rate
  double clip_threshold = 1.0;      ///< adafactor: largest root mean square of a move
  double epsilon2 = 1e-3;           ///< adafactor: least size of a parameter
  bool relative_step = false;       ///< adafactor: min(0.01, 1/sqrt(step)) instead of a rate
  bool scale_parameter = false;     ///< adafactor: rate times the parameter's size
  std::int64_t newton_schulz_steps = 5; ///< muon

  friend bool operator==(const OptimizerOptions&, const OptimizerOptions&) = default;
};
/// Every field that the optimiser reads is set.
OptimizerOptions with_defaults(OptimizerOptions options);

/// Parameters with settings of their own; a parameter belongs to the first group that takes it.
struct ParameterGroup {
  std::vector<std::string> match; ///< glob patterns of parameter names
  bool norms_and_biases = false;  ///< takes them whatever they are called
  OptimizerOptions optimizer;
};

/// Element type of each role. Tensors get the type of their role; a layer's arithmetic is described
/// by accumulate.
struct Precision {
  ElementType weights = ElementType::fp32;
  std::optional<ElementType> master_weights; ///< none: the weights themselves are updated
  ElementType activations = ElementType::fp32;
  ElementType gradients = ElementType::fp32;
  ElementType optimizer_state = ElementType::fp32;
  ElementType accumulate = ElementType::fp32;
};

enum class StorePolicy {
  minimal,       ///< only what some backward operator reads
  pytorch_eager, ///< what PyTorch's autograd keeps
};

enum class AttentionForm {
  exported, ///< products and softmax, as the file has them
  fused,    ///< one operator that keeps no scores and recomputes them in its backward
};

struct TrainingOptions {
  LossKind loss = LossKind::cross_entropy;
  OptimizerOptions optimizer;
  std::vector<ParameterGroup> groups;
  std::optional<double> clip_global_norm; ///< largest norm of all gradients together
  bool fused_update = true; ///< one operator per parameter; false: a chain of element-wise ones
  Precision precision;
  StorePolicy store = StorePolicy::minimal;
  AttentionForm attention = AttentionForm::exported;
  std::vector<std::string> freeze; ///< glob patterns of parameters that are not trained
};

/// Reads the `training:` part of an experiment or a training.yaml; every key has a default, unknown
/// keys are errors.
TrainingOptions read_training_options(const YamlNode& node, ProblemList& problems);

/// Who a tensor's bytes belong to in the memory report.
enum class MemoryOwner { parameters, gradients, optimizer_state, stored_activations, temporaries };
std::string_view name_of(MemoryOwner owner);
inline constexpr int kMemoryOwners = 5;

/// A trained parameter and everything kept for it.
struct ParameterRecord {
  TensorId weight;
  TensorId gradient;
  std::vector<TensorId> states;
  TensorId updated; ///< output of the update; alias_of the weight
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

/// One step, ready to be costed, exported or executed. For inference only the forward part is
/// there.
struct TrainingGraph {
  Graph graph;
  bool training = false;
  std::optional<TensorId> loss;
  std::vector<ParameterRecord> parameters;
  std::vector<StepInput> learning_rates;    ///< the optimiser's own first, then those of groups
  std::optional<TensorId> step_number;      ///< scalar input, 1 in the first step; where it matters
  std::vector<InitialState> initial;        ///< states that do not begin as zeros
  std::optional<TensorId> gradient_norm;    ///< of all gradients together, when it is clipped
  std::vector<TensorId> stored_activations; ///< forward tensors that backward reads
  std::vector<MemoryOwner> owner;           ///< per tensor
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

/// MACs by what they compute.
struct MacSplit {
  std::int64_t forward = 0;
  std::int64_t backward_input = 0;
  std::int64_t backward_weight = 0;
  std::int64_t update = 0; ///< products inside an optimiser (Muon)
};
MacSplit count_macs(const Graph& graph);

} // namespace monet
