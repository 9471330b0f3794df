// Parts of recognise_training_step(). They inspect the original graph and return a list of
// replacements.
#pragma once

#include "monet/workload/graph.hpp"
#include "monet/workload/imported_steps.hpp"

#include <optional>
#include <string>
#include <vector>

namespace monet::foreign {

/// Phase of every operator; empty if the graph is not a training step.
std::vector<Phase> find_phases(const Graph& graph);

/// Parameter whose gradient each tensor is, by tensor: inputs of an update chain that the chain
/// does not compute. Valid together with find_phases().
std::vector<std::optional<TensorId>> find_parameter_gradients(const Graph& graph,
                                                              const std::vector<Phase>& phases);

/// Tensor whose new value the output is, normally a parameter; nullopt if not found.
std::optional<TensorId> updated_tensor(const Graph& graph, TensorId output);

/// Operator that replaces others.
struct Replacement {
  OpId last; ///< last replaced operator; its first output is the gradient
  Operator made;
  RecognisedGradient note;
};

/// Result of matching a candidate; `why` is set if it was refused.
struct Match {
  std::optional<Replacement> found;
  std::string why;
};

/// Matches a ConvTranspose that computes the input gradient of a convolution of the forward phase.
Match match_input_gradient(const Graph& graph, const std::vector<Phase>& phases, OpId transposed);
/// Whether the product is summed over the batch and reshaped to a kernel, as a product with patches
/// is.
bool is_kernel_product(const Graph& graph, const Operator& op);
/// Matches a MatMul of dY with gathered patches, a weight gradient.
Match match_weight_gradient(const Graph& graph, const std::vector<Phase>& phases, OpId product);

/// Producer of an operand if it has that type and one output; otherwise null.
const Operator* made_by(const Graph& graph, std::optional<TensorId> tensor, OpType op_type);

} // namespace monet::foreign
