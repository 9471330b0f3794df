// Resolves If, Loop and Scan while reading: keeps the branch of a known condition and unrolls the
// iterations of a body. A weight used by several iterations becomes one parameter with several
// readers.
#pragma once

#include "workload/onnx/model.hpp"

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace monet::onnx_file {

/// Aliases: values that equal others under a different name.
class SecondNames {
public:
  void add(const std::string& name, const std::string& of) { names_[name] = this->of(of); }
  const std::string& of(const std::string& name) const {
    const auto found = names_.find(name);
    return found == names_.end() ? name : found->second;
  }

private:
  std::unordered_map<std::string, std::string> names_;
};

/// Result of unrolling a node with inner graphs.
struct Unrolled {
  /// Value of each output of the node; empty if a visited node computes the output itself.
  std::vector<std::string> results;
  std::string depends; ///< data-dependent property that prevents unrolling, or empty
};

/// Copies the graphs within nodes into the network.
class ControlFlow {
public:
  /// Passes a node to the pass over the nodes. Returns false if an output remains unknown, which
  /// has been reported.
  using Visit = std::function<bool(Node&)>;

  ControlFlow(const Model& model, Values& values, const SecondNames& second_names, Visit visit)
      : model_(model), values_(values), second_names_(second_names), visit_(std::move(visit)) {}

  /// Whether the node is an If, Loop or Scan whose graphs were read.
  static bool handles(const Node& node) { return node.inner != nullptr; }
  /// Visits the copies. Returns nullopt if one has a problem, which has been reported. All inputs
  /// of the node must be known. Throws InputError at the node if its graphs do not fit it, or if
  /// there would be too many copies.
  std::optional<Unrolled> run(const Node& node);
  /// The name if unused, otherwise a similar unused one.
  std::string unused(std::string name);

private:
  using Names = std::vector<std::string>;
  using Renaming = std::unordered_map<std::string, std::string>;
  struct Body;

  std::optional<Unrolled> run_if(const Node& node);
  std::optional<Unrolled> run_loop(const Node& node);
  std::optional<Unrolled> run_scan(const Node& node);
  /// Combines the results of scans with the final value of every state.
  std::optional<Unrolled> finish(const Node& node, Names states, const std::vector<Names>& scanned);

  Body body_of(const Node& node, std::size_t graph) const;
  /// Visits a copy of a graph with `inputs`. Returns the names of its outputs, or nullopt after a
  /// problem.
  std::optional<Names> copy(const Body& body, const Names& inputs, const std::string& label);
  /// Initialisers and Constant nodes of a graph, shared by all its copies.
  const Renaming& constants_of(const Body& body);
  std::vector<Names> take_apart(const Node& node, std::size_t states, std::int64_t length);
  bool put_together(const Node& node, std::size_t output, std::size_t scan, const Names& parts);

  void charge(const Node& node, std::size_t nodes, std::size_t bytes);
  Node part(const Node& node, OpType op_type, const std::string& label, Names inputs,
            Attributes attributes = {});
  std::string constant(const std::string& name, Value value);
  std::optional<std::int64_t> number(const std::string& name) const;

  const Model& model_;
  Values& values_;
  const SecondNames& second_names_;
  Visit visit_;
  std::unordered_map<const InnerGraph*, Renaming> constants_;
  std::unordered_set<std::string> taken_; ///< names of values and nodes in the file and copies
  std::size_t nodes_ = 0;                 ///< copied so far
  std::size_t bytes_ = 0;                 ///< bytes of their names and attributes
};

/// Resolves sequences of tensors while reading. Each is a known list of tensors, and none remains
/// in the graph.
class Sequences {
public:
  bool has(const std::string& name) const { return lists_.count(name) != 0; }
  std::size_t length(const std::string& name) const { return lists_.at(name).tensors.size(); }

  /// Whether the node is an operator on sequences, or a copy of a sequence.
  bool handles(const Node& node) const;

  /// Replacement of such a node.
  struct Resolved {
    std::vector<Node> nodes; ///< in topological order
    std::string result;      ///< name of the output tensor, if no node makes it
  };
  /// Replaces a node whose inputs are tensors of `values` or sequences; adds new constants to
  /// `values`. Throws InputError at the node on errors, also if a position or length depends on
  /// data.
  Resolved resolve(const Model& model, const Node& node, Values& values);

private:
  struct List {
    ElementType type = ElementType::fp32;
    std::vector<std::uint32_t> tensors; ///< indices of `names_`; lists of a loop share names
  };
  struct Context;

  Resolved make(const Context& context);
  Resolved change(const Context& context);
  Resolved look_up(const Context& context);
  Resolved join(const Context& context);
  Resolved split(const Context& context);
  const List& list(const Context& context) const;
  void set(const Context& context, List list);
  std::uint32_t number_of(const std::string& tensor);

  std::unordered_map<std::string, List> lists_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::size_t stored_ = 0; ///< elements of all lists
};

} // namespace monet::onnx_file
