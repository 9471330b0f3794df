// Helper for writing networks: tensors and operators by name, each operator with its nest; and the
// parts of a transformer.
#pragma once

#include "monet/workload/graph.hpp"
#include "monet/workload/transformer.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace monet::transformer {

using Extents = Integers;

/// Operator to be written. A single result has the operator's name; several results have the
/// suffixes /1, /2, ...
struct Node {
  std::string name;
  OpType op_type;
  std::vector<TensorId> inputs;
  Attributes attributes = {};
  ElementType type = ElementType::fp32; ///< element type of its results
  std::string_view domain = {};
};

class GraphWriter {
public:
  /// Writes into `graph`; additions throw InputError for tensors with more than `max_elements`
  /// elements.
  GraphWriter(Graph& graph, std::int64_t max_elements)
      : graph_(graph), max_elements_(max_elements) {}

  TensorId parameter(const std::string& name, Extents shape);
  TensorId input(const std::string& name, Extents shape, ElementType type);
  /// Integer constants; each name is added once.
  TensorId integers(const std::string& name, const Extents& values, ElementType type);
  TensorId shape_of(const std::string& name, const Extents& values);
  TensorId integer(const std::string& name, std::int64_t value, ElementType type);
  TensorId number(const std::string& name, double value);
  TensorId numbers(const std::string& name, const std::vector<double>& values);
  TensorId constant(Tensor tensor);

  TensorId add(Node node, Extents shape);
  std::vector<TensorId> add_all(Node node, const std::vector<Extents>& shapes);

  const Extents& shape(TensorId tensor) const { return graph_.tensor(tensor).shape; }
  /// Element-wise operator with another tensor, which is broadcast to this one.
  TensorId with(const std::string& name, OpType op_type, TensorId tensor, TensorId other);
  /// Softmax over the last axis.
  TensorId softmax(const std::string& name, TensorId tensor);
  TensorId transpose(const std::string& name, TensorId tensor, const Extents& perm);
  TensorId reshape(const std::string& name, TensorId tensor, const Extents& shape);
  /// Einsum with `letters` as its equation: "egch,ehf->egcf".
  TensorId einsum(const std::string& name, const std::string& letters, TensorId first,
                  TensorId second, Extents shape);
  void output(TensorId tensor) { graph_.outputs.push_back(tensor); }

private:
  TensorId new_tensor(Tensor tensor);

  Graph& graph_;
  std::int64_t max_elements_;
  std::map<std::string, TensorId, std::less<>> constants_;
};

/// Adds normalisation over the last axis, with trained `name`.weight and, for a layer norm,
/// `name`.bias.
TensorId add_norm(GraphWriter& writer, const TransformerShape& shape, const std::string& name,
                  TensorId x);
/// Adds dropout of a share of x, or returns x if the share is 0; `ratio` names the constant.
TensorId add_dropout(GraphWriter& writer, double share, const std::string& name, TensorId x,
                     const std::string& ratio = "dropout");

/// Adds the product of x and a new weight, with `columns` outputs per row.
using Linear = std::function<TensorId(const std::string& part, TensorId x, std::int64_t columns)>;
/// Adds proj(activation(fc(x))), or proj(silu(gate(x)) * up(x)), with products by `linear`.
TensorId add_feed_forward(GraphWriter& writer, const TransformerShape& shape,
                          const std::string& name, TensorId x, const Linear& linear);

/// Adds a mixture of experts named `name` for x [batch, sequence, hidden].
TensorId add_experts(GraphWriter& writer, const TransformerShape& shape, const std::string& name,
                     TensorId x);

/// Location of a key's value, for messages.
using PlaceOf = std::function<SourceLoc(std::string_view key)>;

/// Reports sizes that are out of range or do not divide.
void check_shape(const TransformerShape& shape, const PlaceOf& place_of, ProblemList& problems);

} // namespace monet::transformer
