// Builds and checks cascades of Einsums from YAML layers, matrix products or graphs. The mapper
// (mapper.cpp) searches mappings of them.
#include "base/shared/checked.hpp"

#include "monet/base/errors.hpp"
#include "monet/core_cost/layers.hpp"
#include "monet/reference/einsum_mapper.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace monet {

namespace {

constexpr std::size_t kMaxRanks = 32;
constexpr std::size_t kMaxOperands = 24;

void verify_operand(const EinsumCascade& cascade, const Einsum& einsum,
                    const EinsumOperand& operand) {
  internal_check(operand.tensor < cascade.tensors.size(), "Einsum operand without a tensor");
  const EinsumTensor& tensor = cascade.tensors[operand.tensor];
  internal_check(operand.axes.size() == tensor.shape.size(), "Einsum operand and tensor differ");
  for (const AxisExpr& axis : operand.axes) {
    for (const AffineTerm& term : axis.terms)
      internal_check(term.dim < einsum.bounds.size(), "Einsum operand without a rank");
  }
  // DRAM traffic is at most the whole tensor per iteration, in both directions.
  std::int64_t bits =
      checked_multiply(tensor.bits, 2 * static_cast<std::int64_t>(cascade.einsums.size()));
  for (const std::int64_t bound : einsum.bounds)
    bits = checked_multiply(bits, bound);
  for (std::size_t a = 0; a < operand.axes.size(); ++a) {
    if (operand.axes[a].terms.size() != 1 || operand.axes[a].data_dependent)
      bits = checked_multiply(bits, tensor.shape[a]);
  }
}

/// Bits of an element including its share of a block's scale, rounded up.
std::int64_t element_bits(const Tensor& tensor) {
  const std::int64_t count = element_count(tensor);
  return count == 0 ? 0 : (size_of(tensor).value + count - 1) / count;
}

Einsum einsum_of(const Graph& graph, const Operator& op) {
  Einsum einsum;
  einsum.name = op.name;
  for (const LoopDim& dim : op.nest.dims) {
    einsum.bounds.push_back(dim.size);
    einsum.whole.push_back(dim.coupled);
  }
  if (op.nest.products.size() > 1) { // several products become an extra rank
    einsum.bounds.push_back(products(op.nest));
    einsum.whole.push_back(true);
  }
  for (const Access& access : op.nest.operands) {
    EinsumOperand operand;
    operand.tensor = static_cast<std::uint32_t>(access.tensor.index());
    operand.written = access.mode != AccessMode::read;
    operand.axes = access.axes;
    if (access.opaque) // unknown positions: every axis is needed completely
      operand.axes.assign(graph.tensor(access.tensor).shape.size(), AxisExpr{{}, 0, true});
    const bool known = std::ranges::any_of(einsum.operands, [&](auto& o) {
      return o.tensor == operand.tensor && o.axes == operand.axes;
    });
    if (!known) // an operand used twice, as in a square, is read once
      einsum.operands.push_back(std::move(operand));
  }
  return einsum;
}

/// Builds the cascade of a YAML workload, layer by layer.
class LayerCascade {
public:
  explicit LayerCascade(std::optional<std::int64_t> bits) : bits_(bits) {}

  void add(const Layer& layer) {
    Einsum einsum;
    einsum.name = layer.name;
    for (const LoopDim& dim : layer.problem.dims)
      einsum.bounds.push_back(dim.size);
    for (std::size_t o = 0; o < layer.problem.operands.size(); ++o) {
      const ProblemOperand& from = layer.problem.operands[o];
      EinsumOperand operand;
      operand.written = from.mode != AccessMode::read;
      operand.axes = from.axes;
      operand.tensor = operand.written ? made_by(layer, from) : read_by(layer, o, from);
      einsum.operands.push_back(std::move(operand));
    }
    cascade_.einsums.push_back(std::move(einsum));
  }
  EinsumCascade finish() && {
    problems_.throw_if_any();
    for (const auto& [id, tensor] : results_)
      cascade_.tensors[tensor].external = read_.count(tensor) == 0;
    verify(cascade_);
    return std::move(cascade_);
  }

private:
  std::uint32_t add_tensor(const Layer& layer, const ProblemOperand& from, std::string_view role) {
    cascade_.tensors.push_back(
        {fmt::format("{}.{}", layer.name, role), from.extents, bits_.value_or(from.bits), true});
    return static_cast<std::uint32_t>(cascade_.tensors.size() - 1);
  }
  std::uint32_t made_by(const Layer& layer, const ProblemOperand& from) {
    return results_[layer.id] = add_tensor(layer, from, "O");
  }
  std::uint32_t read_by(const Layer& layer, std::size_t o, const ProblemOperand& from) {
    const std::string& role = layer.roles[o];
    if (o >= layer.sources.size() || !layer.sources[o])
      return add_tensor(layer, from, role);
    const std::uint32_t tensor = results_.at(*layer.sources[o]);
    if (cascade_.tensors[tensor].shape != from.extents) {
      problems_.add(layer.where, fmt::format("operand '{}' is [{}], but layer {} produces [{}]",
                                             role, fmt::join(from.extents, ", "), *layer.sources[o],
                                             fmt::join(cascade_.tensors[tensor].shape, ", ")));
    }
    read_.insert(tensor);
    return tensor;
  }

  std::optional<std::int64_t> bits_;
  EinsumCascade cascade_;
  std::map<std::int64_t, std::uint32_t> results_; ///< by layer
  std::set<std::uint32_t> read_;
  ProblemList problems_;
};

} // namespace

EinsumCascade make_cascade(const std::vector<Layer>& layers, std::optional<std::int64_t> bits) {
  std::vector<const Layer*> listed;
  for (const Layer& layer : layers)
    listed.push_back(&layer);
  std::ranges::stable_sort(listed, [](const Layer* a, const Layer* b) {
    return std::pair(a->where.line, a->where.column) < std::pair(b->where.line, b->where.column);
  });
  LayerCascade cascade(bits);
  for (const Layer* layer : listed)
    cascade.add(*layer);
  return std::move(cascade).finish();
}

EinsumCascade matmul_chain(const std::vector<std::int64_t>& sizes, std::int64_t bits) {
  EinsumCascade cascade;
  const auto axis = [](std::uint32_t rank) { return AxisExpr{{{rank, 1}}, 0, false}; };
  for (std::size_t i = 1; i < sizes.size(); ++i) {
    const bool outside = i == 1 || i + 1 == sizes.size();
    cascade.tensors.push_back({fmt::format("T{}", i - 1), {sizes[0], sizes[i]}, bits, outside});
  }
  for (std::uint32_t i = 0; i + 2 < sizes.size(); ++i) {
    const auto weight = static_cast<std::uint32_t>(cascade.tensors.size());
    cascade.tensors.push_back(
        {fmt::format("W{}", i + 1), {sizes[i + 1], sizes[i + 2]}, bits, true});
    cascade.einsums.push_back({fmt::format("matmul{}", i + 1),
                               {sizes[0], sizes[i + 1], sizes[i + 2]},
                               {},
                               {{i + 1, true, {axis(0), axis(2)}},
                                {i, false, {axis(0), axis(1)}},
                                {weight, false, {axis(1), axis(2)}}}});
  }
  verify(cascade);
  return cascade;
}

EinsumCascade make_cascade(const Graph& graph, std::optional<std::int64_t> bits) {
  EinsumCascade cascade;
  std::set<std::size_t> wanted;
  for (const TensorId id : graph.outputs)
    wanted.insert(id.index());
  for (std::size_t t = 0; t < graph.tensors().size(); ++t) {
    const Tensor& tensor = graph.tensors()[t];
    const bool external =
        !tensor.producer || tensor.consumers.empty() || tensor.alias_of || wanted.count(t) != 0;
    cascade.tensors.push_back(
        {tensor.name, tensor.shape, bits.value_or(element_bits(tensor)), external});
  }
  ProblemList problems;
  for (const Operator& op : graph.operators()) {
    Einsum einsum = einsum_of(graph, op);
    if (einsum.operands.empty()) // a folded view
      continue;
    if (einsum.operands.size() > kMaxOperands || einsum.bounds.size() > kMaxRanks) {
      problems.add({graph.origin, 0, 0, fmt::format("node '{}' ({})", op.name, op.op_type)},
                   fmt::format("{} operands and {} loops; a mapping of Einsums allows {} and {}",
                               einsum.operands.size(), einsum.bounds.size(), kMaxOperands,
                               kMaxRanks));
    }
    cascade.einsums.push_back(std::move(einsum));
  }
  problems.throw_if_any();
  // Tensors that no Einsum writes, or that no Einsum reads, are external, too.
  std::vector<int> used(cascade.tensors.size(), 0);
  for (const Einsum& einsum : cascade.einsums) {
    for (const EinsumOperand& operand : einsum.operands)
      used[operand.tensor] |= operand.written ? 1 : 2;
  }
  for (std::size_t t = 0; t < used.size(); ++t)
    cascade.tensors[t].external = cascade.tensors[t].external || used[t] == 1 || used[t] == 2;
  verify(cascade);
  return cascade;
}

void verify(const EinsumCascade& cascade) {
  std::vector<bool> made(cascade.tensors.size(), false);
  std::vector<bool> read(cascade.tensors.size(), false);
  for (const Einsum& einsum : cascade.einsums) {
    internal_check(einsum.bounds.size() <= kMaxRanks && einsum.operands.size() <= kMaxOperands &&
                       !einsum.operands.empty(),
                   "an Einsum with too many ranks or operands");
    internal_check(einsum.whole.empty() || einsum.whole.size() == einsum.bounds.size(),
                   "an Einsum whose ranks are not all described");
    for (const EinsumOperand& operand : einsum.operands) {
      verify_operand(cascade, einsum, operand);
      if (operand.written) {
        internal_check(!made[operand.tensor] && !read[operand.tensor],
                       "a tensor of the cascade is made twice, or after it is read");
        made[operand.tensor] = true;
      } else {
        read[operand.tensor] = true;
      }
    }
  }
  for (std::size_t t = 0; t < cascade.tensors.size(); ++t)
    internal_check(cascade.tensors[t].external || (made[t] && read[t]) || (!made[t] && !read[t]),
                   "a tensor that only the cascade knows is not made or not used in it");
}

} // namespace monet
