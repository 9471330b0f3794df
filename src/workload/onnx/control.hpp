// If, Loop and Scan, resolved while reading: the branch that a known condition takes, the turns of
// a body one after the other. Weights that turns share are one parameter with several readers.
#pragma once

#include "workload/onnx/model.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace monet::onnx_file {

/// Values that are others under another name.
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

/// What became of a node with graphs within.
struct Unrolled {
  /// Which value each output of the node is; empty where a visited node makes the output itself.
  std::vector<std::string> results;
  std::string depends; ///< what depends on data, so that the node cannot be unrolled; or empty
};

/// Copies the graphs within nodes into the network.
class ControlFlow {
public:
  /// Gives a node to the pass over the nodes. False when something is unknown of its outputs, which
  /// has then been reported.
  using Visit = std::function<bool(Node&)>;

  ControlFlow(const Model& model, Values& values, const SecondNames& second_names, Visit visit)
      : model_(model), values_(values), second_names_(second_names), visit_(std::move(visit)) {}

  /// An If, Loop or Scan whose graphs were read.
  static bool handles(const Node& node) { return node.inner != nullptr; }
  /// Visits the copies; nothing where there is a problem with one, which has been reported. All
  /// inputs of the node are known. Throws InputError located at the node where its graphs do not
  /// fit it, or there would be too many copies.
  std::optional<Unrolled> run(const Node& node);
  /// The name itself, or one like it that nothing has.
  std::string unused(std::string name);

private:
  using Names = std::vector<std::string>;
  using Renaming = std::unordered_map<std::string, std::string>;
  struct Body;

  std::optional<Unrolled> run_if(const Node& node);
  std::optional<Unrolled> run_loop(const Node& node);
  std::optional<Unrolled> run_scan(const Node& node);
  /// Scans' results; with a first output for every state.
  std::optional<Unrolled> finish(const Node& node, Names states, const std::vector<Names>& scanned);

  Body body_of(const Node& node, std::size_t graph) const;
  /// Visits a copy of a graph that is fed `inputs`. What its outputs are called, or nothing after a
  /// problem.
  std::optional<Names> copy(const Body& body, const Names& inputs, const std::string& label);
  /// Initializers and Constant nodes of a graph: one for all its copies.
  const Renaming& constants_of(const Body& body);
  std::vector<Names> take_apart(const Node& node, std::size_t states, std::int64_t length);
  bool put_together(const Node& node, std::size_t output, std::size_t scan, const Names& parts);

  void charge(const Node& node, std::size_t nodes, std::size_t bytes);
  Node part(const Node& node, std::string_view op_type, const std::string& label, Names inputs,
            Attributes attributes = {});
  std::string constant(const std::string& name, Value value);
  std::optional<std::int64_t> number(const std::string& name) const;

  const Model& model_;
  Values& values_;
  const SecondNames& second_names_;
  Visit visit_;
  std::unordered_map<const InnerGraph*, Renaming> constants_;
  std::unordered_set<std::string> taken_; ///< names of the file's values and nodes, and of copies
  std::size_t nodes_ = 0;                 ///< copied so far
  std::size_t bytes_ = 0;                 ///< of their names and attributes
};

/// Sequences of tensors, resolved while reading: each is a list of tensors that is known then, and
/// nothing of it is left in the graph.
class Sequences {
public:
  bool has(const std::string& name) const { return lists_.count(name) != 0; }
  std::size_t length(const std::string& name) const { return lists_.at(name).tensors.size(); }

  /// An operator on sequences, or a copy of one.
  bool handles(const Node& node) const;

  /// What stands for such a node.
  struct Resolved {
    std::vector<Node> nodes; ///< in topological order
    std::string result;      ///< the tensor that its output is, if no node makes that
  };
  /// All inputs of the node are tensors of `values`, or sequences. Constants made on the way are
  /// added to `values`. Throws InputError located at the node, also where a position or a length
  /// depends on data.
  Resolved resolve(const Model& model, const Node& node, Values& values);

private:
  struct List {
    ElementType type = ElementType::fp32;
    std::vector<std::uint32_t>
        tensors; ///< places in `names_`: a loop makes many lists of few names
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
