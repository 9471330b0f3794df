// Merges the two gradients of a product into one ProductGrad, after differentiation.
#include "training_graph/build/rebuild.hpp"
#include "training_graph/gradients/differentiate.hpp"
#include "workload/shared/operators.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>

namespace monet {

namespace {

struct Pair {
  std::string_view forward;
  OpId first;
  OpId second;
  std::size_t place = 0; ///< of the operator of both: that of one of the two
};

class Pairing {
public:
  Pairing(const Graph& graph, const std::vector<std::string>& patterns)
      : graph_(graph), patterns_(patterns), wanted_(patterns) {}

  Graph run() {
    find();
    ProblemList problems;
    if (patterns_ != std::vector<std::string>{"*"})
      wanted_.report(graph_, "'{}' matches no product with two gradients (training.gradients)",
                     problems);
    problems.throw_if_any();
    return rewritten();
  }

private:
  const Operator& op(OpId id) const { return graph_.op(id); }

  void find() {
    for (std::size_t i = 0; i < graph_.operators().size(); ++i) {
      const Operator& second = graph_.operators()[i];
      if (second.phase != Phase::backward || second.domain != kMonetDomain || !second.forward_op)
        continue;
      for (const ProductGradients& types : product_gradients()) {
        if (types.second != second.op_type)
          continue;
        const auto first = partner(types, OpId(i));
        const auto place = first ? place_of(*first, OpId(i)) : std::nullopt;
        if (place && wanted_.match(op(*second.forward_op).name))
          pairs_[*place] = {types.forward, *first, OpId(i), *place};
      }
    }
  }

  /// The gradient of the other operand, from the same dY.
  std::optional<OpId> partner(const ProductGradients& types, OpId second) const {
    const Operator& b = op(second);
    if (b.inputs.size() != 2 || b.nest.compute != ComputeKind::mac)
      return std::nullopt;
    for (const OpId other : graph_.tensor(*b.inputs[1]).consumers) {
      const Operator& a = op(other);
      const bool fits = a.op_type == types.first && a.domain == kMonetDomain &&
                        a.forward_op == b.forward_op && a.inputs.size() == 2 &&
                        a.inputs[0] == b.inputs[1] && a.attributes == b.attributes &&
                        a.nest.compute == ComputeKind::mac;
      if (fits && other != second)
        return other;
    }
    return std::nullopt;
  }

  /// Position of the merged operator: the later one's if no operator in between reads the earlier
  /// result, or the earlier one's if all inputs of the later one are available there.
  std::optional<std::size_t> place_of(OpId first, OpId second) const {
    const OpId early = std::min(first, second);
    const OpId late = std::max(first, second);
    const auto made_later = [&](const auto& input) {
      const auto& producer = graph_.tensor(*input).producer;
      return producer && *producer > early;
    };
    if (std::ranges::none_of(op(late).inputs, made_later))
      return early.index();
    const auto& consumers = graph_.tensor(*op(early).outputs[0]).consumers;
    if (std::ranges::all_of(consumers, [&](OpId id) { return id > late; }))
      return late.index();
    return std::nullopt;
  }

  Operator joined(const Pair& pair) const {
    const Operator& a = op(pair.first);
    const Operator& b = op(pair.second);
    Operator made = b;
    made.op_type = kProductGrad;
    made.attributes.set("forward", std::string(pair.forward));
    made.name = fmt::format("{}.{}", op(*b.forward_op).name, kProductGrad);
    made.inputs = {b.inputs[0], a.inputs[1], b.inputs[1]};
    made.outputs = {a.outputs[0], b.outputs[0]};
    if (a.gradient_of != b.gradient_of)
      made.gradient_of = GradientOf::both;
    return made;
  }

  Graph rewritten() const {
    std::vector<bool> gone(graph_.operators().size(), false);
    for (const auto& [place, pair] : pairs_)
      gone[pair.first.index()] = gone[pair.second.index()] = true;
    GraphRewriter rewriter(graph_);
    for (std::size_t i = 0; i < graph_.operators().size(); ++i) {
      const auto pair = pairs_.find(i);
      if (pair != pairs_.end()) {
        Operator made = joined(pair->second);
        made.name = rewriter.free_op_name(made.name);
        build_nest(rewriter.graph(), rewriter.copy(OpId(i), std::move(made)));
      } else if (!gone[i]) {
        rewriter.copy(OpId(i));
      }
    }
    return rewriter.release();
  }

  const Graph& graph_;
  const std::vector<std::string>& patterns_;
  Patterns wanted_;
  std::map<std::size_t, Pair> pairs_; ///< by place
};

} // namespace

Graph with_paired_gradients(const Graph& graph, const std::vector<std::string>& patterns) {
  return Pairing(graph, patterns).run();
}

std::vector<std::string> paired_products(const Graph& graph) {
  std::set<std::string> names;
  for (const Operator& op : graph.operators()) {
    if (op.op_type == kProductGrad && op.domain == kMonetDomain && op.forward_op)
      names.insert(graph.op(*op.forward_op).name);
  }
  return {names.begin(), names.end()};
}

} // namespace monet
