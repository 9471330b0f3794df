// Builder for every part of this stage: a graph under construction whose new tensors and operators
// get unique names, the element type of their role and their loop nest.
#pragma once

#include "monet/training_graph/training.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace monet {

/// An operator to be appended; outputs are tensors already added.
struct NewOperator {
  std::string name;
  OpType op_type;
  std::string_view domain;
  std::vector<std::optional<TensorId>> inputs;
  std::vector<std::optional<TensorId>> outputs;
  Attributes attributes;
  Phase phase = Phase::backward;
  GradientOf gradient_of = GradientOf::none;
  std::optional<OpId> forward_op;
};

/// Gradients that products take in fp8.
struct ScaledGradients {
  /// By the gradient itself: its copy, and that in blocks along its columns.
  std::map<TensorId, std::pair<std::optional<TensorId>, std::optional<TensorId>>> casts;
  std::map<TensorId, TensorId> views;                 ///< of copies along columns, as what was cast
  std::map<TensorId, std::optional<TensorId>> scales; ///< states, by the weight of the product
};

class StepBuilder {
public:
  StepBuilder(Graph graph, const Precision& precision);

  Graph& graph() { return graph_; }
  const Graph& graph() const { return graph_; }
  const Precision& precision() const { return precision_; }

  /// Adds a tensor; a name that is taken gets a number.
  TensorId add_tensor(std::string name, Integers shape, ElementType type, TensorKind kind);
  /// A backward product takes what it multiplies in one type, the wider one: the other is cast
  /// before it, once for all readers.
  OpId add_operator(NewOperator op);

  /// int64 vector as a constant tensor, one per value: axes, shapes, pads.
  TensorId integers(const Integers& values);
  /// Floating scalar as a constant tensor, one per value and type.
  TensorId scalar(double value, ElementType type);

  /// Views; none is added when nothing changes.
  TensorId reshape(TensorId tensor, const Integers& shape, NewOperator like);
  TensorId expand(TensorId tensor, const Integers& shape, NewOperator like);

  Integers shape(TensorId tensor) const { return graph_.tensor(tensor).shape; }
  /// Type of the gradient of tensor `of`; a tensor in fp8 has the type of the cast one.
  ElementType gradient_type(TensorId of) const;
  ScaledGradients& scaled_gradients() { return scaled_gradients_; }

  Graph release() { return std::move(graph_); }

  /// Frees a tensor's name for another: "x" becomes "x_part" and a number.
  void give_way(TensorId id);
  /// Gives a tensor a better name, unless that name is taken.
  void rename_tensor(TensorId id, const std::string& name);

private:
  /// The tensor through an operator that takes the wanted shape as its second input.
  TensorId give_shape(OpType op_type, std::string_view suffix, TensorId tensor,
                      const Integers& shape, NewOperator like);
  std::string unique(std::unordered_set<std::string>& taken, std::string name);
  void cast_operands(Operator& op);
  TensorId cast(TensorId tensor, ElementType type, const Operator& reader);

  Graph graph_;
  Precision precision_;
  std::unordered_set<std::string> tensor_names_;
  std::unordered_set<std::string> op_names_;
  std::unordered_map<std::string, int> last_number_; ///< given to a name that was taken
  std::map<Integers, TensorId> integers_;
  std::map<std::pair<double, ElementType>, TensorId> scalars_;
  std::map<std::pair<TensorId, ElementType>, TensorId> casts_;
  ScaledGradients scaled_gradients_;
};

/// Value of a constant scalar input, or nullopt if it is unknown.
std::optional<double> known_number(const Graph& graph, const Operator& op, std::size_t input);
/// Share of elements that a Dropout drops.
double dropout_ratio(const Graph& graph, const Operator& op);
/// `axis` counted from the end when negative.
std::size_t normal_axis(std::int64_t axis, std::size_t rank);

} // namespace monet
