// TrainingOptions: all options of a training step, part by part (loss, update, precision, storage,
// trainable parameters).
// Example:
//   TrainingOptions mixed_precision() {
//     TrainingOptions options;
//     options.loss = Mse{};
//     options.update.optimizer = AdamW{.learning_rate = 3e-4};
//     options.precision.weights = options.precision.activations = ElementType::bf16;
//     options.precision.master_weights = ElementType::fp32;
//     return options;
//   }
#pragma once

#include "monet/numerics/mac.hpp"
#include "monet/workload/graph.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace monet {

/// Reduction of a loss over its elements, as in PyTorch.
enum class Reduction {
  mean,
  sum,
  batch_mean, ///< sum over all elements, divided by the size of the first axis
};

/// Cross entropy or negative log-likelihood of class labels, as in PyTorch.
struct CrossEntropy {
  double label_smoothing = 0.0;             ///< share distributed evenly over all classes
  std::optional<std::int64_t> ignore_index; ///< label whose rows do not count
  /// Axis of the classes. The default is 1 for logits with two or at least four axes
  /// ([B, C], [B, C, H, W]) and the last axis for three ([B, T, C]).
  std::optional<std::int64_t> class_axis;
  /// Weight per class; empty: all 1. The mean is weighted by the labels' weights.
  std::vector<double> weight = {};
  Reduction reduction = Reduction::mean;
  /// nll: whether the predictions are log-probabilities, after a log-softmax.
  bool of_log_probabilities = false;
};
/// Mean squared error, as in PyTorch.
struct Mse {
  Reduction reduction = Reduction::mean;
};
/// Binary cross entropy of logits, as in PyTorch.
struct BceWithLogits {
  /// Weight of positive targets: one number, or one per element of the last axis; empty: 1.
  std::vector<double> pos_weight;
  Reduction reduction = Reduction::mean;
};
/// Element-wise loss of the difference d between prediction and target, or of a prediction x and
/// its target t.
struct ElementwiseLoss {
  /// Formula of the loss.
  enum class Kind {
    l1,             ///< |d|
    smooth_l1,      ///< d^2 / (2 threshold) if |d| is below the threshold, else |d| - threshold / 2
    huber,          ///< d^2 / 2 below the threshold, else threshold (|d| - threshold / 2)
    bce,            ///< -(t log x + (1 - t) log(1 - x)), with logarithms of at least -100
    kl_div,         ///< t (log t - x)
    kl_div_of_logs, ///< exp(t) (t - x), where the target is also a logarithm
  };
  Kind kind = Kind::l1;
  double threshold = 1.0; ///< PyTorch's beta or delta
  Reduction reduction = Reduction::mean;
};
/// Connectionist temporal classification of log-probabilities [T, B, C]. Labels are [B, S], with
/// blanks and repetitions between them; all sequences have full length.
struct Ctc {
  std::int64_t target_length = 0; ///< length S of the labels
  std::int64_t blank = 0;         ///< class of the blank
  bool zero_infinity = false;     ///< whether samples too short for their labels do not count
  Reduction reduction = Reduction::mean; ///< over labels, then over samples
};
/// No loss.
struct NoLoss {};
/// Loss that the network computes itself: a weighted sum of scalar outputs. Empty: its first scalar
/// output.
struct NetworkLoss {
  std::vector<std::pair<std::string, double>> outputs;
};
struct LossTerm;
/// Weighted sum of losses of one or several outputs.
struct LossSum {
  std::vector<LossTerm> terms;
};
/// Any loss.
using Loss = std::variant<CrossEntropy, Mse, BceWithLogits, ElementwiseLoss, Ctc, NoLoss,
                          NetworkLoss, LossSum>;
/// A term of LossSum.
struct LossTerm {
  Loss loss;          ///< not NoLoss, NetworkLoss or LossSum
  std::string output; ///< of the network; empty: its first floating-point output
  double weight = 1.0;
};

// Optimisers have PyTorch's names, meanings and defaults where PyTorch has them (its sgd has a
// default rate of 1e-3 from version 2 on), otherwise those of the published code.

/// Stochastic gradient descent, as in PyTorch.
struct Sgd {
  double learning_rate = 1e-3;
  double momentum = 0.0;
  double dampening = 0.0;
  bool nesterov = false;
  double weight_decay = 0.0;
};
/// Adam, as in PyTorch.
struct Adam {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.0;
  bool amsgrad = false; ///< divides by the maximum second moment so far (Reddi et al. 2018)
};
/// AdamW, as in PyTorch.
struct AdamW {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 1e-2;
  bool amsgrad = false; ///< divides by the maximum second moment so far (Reddi et al. 2018)
};
/// Adam on the rows that a step has read, for sparse gradients of embeddings; as in PyTorch.
struct SparseAdam {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
};
/// RMSprop, as in PyTorch.
struct Rmsprop {
  double learning_rate = 1e-2;
  double alpha = 0.99;
  double momentum = 0.0;
  bool centered = false;
  double epsilon = 1e-8;
  double weight_decay = 0.0;
};
/// Adagrad, as in PyTorch.
struct Adagrad {
  double learning_rate = 1e-2;
  double learning_rate_decay = 0.0;
  double initial_accumulator = 0.0;
  double epsilon = 1e-10;
  double weight_decay = 0.0;
};
/// Lion optimiser.
struct Lion {
  double learning_rate = 1e-4;
  double beta1 = 0.9;
  double beta2 = 0.99;
  double weight_decay = 0.0;
};
/// Adafactor optimiser.
struct Adafactor {
  double learning_rate = 1e-3;
  double beta1 = 0.0;
  double decay_rate = -0.8;     ///< the moments' share grows as 1 - step^decay_rate
  double clip_threshold = 1.0;  ///< maximum root mean square of an update
  double epsilon = 1e-30;       ///< added to squares
  double epsilon2 = 1e-3;       ///< minimum size of a parameter
  bool relative_step = false;   ///< uses min(0.01, 1/sqrt(step)) instead of a rate
  bool scale_parameter = false; ///< multiplies the rate by the parameter's size
  double weight_decay = 0.0;
};
/// Lamb optimiser.
struct Lamb {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-6;
  double weight_decay = 0.0;
};
/// Muon optimiser.
struct Muon {
  double learning_rate = 2e-2;
  double momentum = 0.95;
  bool nesterov = true;
  std::int64_t newton_schulz_steps = 5;
  double epsilon = 1e-7;
  double weight_decay = 0.0;
  AdamW others{.weight_decay = 0.0}; ///< for parameters that are not matrices
};
/// Any optimiser.
using Optimizer =
    std::variant<Adam, AdamW, Sgd, Rmsprop, Adagrad, Lion, Adafactor, Lamb, Muon, SparseAdam>;

/// Parameters with separate settings; a parameter belongs to the first group that matches it.
struct ParameterGroup {
  std::vector<std::string> match; ///< glob patterns of parameter names
  bool norms_and_biases = false;  ///< whether norms and biases match, whatever their names
  Optimizer optimizer;
};

/// Scaling of the loss against underflow of low-precision gradients. A step with a gradient that is
/// not finite changes only the scale.
struct LossScaleOptions {
  bool dynamic = true;
  double initial = 65536.0;
  std::int64_t growth_interval = 2000; ///< number of consecutive finite steps
  double factor = 2.0;
  double backoff = 0.5;
};

/// Options of the optimiser update.
struct UpdateOptions {
  Optimizer optimizer;
  std::vector<ParameterGroup> groups;
  std::optional<double> clip_global_norm; ///< maximum norm of all gradients together
  std::optional<double> clip_value;       ///< maximum magnitude of a gradient's elements
  /// Weight of the old mean in an exponential moving average of every trained parameter; nullopt:
  /// no average.
  std::optional<double> average_decay;
  std::optional<LossScaleOptions> loss_scale;
  /// Whether there is one operator per parameter; false: a chain of element-wise operators.
  bool fused = true;
};

/// Products of layers in fp8, with operands scaled to its range (Micikevicius et al. 2022, "FP8
/// formats for deep learning"), by the recipes of NVIDIA's Transformer Engine. A scale is the
/// format's largest number divided by the maximum magnitude ("amax") of the tensor.
struct ScaledProducts {
  /// Recipe of the scales.
  enum class Scaling {
    delayed, ///< one scale per tensor, from the maxima of previous steps
    current, ///< one scale per tensor, from its own maximum, which requires one more pass over it
    block,   ///< scales per 1x128 numbers, or 128x128 of a weight, from their own maxima
  };
  ElementType forward = ElementType::fp8_e4m3;  ///< operands of forward products
  ElementType backward = ElementType::fp8_e5m2; ///< gradients of their results
  Scaling scaling = Scaling::delayed;
  std::int64_t amax_history = 1024; ///< delayed scaling: number of steps whose maxima are kept
  /// Whether the last maximum is used instead of the largest of the history.
  bool most_recent = false;
  std::int64_t margin = 0;          ///< delayed scaling: scales are divided by 2^margin
  std::vector<std::string> layers;  ///< glob patterns of weights; empty: all
  bool keep_first_and_last = false; ///< those layers keep the types of their roles
};

/// Handling of a product's operand whose blocks do not lie along the reduction axis.
enum class TransposedBlocks {
  copy,       ///< a second copy is quantised from the computed values, together with the first
  requantise, ///< the first copy's numbers are quantised again where they are read
};

/// Element type of each role. nullopt: the type in the network's file; a network whose parameters
/// are all fp64 (written for its numbers) counts as fp32. If weights or activations are set, types
/// that are derived from them are fp32 unless also set. Partial sums of products have the type
/// `accumulate`.
struct Precision {
  std::optional<ElementType> weights;
  std::optional<ElementType> master_weights; ///< nullopt: the weights themselves are updated
  std::optional<ElementType> activations;
  std::optional<ElementType> gradients; ///< nullopt: type of the differentiated tensor
  /// Gradients of parameters, as they are accumulated, exchanged and passed to the update; nullopt:
  /// as `gradients`.
  std::optional<ElementType> weight_gradients;
  std::optional<ElementType> optimizer_state; ///< nullopt: type of the weight
  ElementType accumulate = ElementType::fp32;
  /// Statistics of normalisations, log-probabilities and the loss, and sums of squares. nullopt: as
  /// `accumulate`, or fp32 if that is an integer type.
  std::optional<ElementType> reductions;
  /// Parameters that are not trained; nullopt: as `weights`.
  std::optional<ElementType> frozen_weights;
  std::optional<ScaledProducts> products; ///< nullopt: products use the types of their operands
  TransposedBlocks transposed = TransposedBlocks::copy;
  StepArithmetic arithmetic; ///< for execution of the step in the formats of its tensors

  /// Element type of reductions.
  ElementType reduction_type() const {
    return reductions.value_or(is_floating(accumulate) ? accumulate : ElementType::fp32);
  }
  /// Element type of gradients of a tensor with type `of`.
  ElementType gradient_type(ElementType of) const {
    return gradients.value_or(weights || activations ? ElementType::fp32 : of);
  }
  /// Element type of the gradient of a weight.
  ElementType weight_gradient_type(ElementType weight) const {
    return weight_gradients.value_or(gradient_type(weight));
  }
  /// Element type of the optimiser states of a weight.
  ElementType state_type(ElementType weight) const {
    return optimizer_state.value_or(weights ? ElementType::fp32 : weight);
  }
};

/// Policy for the activations that the forward part stores.
enum class StorePolicy {
  minimal,       ///< only tensors that some backward operator reads
  pytorch_eager, ///< tensors that PyTorch's autograd keeps
};

/// Options for stored activations, with glob patterns of tensors.
struct StorageOptions {
  StorePolicy policy = StorePolicy::minimal;
  /// Patterns of tensors that are stored even if no operator requires it.
  std::vector<std::string> keep;
  std::vector<std::string> recompute; ///< patterns of tensors that are recomputed instead of stored
  std::vector<std::string> offload;   ///< patterns of tensors that are stored in the host's memory
};

/// Range of layers that are trained, numbered from 0 in the network's order; negative numbers count
/// from the end. A layer is an operator with a weight (convolution, product, embedding) and the
/// parameters of the operators that follow it.
struct LayerRange {
  std::int64_t from = 0;
  std::int64_t to = -1; ///< last layer, included
};

/// Low-rank adapters (Hu et al. 2021): Y += (alpha/rank) * B(A(X)), where only A and B are trained.
struct LoraOptions {
  std::int64_t rank = 8;
  double alpha = 16.0;
  std::vector<std::string> targets{"*"}; ///< glob patterns of weights
};

/// Sparse update (Lin et al. 2022): only biases and the first output channels of some weights are
/// trained.
struct SparseOptions {
  /// Share of output channels that are trained, for matching weights.
  struct Channels {
    std::string match; ///< glob pattern of weights
    double share = 1.0;
  };
  bool biases = true;
  std::vector<Channels> channels;
};

/// Options that select the trained parameters.
struct TrainableOptions {
  /// Glob patterns; other parameters are not trained (except adapters).
  std::vector<std::string> train;
  std::vector<std::string> freeze; ///< glob patterns of parameters that are not trained
  /// Glob patterns of initialisers that are parameters, whatever they look like; for the reader of
  /// the network (OnnxReadOptions).
  std::vector<std::string> parameters;
  /// Glob patterns of initialisers that are buffers, whatever they look like; for the reader of the
  /// network (OnnxReadOptions).
  std::vector<std::string> buffers;
  /// Glob patterns of initialisers that are tied to the initialiser that they equal; nullopt: as
  /// the file suggests. For the reader of the network (OnnxReadOptions).
  std::optional<std::vector<std::string>> ties;
  std::optional<LayerRange> layers;
  std::optional<LoraOptions> lora;
  std::optional<SparseOptions> sparse;
};

/// Form of attention in the training step.
enum class AttentionForm {
  exported, ///< products and softmax, as in the file
  fused,    ///< one operator that stores no scores and recomputes them in its backward
};

/// Tensors that stop gradients, as after PyTorch's detach(), which an export omits.
struct Detach {
  std::string tensor; ///< pattern of names
  std::string before; ///< pattern of the operators that read them detached; empty: all
};

/// All options of a training step.
struct TrainingOptions {
  Loss loss;
  std::vector<Detach> detach;
  UpdateOptions update;
  Precision precision;
  StorageOptions storage;
  TrainableOptions trainable;
  AttentionForm attention = AttentionForm::exported;
  /// Whether batch normalisation uses its running statistics and does not update them.
  bool frozen_batch_norm = false;
  /// Number of micro-batches, each of the network's batch; there is one update for all of them.
  std::int64_t micro_batches = 1;
  /// Whether to omit operators that the loss does not need: other outputs of the network, and
  /// statistics of batch normalisations on the way to them.
  bool only_loss = false;
  /// Sharpness-aware minimisation (Foret et al. 2021): distance that weights are moved along their
  /// gradient before the gradient for the update is computed. nullopt: not used.
  std::optional<double> sam_rho;
  /// Glob patterns of embeddings whose gradient has only the rows that were read.
  std::vector<std::string> sparse_gradients;
  /// Glob patterns of products (operators of the network) whose two gradients one operator
  /// computes, in one pass over dY.
  std::vector<std::string> paired_gradients;
};

/// One of several steps that alternate on the same weights, such as those of a GAN's two players.
struct AlternateStep {
  std::string name;
  std::int64_t repeat = 1; ///< number of consecutive executions
  TrainingOptions options;
};

} // namespace monet
