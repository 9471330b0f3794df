#include "monet/optimise/einsum_mapper.hpp"

#include "einsum_join.hpp"
#include "einsum_rows.hpp"

#include "monet/base/errors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace monet {

namespace {

using namespace einsum;

/// Where a tensor is used, and whether the mapper may choose where it is between its uses.
struct Following {
  std::vector<std::vector<std::uint32_t>> uses; ///< Einsums per tensor, rising
  std::vector<bool> made;
  std::vector<bool> followed; ///< from Einsum to Einsum
  std::vector<bool> may_stay; ///< in the buffer
};

bool used_twice(const Einsum& einsum, std::uint32_t tensor) {
  int count = 0;
  for (const EinsumOperand& operand : einsum.operands)
    count += operand.tensor == tensor ? 1 : 0;
  return count > 1;
}

Following follow(const EinsumCascade& cascade, bool resident) {
  const std::size_t tensors = cascade.tensors.size();
  Following f{std::vector<std::vector<std::uint32_t>>(tensors), std::vector<bool>(tensors),
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

Shape shape_of(const EinsumCascade& cascade, const Following& follow, std::uint32_t e) {
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

Uses uses_of(const EinsumCascade& cascade, const Following& follow, std::uint32_t e) {
  Uses uses;
  for (std::uint32_t o = 0; o < cascade.einsums[e].operands.size(); ++o) {
    const std::uint32_t t = cascade.einsums[e].operands[o].tensor;
    if (!follow.followed[t] || std::any_of(uses.uses.begin(), uses.uses.end(),
                                           [&](const Uses::Use& use) { return use.tensor == t; }))
      continue;
    uses.uses.push_back({o, t, follow.uses[t].front() < e, follow.uses[t].back() > e,
                         static_cast<bool>(follow.made[t])});
  }
  std::sort(uses.uses.begin(), uses.uses.end(),
            [](const Uses::Use& a, const Uses::Use& b) { return a.tensor < b.tensor; });
  return uses;
}

/// Rows by shape: each shape is solved once.
struct RowTable {
  std::vector<Shape> shapes;
  std::vector<Rows> rows;
  std::vector<std::uint32_t> of; ///< per Einsum
};

RowTable make_table(const EinsumCascade& cascade, const Following& follow,
                    const EinsumOptions& options, const SearchControl& control) {
  RowTable table;
  for (std::uint32_t e = 0; e < cascade.einsums.size(); ++e) {
    Shape shape = shape_of(cascade, follow, e);
    const auto known = std::find(table.shapes.begin(), table.shapes.end(), shape);
    table.of.push_back(static_cast<std::uint32_t>(known - table.shapes.begin()));
    if (known != table.shapes.end())
      continue;
    table.rows.push_back(make_rows(shape, options, control));
    table.shapes.push_back(std::move(shape));
    if (table.rows.back().groups.empty() && table.rows.back().complete)
      throw InfeasibleError(fmt::format("Einsum '{}' has no mapping within a buffer of {} bits",
                                        cascade.einsums[e].name, options.buffer_bits.value_or(0)));
    control.tell(
        {"einsums: mappings of one", e + 1, static_cast<std::int64_t>(cascade.einsums.size())});
  }
  return table;
}

/// The nodes of one row.
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
    node.tile_bits = tile_bits(shape.operands[node.operand], tiles);
    std::size_t loops = 0;
    for (std::uint32_t r = 0; r < ranks; ++r)
      loops += tiles[r] != above[r] ? 1U : 0U;
    if (path < group.path.size()) { // in the order that the neighbours have
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

/// The mapping whose last row is `row` of `state` after the last Einsum.
std::vector<EinsumMapping> trace(const RowTable& table,
                                 const std::vector<std::vector<State>>& steps, std::uint32_t state,
                                 std::uint32_t row) {
  std::vector<EinsumMapping> mappings(table.of.size());
  for (std::size_t e = table.of.size(); e-- > 0;) {
    const State::Back& back = steps[e + 1][state].backs[row];
    const Rows& rows = table.rows[table.of[e]];
    mappings[e] =
        describe(table.shapes[table.of[e]], rows, rows.groups[back.group], back.group_row);
    mappings[e].shared_loops = steps[e][back.state].loops();
    state = back.state;
    row = back.row;
  }
  return mappings;
}

void add_rules(const RowTable& table, const JoinStatistics& joins, EinsumStatistics& statistics) {
  statistics.signatures = table.shapes.size();
  for (const Rows& rows : table.rows) {
    for (const RowGroup& group : rows.groups)
      statistics.rows += group.size();
    for (std::size_t i = 0; i < rows.rules.size(); ++i) {
      if (statistics.rules.size() <= i)
        statistics.rules.push_back({rows.rules[i].name, 0, 0});
      statistics.rules[i].seen += rows.rules[i].seen;
      statistics.rules[i].kept += rows.rules[i].kept;
    }
  }
  statistics.joins = static_cast<std::size_t>(joins.joined);
  statistics.rules.push_back({"pairs whose shared loops agree", joins.pairs, joins.compatible});
  statistics.rules.push_back({"joins that fit the buffer", joins.joined, joins.fitting});
  statistics.rules.push_back({"joins that no other dominates", joins.fitting, joins.kept});
}

/// Each Einsum alone, its shared tensors free: less DRAM traffic no mapping has.
std::int64_t bound_of(const RowTable& table) {
  std::int64_t sum = 0;
  for (const std::uint32_t s : table.of) {
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (const RowGroup& group : table.rows[s].groups) {
      for (std::size_t i = 0; i < group.size(); ++i)
        least = std::min(least, group.row(i)[0]);
    }
    sum += table.rows[s].complete && !table.rows[s].groups.empty() ? least : 0;
  }
  return sum;
}

} // namespace

EinsumResult map_einsums(const EinsumCascade& cascade, const EinsumOptions& options,
                         const SearchControl& control) {
  verify(cascade);
  EinsumResult result;
  const Following following = follow(cascade, options.resident);
  const RowTable table = make_table(cascade, following, options, control);
  JoinLimits limits;
  limits.buffer_bits = options.buffer_bits.value_or(std::numeric_limits<std::int64_t>::max());
  limits.unordered = options.reference_rules;
  limits.max_rows = options.max_rows;
  JoinStatistics statistics;
  std::vector<std::vector<State>> steps;
  steps.push_back(start());
  result.exact = std::all_of(table.rows.begin(), table.rows.end(),
                             [](const Rows& rows) { return rows.complete; });
  result.bound_dram_bits = bound_of(table);
  for (std::uint32_t e = 0; e < cascade.einsums.size(); ++e) {
    bool complete = true;
    steps.push_back(join(steps.back(), table.shapes[table.of[e]], table.rows[table.of[e]],
                         uses_of(cascade, following, e), limits, control, statistics, complete));
    for (State& state : steps[e])
      state.values = {}; // only the way back is needed from here on
    result.exact = result.exact && complete;
    result.statistics.widest = std::max(result.statistics.widest, steps.back().size());
    control.tell({"einsums: join", e + 1, static_cast<std::int64_t>(cascade.einsums.size()),
                  std::numeric_limits<double>::quiet_NaN(),
                  static_cast<double>(result.bound_dram_bits)});
  }
  result.interrupted = control.interrupted();
  add_rules(table, statistics, result.statistics);
  if (steps.back().empty()) {
    if (result.exact)
      throw InfeasibleError(fmt::format("no mapping of the {} Einsums fits a buffer of {} bits",
                                        cascade.einsums.size(), limits.buffer_bits));
    return result;
  }
  const State& last = steps.back().front();
  for (std::uint32_t i = 0; i < last.size(); ++i)
    result.front.push_back({last.row(i)[1], last.row(i)[0], trace(table, steps, 0, i)});
  std::reverse(result.front.begin(), result.front.end());
  if (result.exact)
    result.bound_dram_bits = result.front.back().dram_bits;
  return result;
}

} // namespace monet
