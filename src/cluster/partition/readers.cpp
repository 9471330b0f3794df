// Follows the readers of a result: the parts in which they read an axis, whether they need it
// whole, and the weights of gradients. Used by choose.cpp and cost/exchanges.cpp.
#include "cluster/partition/sums.hpp"
#include "workload/shared/op_types.hpp"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <utility>
#include <vector>

namespace monet::mesh {

namespace {

/// Maximum number of operators through which a result is followed.
constexpr int kReadersFollowed = 6;

/// The begin and the extent of a reader's share of an axis.
using Share = std::pair<std::int64_t, std::int64_t>;

std::int64_t span_of(const LoopNest& nest, const AxisExpr& axis) {
  std::int64_t span = 1;
  for (const AffineTerm& term : axis.terms)
    span += std::abs(term.coefficient) * (nest.dims[term.dim].size - 1);
  return span;
}

/// The axes of an operator's results that are indexed like an axis of an operand.
std::vector<std::pair<TensorId, std::size_t>> followers(const Operator& op, const AxisExpr& axis) {
  std::vector<std::pair<TensorId, std::size_t>> found;
  for (const Access& written : op.nest.operands) {
    if (written.mode == AccessMode::read || axis.terms.size() != 1)
      continue;
    for (std::size_t to = 0; to < written.axes.size(); ++to) {
      if (written.axes[to].terms == axis.terms)
        found.emplace_back(written.tensor, to);
    }
  }
  return found;
}

/// Collects the shares of an axis that its readers read, if smaller than the axis. Readers of the
/// whole axis are followed to their results with the same indices.
void find_shares(const Graph& graph, TensorId result, std::size_t dim, int depth,
                 std::set<Share>& shares) {
  const Tensor& tensor = graph.tensor(result);
  if (depth == 0)
    return;
  for (const OpId reader : tensor.consumers) {
    const Operator& op = graph.op(reader);
    for (const Access& access : op.nest.operands) {
      if (access.mode != AccessMode::read || access.tensor != result || access.opaque ||
          access.axes.size() <= dim || access.axes[dim].data_dependent ||
          access.axes[dim].terms.empty())
        continue;
      if (const std::int64_t span = span_of(op.nest, access.axes[dim]); span < tensor.shape[dim]) {
        shares.emplace(access.axes[dim].offset, span);
        continue;
      }
      for (const auto& [next, to] : followers(op, access.axes[dim]))
        find_shares(graph, next, to, depth - 1, shares);
    }
  }
}

bool is_whole_for(const Graph& graph, TensorId result, std::size_t dim, int depth);

/// Whether a reader needs the whole axis: all its loops along the axis are coupled, or it is a sum
/// whose readers need the whole axis.
bool needs_whole(const Graph& graph, const Operator& op, const Access& access, std::size_t dim,
                 int depth) {
  if (access.opaque)
    return true;
  const AxisExpr& axis = access.axes[dim];
  const bool coupled = std::ranges::all_of(
      axis.terms, [&](const AffineTerm& term) { return op.nest.dims[term.dim].coupled; });
  if (coupled && !axis.terms.empty())
    return true;
  const auto next = followers(op, axis);
  return is_sum_of_operands(op) && next.size() == 1 &&
         is_whole_for(graph, next.front().first, next.front().second, depth - 1);
}

bool is_whole_for(const Graph& graph, TensorId result, std::size_t dim, int depth) {
  bool any = false;
  for (const OpId reader : graph.tensor(result).consumers) {
    const Operator& op = graph.op(reader);
    if (op.phase == Phase::loss || depth == 0)
      return false;
    if (op.phase != Phase::forward)
      continue;
    for (const Access& access : op.nest.operands) {
      if (access.mode != AccessMode::read || access.tensor != result)
        continue;
      any = true;
      if (!needs_whole(graph, op, access, dim, depth))
        return false;
    }
  }
  return any;
}

} // namespace

std::int64_t parts_read(const Graph& graph, TensorId result, std::size_t dim) {
  std::set<Share> shares;
  find_shares(graph, result, dim, kReadersFollowed, shares);
  std::int64_t end = 0;
  for (const auto& [begin, span] : shares) {
    if (begin != end || span != shares.begin()->second)
      return 1;
    end += span;
  }
  const bool all = end == graph.tensor(result).shape[dim];
  return all ? static_cast<std::int64_t>(shares.size()) : 1;
}

bool is_taken_whole(const Graph& graph, TensorId result, std::size_t dim) {
  return is_whole_for(graph, result, dim, kReadersFollowed);
}

std::map<TensorId, TensorId> weights_of_gradients(const TrainingGraph& step) {
  std::map<TensorId, TensorId> weights;
  for (const ParameterRecord& record : step.parameters)
    weights.emplace(record.gradient, record.weight);
  const auto& operators = step.graph.operators();
  for (std::size_t i = operators.size(); i-- > 0;) {
    const Operator& op = operators[i];
    const bool casts = op.op_type == ops::Cast && op.phase == Phase::backward;
    if ((!is_sum_of_operands(op) && !casts) || op.outputs.size() != 1)
      continue;
    const auto sum = weights.find(*op.outputs[0]);
    if (sum == weights.end())
      continue;
    const TensorId weight = sum->second;
    for (const TensorId term : present(op.inputs)) {
      if (casts || step.graph.tensor(term).kind == TensorKind::parameter_gradient)
        weights.emplace(term, weight);
    }
  }
  return weights;
}

} // namespace monet::mesh
