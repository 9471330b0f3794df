// Forward graph -> the graph of one training step: forward, loss, backward, optimiser update.
#pragma once

#include "monet/base/yaml.hpp"
#include "monet/workload/graph.hpp"

#include <optional>
#include <string>
#include <vector>

namespace monet {

enum class LossKind { cross_entropy, mse, bce_with_logits, none };
enum class OptimizerKind { sgd, momentum, adam, adamw };

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::adam;
  double learning_rate = 1e-3;
  double momentum = 0.9;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.0;
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

struct TrainingOptions {
  LossKind loss = LossKind::cross_entropy;
  OptimizerOptions optimizer;
  Precision precision;
  StorePolicy store = StorePolicy::minimal;
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

/// One step, ready to be costed, exported or executed. For inference only the forward part is
/// there.
struct TrainingGraph {
  Graph graph;
  bool training = false;
  std::optional<TensorId> loss;
  std::vector<ParameterRecord> parameters;
  std::vector<TensorId> stored_activations;   ///< forward tensors that backward reads
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

/// MACs by what they compute.
struct MacSplit {
  std::int64_t forward = 0;
  std::int64_t backward_input = 0;
  std::int64_t backward_weight = 0;
};
MacSplit count_macs(const Graph& graph);

} // namespace monet
