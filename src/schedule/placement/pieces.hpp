// What a schedule keeps track of: pieces of tensors, who reads them, and what equal tiles have in
// common: what they read and write, how much of it, and what flows by.
//
// A piece is what one tile writes of one tensor, or a part of a tensor that nobody makes
// (SourceParts). Tiles that add into one place make a version of the piece each; all but the last
// have one reader, the tile that makes the next version. Pieces are numbered so that little needs
// to be stored: those of an operator lie side by side, tile by tile; source parts come last.
#pragma once

#include "schedule/placement/source_parts.hpp"

#include "monet/base/ids.hpp"
#include "monet/schedule/tile_costs.hpp"

#include <optional>
#include <span>
#include <vector>

namespace monet {

using PieceId = Id<struct PieceTag>;
using PoolId = Id<struct PoolTag>;

/// A tensor that tiles of a kind read, however many operands read it.
struct KindRead {
  TensorId tensor;
  MemoryOperand memory = MemoryOperand::I1; ///< as what it is kept
  bool kept = false;                        ///< an operand has it in the core's memory
  bool streamed = false;                    ///< an operand has it flow by
};

struct KindOutput {
  TensorId tensor;
  std::uint32_t operand = 0;
  Bits bits;    ///< of the finished piece
  Bits partial; ///< while later tiles add to it
  bool streamed = false;
};

/// Tiles of one row of the costs.
struct TileKind {
  OpId op;
  const CoreProblem* problem = nullptr;
  const CoreCost* cost = nullptr;
  std::uint32_t row = 0; ///< of Timeline::costs
  std::vector<KindRead> reads;
  std::vector<KindOutput> outputs;
  bool streams_reads = false;
  Bits working_space; ///< of streamed operands, as the core cost asks for it
  Bits max_bits;      ///< that a tile may want in its core's memory at once

  const KindRead* read_of(TensorId tensor) const {
    for (const KindRead& read : reads) {
      if (read.tensor == tensor)
        return &read;
    }
    return nullptr;
  }
  /// Which output the tensor is, if any.
  std::optional<std::uint32_t> output_of(TensorId tensor) const {
    for (std::uint32_t k = 0; k < outputs.size(); ++k) {
      if (outputs[k].tensor == tensor)
        return k;
    }
    return std::nullopt;
  }
};

/// One per row of the costs; their `row` is the caller's to fill in. A row without tiles has no
/// reads and outputs.
std::vector<TileKind> make_kinds(const TileGraph& tiles, const Graph& graph,
                                 const TileCosts& costs);

class Pieces {
public:
  Pieces(const TileGraph& tiles, const Graph& graph, const Chip& chip, const TileCosts& costs,
         const std::vector<TileKind>& kinds);

  std::size_t count() const { return made_ + sources_.parts().size(); }
  /// Not a part of a tensor that nobody makes.
  bool made(PieceId id) const { return id.index() < made_; }
  /// What the tile writes as output `k` of its kind.
  PieceId output(TileId tile, std::size_t k) const {
    const OpId op = tiles_.tiles[tile.index()].op;
    const Range& range = of_op_[op.index()];
    const std::size_t index = tile.value - tiles_.operators[op.index()].first;
    return PieceId(range.first + index * range.per_tile + k);
  }
  /// Who makes a piece that is no source.
  TileId maker(PieceId id) const;
  const SourceParts& sources() const { return sources_; }
  PieceId source(std::uint32_t part) const { return PieceId(made_ + part); }
  /// Where opening rows takes time.
  const Box& source_box(PieceId id) const {
    return sources_.box(static_cast<std::uint32_t>(id.index() - made_));
  }

  /// Tiles that read the piece, each once per edge; by pool, then rank.
  std::span<const TileId> readers(PieceId id) const {
    return {readers_.data() + first_reader_[id.index()],
            first_reader_[id.index() + 1] - first_reader_[id.index()]};
  }
  /// The piece ends in the off-chip memory: the step leaves it behind, or somebody streams it.
  bool leaves(PieceId id) const { return leaves_[id.index()]; }
  /// Another tile adds to the piece.
  bool grows(PieceId id) const { return grows_[id.index()]; }
  /// Transfers and stays that a schedule has when nothing is fetched twice, and what several cores
  /// read comes to all of them at once.
  std::size_t min_transfers() const { return min_transfers_; }
  std::size_t min_stays() const { return min_stays_; }

  /// Tiles by rank.
  const std::vector<TileId>& order() const { return order_; }
  const TileKind& kind(TileId tile) const { return kinds_[costs_.row_of[tile.index()]]; }
  /// Pool of a core (that of the off-chip core is meaningless).
  PoolId pool_of(CoreId core) const { return pool_of_[core.index()]; }
  PoolId pool_of(TileId tile) const { return pool_of(tiles_.tiles[tile.index()].core); }

private:
  struct Range {
    std::size_t first = 0;
    std::size_t per_tile = 0;
  };

  void number_pieces();
  void mark(const Graph& graph);
  void list_readers();
  void count_moves();
  template <class Visit>
  void for_each_read(TileId tile, Visit visit) const;

  const TileGraph& tiles_;
  const TileCosts& costs_;
  const std::vector<TileKind>& kinds_;
  std::vector<PoolId> pool_of_; ///< per core
  SourceParts sources_;
  std::vector<Range> of_op_;
  std::size_t made_ = 0;
  std::vector<TileId> order_;
  std::vector<std::uint32_t> first_reader_; ///< per piece and one more
  std::vector<TileId> readers_;
  std::vector<bool> leaves_;
  std::vector<bool> grows_;
  std::size_t min_transfers_ = 0;
  std::size_t min_stays_ = 0;
};

} // namespace monet
