// Helper for writing networks by hand: tensors and operators by name, each operator with its nest;
// and the parts of a transformer.
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

/// An operator about to be written. Its result is called as it is, those of several with /1, /2,
/// ... behind it.
struct Node {
  std::string name;
  std::string_view op_type;
  std::vector<TensorId> inputs;
  Attributes attributes = {};
  ElementType type = ElementType::fp32; ///< of its results
  std::string_view domain = {};
};

class GraphWriter {
public:
  /// InputError from what adds a tensor of more than `max_elements`.
  GraphWriter(Graph& graph, std::int64_t max_elements)
      : graph_(graph), max_elements_(max_elements) {}

  TensorId parameter(const std::string& name, Extents shape);
  TensorId input(const std::string& name, Extents shape, ElementType type);
  /// Constants are made once for each name.
  TensorId integers(const std::string& name, const Extents& values, ElementType type);
  TensorId shape_of(const std::string& name, const Extents& values);
  TensorId integer(const std::string& name, std::int64_t value, ElementType type);
  TensorId number(const std::string& name, double value);
  TensorId numbers(const std::string& name, const std::vector<double>& values);
  TensorId constant(Tensor tensor);

  TensorId add(Node node, Extents shape);
  std::vector<TensorId> add_all(Node node, const std::vector<Extents>& shapes);

  const Extents& shape(TensorId tensor) const { return graph_.tensor(tensor).shape; }
  /// Element by element with another tensor that is broadcast to this one.
  TensorId with(const std::string& name, std::string_view op_type, TensorId tensor, TensorId other);
  TensorId transpose(const std::string& name, TensorId tensor, const Extents& perm);
  TensorId reshape(const std::string& name, TensorId tensor, const Extents& shape);
  /// `letters` as an Einsum has them: "egch,ehf->egcf".
  TensorId einsum(const std::string& name, const std::string& letters, TensorId first,
                  TensorId second, Extents shape);
  void output(TensorId tensor) { graph_.outputs.push_back(tensor); }

private:
  TensorId new_tensor(Tensor tensor);

  Graph& graph_;
  std::int64_t max_elements_;
  std::map<std::string, TensorId, std::less<>> constants_;
};

/// Normalises over the last axis, with trained `name`.weight and, of a layer norm, `name`.bias.
TensorId add_norm(GraphWriter& writer, const TransformerShape& shape, const std::string& name,
                  TensorId x);
/// x, or x with a share of it dropped; `ratio` is the name of that number.
TensorId add_dropout(GraphWriter& writer, double share, const std::string& name, TensorId x,
                     const std::string& ratio = "dropout");

/// A product of x with weights of its own, to rows of `columns` numbers.
using Linear = std::function<TensorId(const std::string& part, TensorId x, std::int64_t columns)>;
/// proj(activation(fc(x))), or proj(silu(gate(x)) * up(x)): parts of `linear`.
TensorId add_feed_forward(GraphWriter& writer, const TransformerShape& shape,
                          const std::string& name, TensorId x, const Linear& linear);

/// The mixture of experts of x [batch, sequence, hidden], called `name`.
TensorId add_experts(GraphWriter& writer, const TransformerShape& shape, const std::string& name,
                     TensorId x);

/// Where the value of a key is, for messages.
using PlaceOf = std::function<SourceLoc(std::string_view key)>;

/// Reports all that is out of range or does not divide.
void check_shape(const TransformerShape& shape, const PlaceOf& place_of, ProblemList& problems);

} // namespace monet::transformer
