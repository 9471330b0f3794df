// Computes tensor uses, shapes and row tables of a cascade, and reconstructs mappings from joined
// rows. The mapper (mapper.cpp) and the searches by runs call this.
#include "reference/einsum/table.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

namespace monet::einsum {

namespace {

bool used_twice(const Einsum& einsum, std::uint32_t tensor) {
  return std::ranges::count(einsum.operands, tensor, &EinsumOperand::tensor) > 1;
}

/// The mapping of one row.
EinsumMapping describe(const Shape& shape, const Rows& rows, const RowGroup& group,
                       std::size_t row) {
  const RowSource& source = rows.sources[group.sources[row]];
  const std::size_t ranks = shape.bounds.size();
  EinsumMapping mapping;
  std::size_t path = 0;
  std::vector<std::int64_t> above = shape.bounds;
  for (std::size_t p = 0; p < source.order.size(); ++p) {
    const std::int64_t* tiles = source.tiles.data() + p * ranks;
    EinsumMapping::Node node;
    node.operand = source.order[p];
    node.in_buffer = group.levels[node.operand] != kInDram;
    node.dram_bits = source.traffic[p];
    node.tile_bits = tile_bits(shape.operands[node.operand], tiles);
    std::size_t loops = 0;
    for (std::uint32_t r = 0; r < ranks; ++r)
      loops += tiles[r] != above[r] ? 1U : 0U;
    if (path < group.path.size()) { // shared loops: in path order
      for (; loops > 0; --loops, ++path)
        node.loops.push_back(
            {group.path[path].rank, group.path[path].tile, group.path[path].trips});
    } else {
      for (std::uint32_t r = 0; r < ranks; ++r) {
        if (tiles[r] != above[r])
          node.loops.push_back({r, tiles[r], above[r] / tiles[r]});
      }
    }
    above.assign(tiles, tiles + ranks);
    mapping.nodes.push_back(std::move(node));
  }
  return mapping;
}

} // namespace

TensorUses follow(const EinsumCascade& cascade, bool resident) {
  const std::size_t tensors = cascade.tensors.size();
  TensorUses f{std::vector<std::vector<std::uint32_t>>(tensors), std::vector<bool>(tensors),
               std::vector<bool>(tensors), std::vector<bool>(tensors, true)};
  for (std::uint32_t e = 0; e < cascade.einsums.size(); ++e) {
    for (const EinsumOperand& operand : cascade.einsums[e].operands) {
      if (f.uses[operand.tensor].empty() || f.uses[operand.tensor].back() != e)
        f.uses[operand.tensor].push_back(e);
      f.made[operand.tensor] = f.made[operand.tensor] || operand.written;
      if (used_twice(cascade.einsums[e], operand.tensor))
        f.may_stay[operand.tensor] = false;
    }
  }
  for (std::size_t t = 0; t < tensors; ++t) {
    if (f.uses[t].size() < 2 || (cascade.tensors[t].external && !resident))
      f.may_stay[t] = false;
    f.followed[t] = f.uses[t].size() > 1 && (f.made[t] || f.may_stay[t]);
  }
  return f;
}

std::int64_t bits_of(const EinsumTensor& tensor) {
  return std::accumulate(tensor.shape.begin(), tensor.shape.end(), tensor.bits,
                         std::multiplies<>());
}

TensorUses relax(TensorUses f, std::uint32_t span) {
  for (std::size_t t = 0; t < f.uses.size(); ++t) {
    if (f.followed[t] && f.uses[t].back() - f.uses[t].front() > span) {
      f.followed[t] = false;
      f.relaxed = true;
    }
  }
  return f;
}

Shape shape_of(const EinsumCascade& cascade, const TensorUses& follow, std::uint32_t e) {
  const Einsum& einsum = cascade.einsums[e];
  Shape shape{einsum.bounds, einsum.whole, {}};
  for (const EinsumOperand& operand : einsum.operands) {
    const std::uint32_t t = operand.tensor;
    const EinsumTensor& tensor = cascade.tensors[t];
    Shape::Operand o{operand.axes,    tensor.shape,       tensor.bits,
                     operand.written, follow.may_stay[t], 0};
    if (tensor.external && follow.may_stay[t] && follow.uses[t].front() == e)
      o.share_bits = bits_of(tensor);
    shape.operands.push_back(std::move(o));
  }
  return shape;
}

Uses uses_of(const EinsumCascade& cascade, const TensorUses& follow, std::uint32_t e) {
  Uses uses;
  for (std::uint32_t o = 0; o < cascade.einsums[e].operands.size(); ++o) {
    const std::uint32_t t = cascade.einsums[e].operands[o].tensor;
    if (!follow.followed[t] ||
        std::ranges::any_of(uses.uses, [&](const Uses::Use& use) { return use.tensor == t; }))
      continue;
    uses.uses.push_back({o, t, follow.uses[t].front() < e, follow.uses[t].back() > e,
                         static_cast<bool>(follow.made[t])});
  }
  std::ranges::sort(uses.uses, {}, &Uses::Use::tensor);
  return uses;
}

RowTable make_table(const EinsumCascade& cascade, const TensorUses& follow,
                    const EinsumOptions& options, const SearchControl& control, Tiles tiles) {
  RowTable table;
  for (std::uint32_t e = 0; e < cascade.einsums.size(); ++e) {
    Shape shape = shape_of(cascade, follow, e);
    const auto known = std::ranges::find(table.shapes, shape);
    table.of.push_back(static_cast<std::uint32_t>(known - table.shapes.begin()));
    if (known != table.shapes.end())
      continue;
    table.rows.push_back(make_rows(shape, options, control, tiles));
    table.shapes.push_back(std::move(shape));
    if (table.rows.back().groups.empty() && table.rows.back().complete)
      throw InfeasibleError(fmt::format("Einsum '{}' has no mapping within a buffer of {} bits",
                                        cascade.einsums[e].name, options.buffer_bits.value_or(0)));
    control.tell(
        {"einsums: mappings of one", e + 1, static_cast<std::int64_t>(cascade.einsums.size())});
  }
  return table;
}

std::vector<EinsumMapping> trace(const JoinGraph& graph, const Joined& joined, std::uint32_t row) {
  std::vector<EinsumMapping> mappings(graph.steps.size());
  std::uint32_t node = 0;
  for (std::size_t e = graph.steps.size(); e-- > 0;) {
    const JoinGraph::Step& step = graph.steps[e];
    const NodeRows::Backpointer& back = joined.steps[e][node].backs[row];
    const Edge& edge = step.layer.edges[back.edge];
    mappings[e] = describe(*step.shape, *step.rows, step.rows->groups[edge.group], back.group_row);
    mappings[e].shared_loops = graph.nodes(e)[edge.from].trips.size();
    node = edge.from;
    row = back.row;
  }
  return mappings;
}

std::vector<EinsumPoint> points_of(const JoinGraph& graph, const Joined& joined) {
  std::vector<EinsumPoint> points;
  if (joined.steps.size() < graph.steps.size() || joined.steps.back().empty())
    return points;
  const NodeRows& last = joined.steps.back().front();
  for (std::uint32_t i = 0; i < last.size(); ++i)
    points.push_back({last.row(i)[1], last.row(i)[0], trace(graph, joined, i)});
  return points;
}

} // namespace monet::einsum
