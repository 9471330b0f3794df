// Sequences of tensors, resolved while reading: each is a list of tensors that is known then, and
// nothing of it is left in the graph.
#pragma once

#include "workload/onnx/model.hpp"

#include <unordered_map>

namespace monet::onnx_file {

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
