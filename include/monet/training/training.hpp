// Forward graph -> the graph of one training step: forward, loss, backward, optimiser update.
#pragma once

#include "monet/base/yaml.hpp"
#include "monet/workload/graph.hpp"

#include <optional>
#include <string>
#include <vector>

namespace monet {

enum class LossKind { cross_entropy, mse, bce_with_logits, none };

/// PyTorch's names and meanings.
struct LossOptions {
  double label_smoothing = 0.0;             ///< cross_entropy: share spread evenly over all classes
  std::optional<std::int64_t> ignore_index; ///< cross_entropy: rows of this label do not count
  /// cross_entropy: axis of the classes; by default 1 for logits of two or of at least four axes
  /// ([B, C], [B, C, H, W]) and the last one for three ([B, T, C]).
  std::optional<std::int64_t> class_axis;
  /// bce_with_logits: weight of the targets' ones, one number or one for each element of the last
  /// axis; empty = 1.
  std::vector<double> pos_weight;

  friend bool operator==(const LossOptions&, const LossOptions&) = default;
};

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

/// Element type of each role. Tensors get the type of their role; partial sums of products are held
/// in `accumulate`.
struct Precision {
  ElementType weights = ElementType::fp32;
  std::optional<ElementType> master_weights; ///< none: the weights themselves are updated
  ElementType activations = ElementType::fp32;
  ElementType gradients = ElementType::fp32;
  ElementType optimizer_state = ElementType::fp32;
  ElementType accumulate = ElementType::fp32;
  /// Statistics of normalisations, log-probabilities and the loss, sums of squares; none: as
  /// accumulate, or fp32 where that is an integer.
  std::optional<ElementType> reductions;
  std::optional<ElementType> frozen_weights; ///< parameters that are not trained; none: as weights

  ElementType reduction_type() const {
    return reductions.value_or(is_floating(accumulate) ? accumulate : ElementType::fp32);
  }
};

/// Layers that are trained, counted from 0 in the order of the network; negative from its end. A
/// layer is an operator with a weight of its own (convolution, product, embedding) and the
/// parameters of what follows it.
struct LayerRange {
  std::int64_t from = 0;
  std::int64_t to = -1; ///< the last one, included
};

/// Low-rank adapters (Hu et al. 2021): Y += (alpha/rank) * B(A(X)), A and B trained, the rest not.
struct LoraOptions {
  std::int64_t rank = 8;
  double alpha = 16.0;
  std::vector<std::string> targets{"*"}; ///< glob patterns of weights
};

/// Sparse update (Lin et al. 2022): biases, and the first output channels of some weights.
struct SparseOptions {
  struct Channels {
    std::string match; ///< glob pattern of weights
    double share = 1.0;
  };
  bool biases = true;
  std::vector<Channels> channels;
};

/// Scaling of the loss against underflow of low-precision gradients; a step with a gradient that is
/// not finite changes nothing but the scale.
struct LossScaleOptions {
  bool dynamic = true;
  double initial = 65536.0;
  std::int64_t growth_interval = 2000; ///< steps in a row that are finite
  double factor = 2.0;
  double backoff = 0.5;
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
  LossOptions loss_options;
  OptimizerOptions optimizer;
  std::vector<ParameterGroup> groups;
  std::optional<double> clip_global_norm; ///< largest norm of all gradients together
  bool fused_update = true; ///< one operator per parameter; false: a chain of element-wise ones
  Precision precision;
  StorePolicy store = StorePolicy::minimal;
  std::vector<std::string> keep;      ///< patterns of tensors that are stored though nobody asks
  std::vector<std::string> recompute; ///< patterns of tensors that are computed again instead
  AttentionForm attention = AttentionForm::exported;
  std::optional<LossScaleOptions> loss_scale;
  std::vector<std::string> train;  ///< glob patterns: nothing else is trained (besides adapters)
  std::vector<std::string> freeze; ///< glob patterns of parameters that are not trained
  std::optional<LayerRange> layers;
  std::optional<LoraOptions> lora;
  std::optional<SparseOptions> sparse;
  bool frozen_batch_norm = false; ///< normalises with its running statistics and leaves them
  std::int64_t micro_batches = 1; ///< of the network's batch each; one update for all of them
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
  std::vector<StepInput> learning_rates; ///< the optimiser's own first, then those of groups
  std::optional<TensorId> step_number;   ///< scalar input, 1 in the first step; where it matters
  std::vector<InitialState> initial;     ///< states that do not begin as zeros
  std::optional<TensorId> loss_scale;    ///< state: what the loss's gradient is multiplied by
  std::optional<TensorId> found_inf;     ///< 1 in a step that is skipped, else 0
  std::int64_t micro_batches = 1;
  std::optional<TensorId> gradient_norm; ///< of all gradients together, when it is clipped
  /// Forward tensors kept for the backward part: those that it reads, or what PyTorch keeps.
  std::vector<TensorId> stored_activations;
  /// Their bytes in one micro-batch. With pytorch-eager as autograd counts them: a copied view
  /// apart from its source, a number as a tensor of eight bytes.
  std::int64_t stored_bytes = 0;
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

} // namespace monet
