// The parts of recognise_training_step(). Operators are looked at in the graph as read; what is
// found is a list of replacements.
#pragma once

#include "monet/workload/graph.hpp"
#include "monet/workload/imported_steps.hpp"

#include <optional>
#include <string>
#include <vector>

namespace monet::foreign {

/// Phase of every operator. Empty when the graph is no training step.
std::vector<Phase> find_phases(const Graph& graph);

/// Gradients of parameters, by tensor: what the chain of an update reads and does not make. Valid
/// together with find_phases().
std::vector<std::optional<TensorId>> find_parameter_gradients(const Graph& graph,
                                                              const std::vector<Phase>& phases);

/// The tensor that an output is the new value of, or nullopt. It should be a parameter.
std::optional<TensorId> updated_tensor(const Graph& graph, TensorId output);

/// An operator to stand where another one is.
struct Replacement {
  OpId last; ///< of those replaced; its first output is the gradient
  Operator made;
  RecognisedGradient note;
};

/// Candidates have `why` when they were refused.
struct Match {
  std::optional<Replacement> found;
  std::string why;
};

/// ConvTranspose that is the gradient of a convolution of the forward phase.
Match match_input_gradient(const Graph& graph, const std::vector<Phase>& phases, OpId transposed);
/// The product is summed over the batch and becomes a kernel: it should be made of patches.
bool is_kernel_product(const Graph& graph, const Operator& op);
/// MatMul of dY with gathered patches.
Match match_weight_gradient(const Graph& graph, const std::vector<Phase>& phases, OpId product);

/// Producer of an operand if it is of that type and has one output, or null.
const Operator* made_by(const Graph& graph, std::optional<TensorId> tensor,
                        std::string_view op_type);

} // namespace monet::foreign
