// What a training step is made with, part by part.
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

// PyTorch's names and meanings of losses.
enum class Reduction {
  mean,
  sum,
  batch_mean, ///< the sum over all elements, divided by the first axis
};

struct CrossEntropy {
  double label_smoothing = 0.0;             ///< share spread evenly over all classes
  std::optional<std::int64_t> ignore_index; ///< rows of this label do not count
  /// Axis of the classes; by default 1 for logits of two or of at least four axes ([B, C],
  /// [B, C, H, W]) and the last one for three ([B, T, C]).
  std::optional<std::int64_t> class_axis;
  /// Of each class; empty = 1. A mean is taken over the weights of the labels.
  std::vector<double> weight = {};
  Reduction reduction = Reduction::mean;
  bool of_log_probabilities = false; ///< nll: the prediction has been through a log-softmax
};
struct Mse {
  Reduction reduction = Reduction::mean;
};
struct BceWithLogits {
  /// Weight of the targets' ones, one number or one for each element of the last axis; empty = 1.
  std::vector<double> pos_weight;
  Reduction reduction = Reduction::mean;
};
/// Of each element's difference d to its target, or of a prediction x and its target t:
struct ElementwiseLoss {
  enum class Kind {
    l1,        ///< |d|
    smooth_l1, ///< d^2 / (2 threshold) where |d| is below the threshold, else |d| - threshold / 2
    huber,     ///< d^2 / 2 below, else threshold (|d| - threshold / 2)
    bce,       ///< -(t log x + (1 - t) log(1 - x)), logarithms not below -100
    kl_div,    ///< t (log t - x)
    kl_div_of_logs, ///< exp(t) (t - x): the target is a logarithm as well
  };
  Kind kind = Kind::l1;
  double threshold = 1.0; ///< beta, delta
  Reduction reduction = Reduction::mean;
};
/// Connectionist temporal classification of log-probabilities [T, B, C]: labels [B, S] with blanks
/// and repetitions between them, all sequences of full length.
struct Ctc {
  std::int64_t target_length = 0;        ///< S
  std::int64_t blank = 0;                ///< its class
  bool zero_infinity = false;            ///< samples too short for their labels do not count
  Reduction reduction = Reduction::mean; ///< over labels, then over samples
};
struct NoLoss {};
/// What the network itself computes: scalar outputs, added up with weights. Empty: its first scalar
/// output.
struct NetworkLoss {
  std::vector<std::pair<std::string, double>> outputs;
};
struct LossTerm;
/// Losses of one output or several, added up with weights.
struct LossSum {
  std::vector<LossTerm> terms;
};
using Loss = std::variant<CrossEntropy, Mse, BceWithLogits, ElementwiseLoss, Ctc, NoLoss,
                          NetworkLoss, LossSum>;
struct LossTerm {
  Loss loss;          ///< none of the last three
  std::string output; ///< of the network; empty: its first floating one
  double weight = 1.0;
};

// Optimisers, with PyTorch's names, meanings and defaults where it has them (an sgd without rate
// takes 1e-3 there from version 2 on), those of the published code otherwise.
struct Sgd {
  double learning_rate = 1e-3;
  double momentum = 0.0;
  double dampening = 0.0;
  bool nesterov = false;
  double weight_decay = 0.0;
};
struct Adam {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.0;
  bool amsgrad = false; ///< divides by the largest second moment so far (Reddi et al. 2018)
};
struct AdamW {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 1e-2;
  bool amsgrad = false; ///< divides by the largest second moment so far (Reddi et al. 2018)
};
/// Adam of the rows that a step has read: for sparse gradients of embeddings.
struct SparseAdam {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
};
struct Rmsprop {
  double learning_rate = 1e-2;
  double alpha = 0.99;
  double momentum = 0.0;
  bool centered = false;
  double epsilon = 1e-8;
  double weight_decay = 0.0;
};
struct Adagrad {
  double learning_rate = 1e-2;
  double learning_rate_decay = 0.0;
  double initial_accumulator = 0.0;
  double epsilon = 1e-10;
  double weight_decay = 0.0;
};
struct Lion {
  double learning_rate = 1e-4;
  double beta1 = 0.9;
  double beta2 = 0.99;
  double weight_decay = 0.0;
};
struct Adafactor {
  double learning_rate = 1e-3;
  double beta1 = 0.0;
  double decay_rate = -0.8;     ///< the moments' share grows as 1 - step^decay_rate
  double clip_threshold = 1.0;  ///< largest root mean square of a move
  double epsilon = 1e-30;       ///< added to squares
  double epsilon2 = 1e-3;       ///< least size of a parameter
  bool relative_step = false;   ///< min(0.01, 1/sqrt(step)) instead of a rate
  bool scale_parameter = false; ///< rate times the parameter's size
  double weight_decay = 0.0;
};
struct Lamb {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-6;
  double weight_decay = 0.0;
};
struct Muon {
  double learning_rate = 2e-2;
  double momentum = 0.95;
  bool nesterov = true;
  std::int64_t newton_schulz_steps = 5;
  double epsilon = 1e-7;
  double weight_decay = 0.0;
  AdamW others{.weight_decay = 0.0}; ///< trains what is no matrix
};
using Optimizer =
    std::variant<Adam, AdamW, Sgd, Rmsprop, Adagrad, Lion, Adafactor, Lamb, Muon, SparseAdam>;

/// Parameters with settings of their own; a parameter belongs to the first group that takes it.
struct ParameterGroup {
  std::vector<std::string> match; ///< glob patterns of parameter names
  bool norms_and_biases = false;  ///< takes them whatever they are called
  Optimizer optimizer;
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

struct UpdateOptions {
  Optimizer optimizer;
  std::vector<ParameterGroup> groups;
  std::optional<double> clip_global_norm; ///< largest norm of all gradients together
  std::optional<double> clip_value;       ///< largest magnitude of an element of a gradient
  /// Share of the old mean in an exponential moving average of every trained parameter.
  std::optional<double> average_decay;
  std::optional<LossScaleOptions> loss_scale;
  bool fused = true; ///< one operator per parameter; false: a chain of element-wise ones
};

/// Products of layers in fp8, their operands scaled to its range (Micikevicius et al. 2022, "FP8
/// formats for deep learning"), by the recipes of NVIDIA's Transformer Engine. A scale is the
/// largest number of the format over the largest magnitude ("amax") of the tensor.
struct ScaledProducts {
  enum class Scaling {
    delayed, ///< one scale a tensor, from the maxima of the steps before
    current, ///< one scale a tensor, from its own maximum: one more sweep over it
    block,   ///< scales of 1x128 numbers, of 128x128 of a weight, from their own maxima
  };
  ElementType forward = ElementType::fp8_e4m3;  ///< operands of forward products
  ElementType backward = ElementType::fp8_e5m2; ///< gradients of their results
  Scaling scaling = Scaling::delayed;
  std::int64_t amax_history = 1024; ///< steps whose maxima are kept; of delayed scaling
  bool most_recent = false;         ///< the last maximum decides, not the largest of the history
  std::int64_t margin = 0;          ///< scales are 2^margin times smaller; of delayed scaling
  std::vector<std::string> layers;  ///< glob patterns of weights; empty: all
  bool keep_first_and_last = false; ///< those layers stay in the types of their roles
};

/// How a product gets an operand whose blocks do not lie along the axis that it adds up.
enum class TransposedBlocks {
  copy,       ///< a second copy is made of what was computed, at once with the first
  requantise, ///< the first copy's numbers are quantised once more, where they are read
};

/// Element type of each role; none: as the network's file has the tensor; a
/// network of which every parameter is fp64, as one is written for its numbers, counts as fp32.
/// Where weights or activations are given, what is derived from them is fp32 unless given as well.
/// Partial sums of products are held in `accumulate`.
struct Precision {
  std::optional<ElementType> weights;
  std::optional<ElementType> master_weights; ///< none: the weights themselves are updated
  std::optional<ElementType> activations;
  std::optional<ElementType> gradients; ///< none: as what they are gradients of
  /// Of parameters, as they are added up, exchanged and given to the update; none: as gradients.
  std::optional<ElementType> weight_gradients;
  std::optional<ElementType> optimizer_state; ///< none: as the weight
  ElementType accumulate = ElementType::fp32;
  /// Statistics of normalisations, log-probabilities and the loss, sums of squares; none: as
  /// accumulate, or fp32 where that is an integer.
  std::optional<ElementType> reductions;
  std::optional<ElementType> frozen_weights; ///< parameters that are not trained; none: as weights
  std::optional<ScaledProducts> products;    ///< none: in the types of their operands
  TransposedBlocks transposed = TransposedBlocks::copy;
  StepArithmetic arithmetic; ///< for who executes the step in the formats of its tensors

  ElementType reduction_type() const {
    return reductions.value_or(is_floating(accumulate) ? accumulate : ElementType::fp32);
  }
  ElementType gradient_type(ElementType of) const {
    return gradients.value_or(weights || activations ? ElementType::fp32 : of);
  }
  ElementType weight_gradient_type(ElementType weight) const {
    return weight_gradients.value_or(gradient_type(weight));
  }
  ElementType state_type(ElementType weight) const {
    return optimizer_state.value_or(weights ? ElementType::fp32 : weight);
  }
};

enum class StorePolicy {
  minimal,       ///< only what some backward operator reads
  pytorch_eager, ///< what PyTorch's autograd keeps
};

struct StorageOptions {
  StorePolicy policy = StorePolicy::minimal;
  std::vector<std::string> keep;      ///< patterns of tensors that are stored though nobody asks
  std::vector<std::string> recompute; ///< patterns of tensors that are computed again instead
  std::vector<std::string> offload;   ///< patterns of those that wait in the host's memory
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

struct TrainableOptions {
  std::vector<std::string> train;  ///< glob patterns: nothing else is trained (besides adapters)
  std::vector<std::string> freeze; ///< glob patterns of parameters that are not trained
  /// Glob patterns of what the file has as numbers and is a parameter, or a buffer, whatever it
  /// looks like; for the reader of the network (OnnxReadOptions).
  std::vector<std::string> parameters;
  std::vector<std::string> buffers;
  /// Glob patterns of initialisers that are tied to the one they equal; none: as the file suggests.
  /// For the reader of the network (OnnxReadOptions).
  std::optional<std::vector<std::string>> ties;
  std::optional<LayerRange> layers;
  std::optional<LoraOptions> lora;
  std::optional<SparseOptions> sparse;
};

enum class AttentionForm {
  exported, ///< products and softmax, as the file has them
  fused,    ///< one operator that keeps no scores and recomputes them in its backward
};

/// Tensors that no gradient passes, as after PyTorch's detach(), which an export leaves out.
struct Detach {
  std::string tensor; ///< pattern of names
  std::string before; ///< pattern of the operators that read them detached; empty: all do
};

struct TrainingOptions {
  Loss loss;
  std::vector<Detach> detach;
  UpdateOptions update;
  Precision precision;
  StorageOptions storage;
  TrainableOptions trainable;
  AttentionForm attention = AttentionForm::exported;
  bool frozen_batch_norm = false; ///< normalises with its running statistics and leaves them
  std::int64_t micro_batches = 1; ///< of the network's batch each; one update for all of them
  /// Leaves out what the loss does not need: other outputs of the network, and the statistics of
  /// batch normalisations on the way to them.
  bool only_loss = false;
  /// Sharpness-aware minimisation (Foret et al. 2021): how far weights are moved along their
  /// gradient before the gradient that updates them is taken.
  std::optional<double> sam_rho;
  /// Glob patterns of embeddings whose gradient holds only the rows that were read.
  std::vector<std::string> sparse_gradients;
  /// Glob patterns of products (operators of the network) of which both gradients are computed by
  /// one operator, in one sweep of dY.
  std::vector<std::string> paired_gradients;
};

/// One of several steps that take turns on the same weights, as those of a GAN's two players.
struct AlternateStep {
  std::string name;
  std::int64_t repeat = 1; ///< times in a row
  TrainingOptions options;
};

} // namespace monet
