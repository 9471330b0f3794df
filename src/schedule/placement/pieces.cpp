// Numbers the pieces of all tensors, lists their readers and describes kinds of equal tiles. The
// event scheduler builds this once, before it places tiles.
#include "schedule/placement/pieces.hpp"

#include "base/shared/checked.hpp"
#include "schedule/shared/bounds.hpp"

#include "monet/base/errors.hpp"

#include <algorithm>

namespace monet {

namespace {

void add_read(TileKind& kind, const Access& access, const ProblemOperand& problem) {
  auto known = std::ranges::find_if(
      kind.reads, [&](const KindRead& read) { return read.tensor == access.tensor; });
  if (known == kind.reads.end()) {
    kind.reads.push_back({access.tensor, problem.memory, false, false});
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
      add_read(kind, operands[i], problem);
    } else {
      add_output(kind, operands[i], i, problem, graph.tensor(operands[i].tensor));
    }
    if (problem.offchip) {
      if (i < cost.cost->resident.size())
        kind.working_space += Bits{std::max<std::int64_t>(0, cost.cost->resident[i].value)};
    } else {
      const std::int64_t wide = std::max(problem.bits, problem.partial_bits);
      kind.max_bits.value = checked_add(kind.max_bits.value, checked_multiply(elements, wide));
    }
  }
  kind.max_bits += kind.working_space;
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

Pieces::Pieces(const TileGraph& tiles, const Graph& graph, const Chip& chip, const TileCosts& costs,
               const std::vector<TileKind>& kinds)
    : tiles_(tiles), costs_(costs), kinds_(kinds),
      sources_(tiles, graph, offchip_port(chip).rows.has_value()) {
  std::size_t pools = 0;
  for (std::size_t c = 0; c < chip.cores.size(); ++c) {
    const CoreId first = chip.memory_of(CoreId(c));
    pool_of_.push_back(first == CoreId(c) ? PoolId(pools++) : pool_of_.at(first.index()));
  }
  number_pieces();
  order_.resize(tiles.tiles.size());
  for (std::size_t t = 0; t < order_.size(); ++t)
    order_[tiles.rank[t]] = TileId(t);
  mark(graph);
  list_readers();
}

/// Numbers the pieces that tiles make.
void Pieces::number_pieces() {
  for (const OperatorTiling& tiling : tiles_.operators) {
    // Tiles of an operator write the same tensors, except those of which a tile writes nothing.
    std::size_t most = 0;
    for (std::uint32_t t = tiling.first; t < tiling.last; ++t)
      most = std::max(most, kinds_[costs_.row_of[t]].outputs.size());
    of_op_.push_back({made_, most});
    made_ += most * tiling.size();
  }
}

TileId Pieces::maker(PieceId id) const {
  // Operators without pieces begin at the same number as the next one: the last of them has the
  // piece.
  const auto after = std::partition_point(
      of_op_.begin(), of_op_.end(), [&](const Range& range) { return range.first <= id.index(); });
  const auto op = static_cast<std::size_t>(after - of_op_.begin()) - 1;
  const std::size_t index = (id.index() - of_op_[op].first) / of_op_[op].per_tile;
  return TileId(tiles_.operators[op].first + index);
}

/// Calls `visit(piece, tensor)` for every piece that the tile reads, made by other tiles or part of
/// a tensor without producer.
template <class Visit>
void Pieces::for_each_read(TileId tile, Visit visit) const {
  for (const TileEdge& edge : tiles_.edges_into(tile)) {
    const auto k = kind(edge.from).output_of(edge.tensor);
    internal_check(k.has_value(), "an edge leaves a tile that does not write its tensor");
    visit(output(edge.from, *k), edge.tensor);
  }
  for (const SourceParts::Read& read : sources_.reads_of(tiles_.tiles[tile.index()].op)) {
    for (const std::uint32_t part : sources_.parts_of(read, tile))
      visit(source(part), read.tensor);
  }
}

/// Sets leaves_ and grows_ of the pieces that tiles make.
void Pieces::mark(const Graph& graph) {
  leaves_.assign(count(), false);
  grows_.assign(count(), false);
  const std::vector<bool> required = required_offchip(graph);
  for (std::size_t t = 0; t < tiles_.tiles.size(); ++t) {
    const TileKind& of_tile = kind(TileId(t));
    for (std::size_t k = 0; k < of_tile.outputs.size(); ++k) {
      if (required[of_tile.outputs[k].tensor.index()])
        leaves_[output(TileId(t), k).index()] = true;
    }
  }
  for (std::size_t t = 0; t < tiles_.tiles.size(); ++t) {
    const TileKind& of_tile = kind(TileId(t));
    for (const TileEdge& edge : tiles_.edges_into(TileId(t))) {
      const TileKind& maker = kind(edge.from);
      const auto k = maker.output_of(edge.tensor);
      if (!k)
        continue;
      const PieceId piece = output(edge.from, *k);
      if (maker.op == of_tile.op) { // only the next version leaves
        grows_[piece.index()] = true;
        const auto own = of_tile.output_of(edge.tensor);
        leaves_[piece.index()] = own && of_tile.outputs[*own].streamed;
      } else if (of_tile.streams_reads) {
        const KindRead* read = of_tile.read_of(edge.tensor);
        if (read && read->streamed)
          leaves_[piece.index()] = true;
      }
    }
  }
}

void Pieces::list_readers() {
  // Counting sort: tiles are visited by pool, then rank, which orders the readers of each piece.
  std::vector<std::uint32_t> pool_begin;
  for (const PoolId pool : pool_of_)
    pool_begin.resize(std::max(pool_begin.size(), pool.index() + 2), 0);
  for (std::size_t t = 0; t < tiles_.tiles.size(); ++t)
    ++pool_begin[pool_of(TileId(t)).index() + 1];
  for (std::size_t p = 1; p < pool_begin.size(); ++p)
    pool_begin[p] += pool_begin[p - 1];
  std::vector<TileId> by_pool(tiles_.tiles.size());
  for (const TileId tile : order_)
    by_pool[pool_begin[pool_of(tile).index()]++] = tile;

  first_reader_.assign(count() + 1, 0);
  for (const TileId tile : by_pool)
    for_each_read(tile, [&](PieceId piece, TensorId) { ++first_reader_[piece.index() + 1]; });
  for (std::size_t i = 1; i < first_reader_.size(); ++i)
    first_reader_[i] += first_reader_[i - 1];
  readers_.resize(first_reader_.back());
  // Filling moves the begin of each list to its end, which is the begin of the next one.
  for (const TileId tile : by_pool) {
    for_each_read(
        tile, [&](PieceId piece, TensorId) { readers_[first_reader_[piece.index()]++] = tile; });
  }
  for (std::size_t i = first_reader_.size() - 1; i > 0; --i)
    first_reader_[i] = first_reader_[i - 1];
  first_reader_[0] = 0;
  count_moves();
}

/// Computes min_transfers_ and min_stays_.
void Pieces::count_moves() {
  const auto add = [&](PieceId piece, std::optional<PoolId> home) {
    const auto of_piece = readers(piece);
    std::size_t away = 0;
    for (std::size_t r = 0; r < of_piece.size(); ++r) {
      const PoolId pool = pool_of(of_piece[r]);
      if (pool != home && (r == 0 || pool != pool_of(of_piece[r - 1])))
        ++away;
    }
    min_transfers_ += (away > 0 ? 1 : 0) + (leaves(piece) ? 1 : 0);
    min_stays_ += away + (home ? 1 : 0) + (leaves(piece) ? 1 : 0);
  };
  for (std::size_t t = 0; t < tiles_.tiles.size(); ++t) {
    for (std::size_t k = 0; k < kind(TileId(t)).outputs.size(); ++k)
      add(output(TileId(t), k), pool_of(TileId(t)));
  }
  for (std::uint32_t part = 0; part < sources_.parts().size(); ++part)
    add(source(part), std::nullopt);
}

} // namespace monet
