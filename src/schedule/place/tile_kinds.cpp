#include "schedule/place/tile_kinds.hpp"

#include "monet/base/checked.hpp"

#include <algorithm>

namespace monet {

namespace {

void add_read(TileKind& kind, const Access& access, std::uint32_t operand,
              const ProblemOperand& problem) {
  auto known = std::find_if(kind.reads.begin(), kind.reads.end(),
                            [&](const KindRead& read) { return read.tensor == access.tensor; });
  if (known == kind.reads.end()) {
    kind.reads.push_back({access.tensor, problem.memory, operand, false, false});
    known = kind.reads.end() - 1;
  }
  if (!problem.offchip && !known->kept) {
    known->kept = true;
    known->memory = problem.memory;
  }
  known->streamed = known->streamed || problem.offchip;
  kind.streams_reads = kind.streams_reads || problem.offchip;
}

void add_output(TileKind& kind, const Access& access, std::uint32_t operand,
                const ProblemOperand& problem, const Tensor& tensor) {
  if (kind.output_of(access.tensor))
    return;
  const std::int64_t elements = checked_product(problem.extents);
  KindOutput output{access.tensor, operand, storage_of(tensor.type, elements), {}, problem.offchip};
  output.partial = output.bits;
  if (problem.partial_bits > problem.bits)
    output.partial.value = checked_multiply(elements, problem.partial_bits);
  kind.outputs.push_back(output);
}

TileKind make_kind(const Graph& graph, OpId op, const TileCost& cost) {
  TileKind kind;
  kind.op = op;
  kind.problem = cost.problem;
  kind.cost = cost.cost;
  const auto& operands = graph.op(op).nest.operands;
  for (std::uint32_t i = 0; i < operands.size(); ++i) {
    const ProblemOperand& problem = cost.problem->operands[i];
    const std::int64_t elements = checked_product(problem.extents);
    if (elements == 0)
      continue;
    if (operands[i].mode == AccessMode::read) {
      add_read(kind, operands[i], i, problem);
    } else {
      add_output(kind, operands[i], i, problem, graph.tensor(operands[i].tensor));
    }
    if (problem.offchip) {
      if (i < cost.cost->resident.size())
        kind.working_space += Bits{std::max<std::int64_t>(0, cost.cost->resident[i].value)};
    } else {
      const std::int64_t wide = std::max(problem.bits, problem.partial_bits);
      kind.most_bits.value = checked_add(kind.most_bits.value, checked_multiply(elements, wide));
    }
  }
  kind.most_bits += kind.working_space;
  return kind;
}

} // namespace

std::vector<TileKind> make_kinds(const TileGraph& tiles, const Graph& graph,
                                 const TileCosts& costs) {
  std::vector<TileKind> kinds(costs.rows.size());
  for (std::size_t t = 0; t < tiles.tiles.size(); ++t) {
    const std::uint32_t row = costs.row_of[t];
    if (kinds[row].problem == nullptr)
      kinds[row] = make_kind(graph, tiles.tiles[t].op, costs.rows[row]);
  }
  return kinds;
}

} // namespace monet
