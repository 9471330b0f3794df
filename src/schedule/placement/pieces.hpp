// Pieces of tensors and their readers, and properties that equal tiles share: tensors that they
// read and write, with sizes, and tensors that are streamed.
//
// A piece is the region of a tensor that one tile writes, or a part of a tensor without producer
// (SourceParts). Tiles that add into one region each make a version of the piece. All versions but
// the last have one reader, the tile that makes the next version. The numbering of pieces needs
// little storage: pieces of an operator are consecutive, tile by tile, and source parts come last.
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

/// A tensor that the tiles of a kind read, through one or several operands.
struct KindRead {
  TensorId tensor;
  MemoryOperand memory = MemoryOperand::I1; ///< memory operand under which it is stored
  bool kept = false;                        ///< an operand keeps it in the core's memory
  bool streamed = false;                    ///< an operand streams it
};

/// A tensor that the tiles of a kind write.
struct KindOutput {
  TensorId tensor;
  std::uint32_t operand = 0;
  Bits bits;    ///< of the finished piece
  Bits partial; ///< while later tiles add to it
  bool streamed = false;
};

/// Properties of the tiles that share one row of the costs.
struct TileKind {
  OpId op;
  const CoreProblem* problem = nullptr;
  const CoreCost* cost = nullptr;
  std::uint32_t row = 0; ///< index into Timeline::costs
  std::vector<KindRead> reads;
  std::vector<KindOutput> outputs;
  bool streams_reads = false;
  Bits working_space; ///< for streamed operands, as the core cost requests
  Bits max_bits;      ///< maximum bits of a tile in its core's memory

  const KindRead* read_of(TensorId tensor) const {
    for (const KindRead& read : reads) {
      if (read.tensor == tensor)
        return &read;
    }
    return nullptr;
  }
  /// Index of the output that writes the tensor; nullopt if none does.
  std::optional<std::uint32_t> output_of(TensorId tensor) const {
    for (std::uint32_t k = 0; k < outputs.size(); ++k) {
      if (outputs[k].tensor == tensor)
        return k;
    }
    return std::nullopt;
  }
};

/// Kinds of tiles, one per row of the costs; the caller sets their `row`. The kind of a row without
/// tiles has no reads and no outputs.
std::vector<TileKind> make_kinds(const TileGraph& tiles, const Graph& graph,
                                 const TileCosts& costs);

/// All pieces of a step with their numbers and readers.
class Pieces {
public:
  Pieces(const TileGraph& tiles, const Graph& graph, const Chip& chip, const TileCosts& costs,
         const std::vector<TileKind>& kinds);

  std::size_t count() const { return made_ + sources_.parts().size(); }
  /// True if a tile makes the piece; false for a part of a tensor without producer.
  bool made(PieceId id) const { return id.index() < made_; }
  /// The piece that the tile writes as output `k` of its kind.
  PieceId output(TileId tile, std::size_t k) const {
    const OpId op = tiles_.tiles[tile.index()].op;
    const Range& range = of_op_[op.index()];
    const std::size_t index = tile.value - tiles_.operators[op.index()].first;
    return PieceId(range.first + index * range.per_tile + k);
  }
  /// The tile that makes the piece, which must not be a source part.
  TileId maker(PieceId id) const;
  const SourceParts& sources() const { return sources_; }
  PieceId source(std::uint32_t part) const { return PieceId(made_ + part); }
  /// Box of a source part; known only if opening rows takes time.
  const Box& source_box(PieceId id) const {
    return sources_.box(static_cast<std::uint32_t>(id.index() - made_));
  }

  /// Tiles that read the piece, once per edge; sorted by pool, then rank.
  std::span<const TileId> readers(PieceId id) const {
    return {readers_.data() + first_reader_[id.index()],
            first_reader_[id.index() + 1] - first_reader_[id.index()]};
  }
  /// True if the piece is written to the off-chip memory: it outlives the step, or a tile streams
  /// it.
  bool leaves(PieceId id) const { return leaves_[id.index()]; }
  /// True if another tile adds to the piece.
  bool grows(PieceId id) const { return grows_[id.index()]; }
  /// Minimum numbers of transfers and of stays: nothing is fetched twice, and a piece reaches all
  /// cores that read it in one transfer.
  std::size_t min_transfers() const { return min_transfers_; }
  std::size_t min_stays() const { return min_stays_; }

  /// Tiles sorted by rank.
  const std::vector<TileId>& order() const { return order_; }
  const TileKind& kind(TileId tile) const { return kinds_[costs_.row_of[tile.index()]]; }
  /// Pool of a core; undefined for the off-chip core.
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
  std::vector<std::uint32_t> first_reader_; ///< per piece, and one more
  std::vector<TileId> readers_;
  std::vector<bool> leaves_;
  std::vector<bool> grows_;
  std::size_t min_transfers_ = 0;
  std::size_t min_stays_ = 0;
};

} // namespace monet
