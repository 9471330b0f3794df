// The products of a network as pairs of gradients, see monet/core_cost/backward.hpp.

#include "base/shared/checked.hpp"

#include "monet/core_cost/backward.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace monet {

namespace {

/// Origins of a tensor: whether trained weights or network inputs contribute to it.
struct Origin {
  bool weights = false;
  bool inputs = false;
};

std::vector<Origin> origins_of(const Graph& graph) {
  std::vector<Origin> origins(graph.tensors().size());
  for (std::size_t i = 0; i < origins.size(); ++i) {
    const TensorKind kind = graph.tensors()[i].kind;
    origins[i].weights = kind == TensorKind::parameter;
    origins[i].inputs = kind == TensorKind::input;
  }
  for (const Operator& op : graph.operators()) {
    Origin made;
    for (const TensorId input : present(op.inputs)) {
      made.weights = made.weights || origins[input.index()].weights;
      made.inputs = made.inputs || origins[input.index()].inputs;
    }
    for (const TensorId output : present(op.outputs)) {
      origins[output.index()] = made;
      origins[output.index()].weights =
          made.weights && is_floating(graph.tensor(output).type); // integers have no gradient
    }
  }
  return origins;
}

std::vector<bool> loops_of(const Access& access, std::size_t count) {
  std::vector<bool> used(count, false);
  for (const AxisExpr& axis : access.axes) {
    for (const AffineTerm& term : axis.terms)
      used[term.dim] = true;
  }
  return used;
}

/// Product: its result and its two factors.
struct Factors {
  const Access* result = nullptr;
  const Access* left = nullptr;
  const Access* right = nullptr;
};

std::optional<Factors> factors_of(const LoopNest& nest) {
  Factors factors;
  for (const Access& access : nest.operands) {
    const Access** place = nullptr;
    if (access.mode != AccessMode::read)
      place = &factors.result;
    else if (access.role == "I")
      place = &factors.left;
    else if (access.role == "W")
      place = &factors.right;
    else if (access.role != "bias")
      return std::nullopt;
    if (place == nullptr)
      continue;
    const auto unknown = [](const AxisExpr& axis) { return axis.data_dependent; };
    if (*place != nullptr || access.opaque || std::ranges::any_of(access.axes, unknown))
      return std::nullopt;
    *place = &access;
  }
  if (factors.result == nullptr || factors.left == nullptr || factors.right == nullptr)
    return std::nullopt;
  return factors;
}

/// Elements of the tensor that one of `repeats` reads, if several loops move along one of its axes
/// (a filter over an image); 0 if each element is one matrix element.
std::int64_t expanded_from(const Graph& graph, const Access& access, const GemmPair& pair) {
  const auto slides = [](const AxisExpr& axis) { return axis.terms.size() > 1; };
  if (std::ranges::none_of(access.axes, slides))
    return 0;
  const std::int64_t elements = element_count(graph.tensor(access.tensor)) / pair.repeats;
  return std::min(pair.m * pair.k, std::max<std::int64_t>(1, elements));
}

/// Sets rows, columns and repeats; returns false if a loop occurs in a single operand only.
bool set_sizes(const LoopNest& nest, const Factors& factors, GemmPair& pair) {
  const std::size_t count = nest.dims.size();
  const std::vector<bool> result = loops_of(*factors.result, count);
  const std::vector<bool> left = loops_of(*factors.left, count);
  const std::vector<bool> right = loops_of(*factors.right, count);
  for (std::size_t d = 0; d < count; ++d) {
    std::int64_t* size = nullptr;
    if (left[d] && right[d] && result[d])
      size = &pair.repeats;
    else if (left[d] && result[d])
      size = &pair.m;
    else if (left[d] && right[d])
      size = &pair.k;
    else if (right[d] && result[d])
      size = &pair.n;
    if (size == nullptr && nest.dims[d].size != 1)
      return false;
    if (size != nullptr)
      *size = checked_multiply(*size, nest.dims[d].size);
  }
  return true;
}

bool pair_is_within_limits(const GemmPair& pair) {
  return gemm_is_within_limits(pair.m, pair.k, pair.n, pair.repeats);
}

/// Makes the pair of an operator; returns the reason if that fails.
std::string make_pair(const Graph& graph, const Operator& op, const std::vector<Origin>& origins,
                      GemmPair& pair) {
  std::optional<Factors> factors = factors_of(op.nest);
  if (!factors)
    return "is not a product of two factors";
  const auto origin = [&](const Access* access) { return origins[access->tensor.index()]; };
  const auto is_weight = [&](const Access* access) {
    return origin(access).weights && !origin(access).inputs;
  };
  if (is_weight(factors->left) && !is_weight(factors->right))
    std::swap(factors->left, factors->right);
  if (!origin(factors->right).weights)
    return origin(factors->left).weights ? "has dX alone" : "has no gradient";
  if (!set_sizes(op.nest, *factors, pair))
    return "has a loop of one operand alone";
  pair.has_dx = origin(factors->left).weights;
  if (pair_is_within_limits(pair))
    pair.raw_elements = expanded_from(graph, *factors->left, pair);
  return {};
}

} // namespace

GemmNetwork gemm_pairs(const Graph& graph) {
  const std::vector<Origin> origins = origins_of(graph);
  GemmNetwork network;
  network.name = graph.name;
  ProblemList problems;
  for (const Operator& op : graph.operators()) {
    if (op.nest.compute != ComputeKind::mac)
      continue;
    GemmPair pair;
    pair.name = op.name;
    if (const std::string why = make_pair(graph, op, origins, pair); !why.empty()) {
      network.skipped.push_back({op.name, op.op_type.str(), why});
    } else if (!pair_is_within_limits(pair)) {
      problems.add({graph.origin, 0, 0, fmt::format("node '{}' ({})", op.name, op.op_type)},
                   fmt::format("{} products of {} x {} by {} x {}: dimensions may be 2^40, "
                               "multiplications 2^45",
                               pair.repeats, pair.m, pair.k, pair.k, pair.n));
    } else {
      network.pairs.push_back(std::move(pair));
    }
  }
  problems.throw_if_any();
  return network;
}

} // namespace monet
