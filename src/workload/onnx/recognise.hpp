// Chains of operators that exporters write for one function (GELU, RMSNorm, ...), found again.
// A pattern looks at nodes backwards from the node that makes its result; it may be replaced when
// nothing else reads what is made on the way.
#pragma once

#include "workload/onnx/model.hpp"

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace monet::onnx_file {

/// The nodes of a network with the links between them.
class Chains {
public:
  Chains(const Model& model, std::vector<Node>& nodes, Values& values);

  /// Nodes that a pattern has looked through, the result's own among them.
  using Members = std::set<std::size_t>;

  std::size_t size() const { return nodes_->size(); }
  const Node& node(std::size_t i) const { return (*nodes_)[i]; }
  const Value& value(const std::string& name) const { return values_->at(name); }

  /// The standard operator of that type that makes the value, or nullptr. Copies in between
  /// (Identity, Cast to the type it has) are looked through; what was passed joins `members`.
  const Node* made_by(const std::string& name, std::string_view op_type, Members& members) const;
  /// The only node that reads the value, copies looked through; nullptr when there are several, or
  /// a graph output is among them.
  const Node* only_reader(const std::string& name, Members& members) const;
  std::size_t readers(const std::string& name) const;
  std::size_t index_of(const Node& node) const {
    return static_cast<std::size_t>(&node - nodes_->data());
  }
  /// Is `name` the value `of`, or a copy of it?
  bool same(const std::string& name, const std::string& of, Members& members) const;
  /// The value that `name` is a copy of.
  std::string source(const std::string& name, Members& members) const;

  /// The number that a constant or a parameter of one element holds. Exporters that fold constants
  /// write them as parameters are written: only the function that they belong to tells.
  std::optional<double> number(const std::string& name) const;
  /// That number is of a parameter.
  bool is_trained(const std::string& name) const;
  /// Every element of a constant is this number.
  bool filled_with(const std::string& name, double number) const;
  /// A node of two operands, one of them a known number: the other operand and the number.
  std::optional<std::pair<std::string, double>> with_number(const Node& node) const;

  /// Nobody outside `members` reads a value made inside, except those of `result`.
  bool closed(const Members& members, std::size_t result) const;
  struct Replacement {
    std::string_view op_type;
    std::string_view domain;
    std::vector<std::string> inputs;
    Attributes attributes = {};
  };
  /// Puts an operator in the place of node `result`, whose outputs stay; the other members go.
  void replace(std::size_t result, const Members& members, Replacement by);
  /// A value and the node that makes it (a Reshape of `from`), put before node `at` when done.
  std::string reshaped(const std::string& from, const Integers& shape, std::size_t at);
  /// A value and the node that makes it, likewise.
  std::string inserted(std::string_view op_type, std::vector<std::string> inputs,
                       Attributes attributes, Value result, std::size_t at);
  /// A constant vector.
  std::string integers(Integers list, std::size_t at);
  /// A constant of one axis, all elements `number`, of the element type of `like`.
  std::string filled(const std::string& like, std::int64_t count, double number, std::size_t at);
  /// Inserts the nodes that `reshaped` has made and drops replaced ones. Indices are invalid
  /// afterwards.
  void finish();

private:
  bool is_copy(const Node& node) const;
  void link();
  void unlink(std::size_t node);

  const Model* model_;
  std::vector<Node>* nodes_;
  Values* values_;
  std::unordered_map<std::string, std::size_t> producer_;
  std::unordered_map<std::string, std::vector<std::size_t>> readers_;
  std::vector<std::pair<std::size_t, Node>> inserted_; ///< before which node
  std::vector<bool> gone_;
};

/// Equal up to the rounding of half-precision constants.
bool is_near(double value, double wanted);

/// Replaces the pattern whose result node `at` makes; returns whether there was one.
bool recognise_activation(Chains& chains, std::size_t at);
bool recognise_fake_quantization(Chains& chains, std::size_t at);
bool recognise_row_normalization(Chains& chains, std::size_t at);
bool recognise_group_normalization(Chains& chains, std::size_t at);
bool recognise_embedding_bags(Chains& chains, std::size_t at);

} // namespace monet::onnx_file
