// Detaches tensors, so that no gradient passes them, before the forward part is built.
#include "base/shared/text.hpp"
#include "training_graph/build/rebuild.hpp"
#include "training_graph/forward/forward.hpp"
#include "workload/shared/op_types.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>

namespace monet {

namespace {

/// Writes an Identity for every result of which some readers see a detached form.
class DetachWriter {
public:
  DetachWriter(const Graph& network, const std::vector<Detach>& what)
      : network_(network), what_(what), matched_(what.size(), false), made_(network) {
    for (std::size_t i = 0; i < what.size(); ++i) {
      const std::vector<bool> whole = detached_tensors(network, {what[i]});
      matched_[i] = std::ranges::find(whole, true) != whole.end();
    }
  }

  DetachedNetwork run() {
    for (std::size_t i = 0; i < network_.operators().size(); ++i) {
      Operator op = network_.op(OpId(i));
      for (const auto& [from, to] : detached_inputs(op))
        replace(op, from, to);
      made_.copy(OpId(i), std::move(op));
    }
    report();
    DetachedNetwork result{made_.release(), detached_tensors(network_, what_)};
    result.tensors.resize(result.graph.tensors().size(), true); // those that were added
    return result;
  }

private:
  /// The operator's inputs that it sees detached, and as what.
  std::map<TensorId, TensorId> detached_inputs(const Operator& op) {
    std::map<TensorId, TensorId> found;
    for (const TensorId id : present(op.inputs)) {
      if (!network_.tensor(id).producer)
        continue;
      for (std::size_t i = 0; i < what_.size(); ++i) {
        if (!glob_match(what_[i].tensor, network_.tensor(id).name))
          continue;
        if (what_[i].before.empty() || !glob_match(what_[i].before, op.name))
          continue;
        matched_[i] = true;
        found.emplace(id, detached(id));
      }
    }
    return found;
  }

  TensorId detached(TensorId id) {
    const auto known = detached_.find(id);
    if (known != detached_.end())
      return known->second;
    Tensor tensor = network_.tensor(id);
    const std::string name = tensor.name;
    const TensorId made =
        made_.add_tensor({.name = name + ".detached", .shape = tensor.shape, .type = tensor.type});
    made_.add_operator({.name = made_.free_op_name(name + ".detach"),
                        .op_type = ops::Identity,
                        .inputs = {id},
                        .outputs = {made}});
    return detached_.emplace(id, made).first->second;
  }

  static void replace(Operator& op, TensorId from, TensorId to) {
    for (auto& input : op.inputs) {
      if (input == from)
        input = to;
    }
    for (Access& access : op.nest.operands) {
      if (access.tensor == from)
        access.tensor = to;
    }
  }

  void report() const {
    ProblemList problems;
    for (std::size_t i = 0; i < what_.size(); ++i) {
      if (matched_[i])
        continue;
      const std::string readers =
          what_[i].before.empty() ? "" : fmt::format(" that is read by '{}'", what_[i].before);
      problems.add({network_.origin, 0, 0, ""},
                   fmt::format("no result of an operator matches the pattern '{}' of 'detach'{}",
                               what_[i].tensor, readers));
    }
    problems.throw_if_any();
  }

  const Graph& network_;
  const std::vector<Detach>& what_;
  std::vector<bool> matched_;
  GraphRewriter made_;
  std::map<TensorId, TensorId> detached_;
};

} // namespace

std::vector<bool> detached_tensors(const Graph& network, const std::vector<Detach>& what) {
  std::vector<bool> detached(network.tensors().size(), false);
  for (const Detach& rule : what) {
    for (std::size_t i = 0; i < detached.size(); ++i) {
      const Tensor& tensor = network.tensors()[i];
      if (rule.before.empty() && tensor.producer && glob_match(rule.tensor, tensor.name))
        detached[i] = true;
    }
  }
  return detached;
}

DetachedNetwork detach(const Graph& network, const std::vector<Detach>& what) {
  if (what.empty())
    return {network, std::vector<bool>(network.tensors().size(), false)};
  return DetachWriter(network, what).run();
}

} // namespace monet
