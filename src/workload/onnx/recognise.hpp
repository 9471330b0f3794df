// Recognises chains of operators that exporters write for one function (GELU, RMSNorm, ...). A
// pattern follows nodes backwards from its result. It may be replaced if no other node reads its
// intermediate values.
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

/// Nodes of a network and the links between them.
class Chains {
public:
  Chains(const Model& model, std::vector<Node>& nodes, Values& values);

  /// Nodes that a pattern visited, including the result's producer.
  using Members = std::set<std::size_t>;

  std::size_t size() const { return nodes_->size(); }
  const Node& node(std::size_t i) const { return (*nodes_)[i]; }
  const Value& value(const std::string& name) const { return values_->at(name); }

  /// Producer of the value if it is a standard operator of that type, otherwise null. Skips copies
  /// (Identity, Cast to the same type); adds visited nodes to `members`.
  const Node* made_by(const std::string& name, OpType op_type, Members& members) const;
  /// Only reader of the value, after skipping copies; null if there are several or one is a graph
  /// output.
  const Node* only_reader(const std::string& name, Members& members) const;
  std::size_t readers(const std::string& name) const;
  std::size_t index_of(const Node& node) const {
    return static_cast<std::size_t>(&node - nodes_->data());
  }
  /// Whether `name` is the value `of` or a copy of it.
  bool same(const std::string& name, const std::string& of, Members& members) const;
  /// Original value that `name` copies.
  std::string source(const std::string& name, Members& members) const;

  /// Number of a constant or parameter with one element. Exporters that fold constants write them
  /// like parameters; only the surrounding function shows the difference.
  std::optional<double> number(const std::string& name) const;
  /// Whether that number belongs to a parameter.
  bool is_trained(const std::string& name) const;
  /// Whether every element of a constant equals this number.
  bool filled_with(const std::string& name, double number) const;
  /// Operand and known number of a node with two operands.
  std::optional<std::pair<std::string, double>> with_number(const Node& node) const;

  /// Whether only `members` read their values, except those of `result`.
  bool closed(const Members& members, std::size_t result) const;
  struct Replacement {
    OpType op_type;
    std::string_view domain;
    std::vector<std::string> inputs;
    Attributes attributes = {};
  };
  /// Replaces node `result` by an operator with the same outputs and removes the other members.
  void replace(std::size_t result, const Members& members, Replacement by);
  /// Adds a Reshape of `from` before node `at`, inserted by finish(); returns the name of its
  /// value.
  std::string reshaped(const std::string& from, const Integers& shape, std::size_t at);
  /// Adds a node before node `at`, inserted by finish(); returns the name of its value.
  std::string inserted(OpType op_type, std::vector<std::string> inputs, Attributes attributes,
                       Value result, std::size_t at);
  /// Adds a constant vector.
  std::string integers(Integers list, std::size_t at);
  /// Adds a constant vector with all elements `number` and the element type of `like`.
  std::string filled(const std::string& like, std::int64_t count, double number, std::size_t at);
  /// Inserts the added nodes and drops replaced ones. Indices are invalid afterwards.
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
  std::vector<std::pair<std::size_t, Node>> inserted_; ///< node index before which each is inserted
  std::vector<bool> gone_;
};

/// Whether two numbers are equal up to rounding of half-precision constants.
bool is_near(double value, double wanted);

/// Replaces the pattern whose result node `at` computes; returns whether it matched.
bool recognise_activation(Chains& chains, std::size_t at);
bool recognise_fake_quantization(Chains& chains, std::size_t at);
bool recognise_row_normalization(Chains& chains, std::size_t at);
bool recognise_group_normalization(Chains& chains, std::size_t at);
bool recognise_embedding_bags(Chains& chains, std::size_t at);

} // namespace monet::onnx_file
