// For passes that write a graph anew, operator by operator.
#pragma once

#include "monet/base/errors.hpp"
#include "monet/workload/graph.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace monet {

/// `name`, or "name.2", "name.3", ... where it is taken; then taken itself.
std::string unique_name(std::unordered_set<std::string>& taken, const std::string& name);

/// Begins with name, inputs, outputs and all tensors of the source, which keep their ids, and with
/// no operator. An added tensor gets a unique name.
class GraphRewriter {
public:
  /// Keeps a reference to the source.
  explicit GraphRewriter(const Graph& source);

  const Graph& source() const { return source_; }
  Graph& graph() { return made_; }
  Graph release() { return std::move(made_); }

  /// The source's operator, changed or not. The one it refers to becomes that one's first copy.
  OpId copy(OpId id, Operator op);
  OpId copy(OpId id) { return copy(id, source_.op(id)); }
  std::optional<OpId> first_copy(OpId id) const { return first_copy_[id.index()]; }

  std::string free_op_name(const std::string& name) { return unique_name(op_names_, name); }
  TensorId add_tensor(Tensor tensor);
  void rename(TensorId id, const std::string& name);
  /// With the loop nest of its rule.
  OpId add_operator(Operator op);

private:
  const Graph& source_;
  Graph made_;
  std::vector<std::optional<OpId>> first_copy_; ///< per operator of the source
  std::unordered_set<std::string> tensor_names_, op_names_;
};

/// Patterns of names, and which of them matched something.
class Patterns {
public:
  explicit Patterns(std::vector<std::string> patterns);
  bool match(std::string_view name);
  /// The first that matches; those after it are not tried.
  std::optional<std::size_t> first_match(std::string_view name);
  /// A problem for each that matched nothing; `words` have {} where the pattern stands.
  void report(const Graph& network, std::string_view words, ProblemList& problems) const;

private:
  std::vector<std::string> patterns_;
  std::vector<bool> matched_;
};

} // namespace monet
