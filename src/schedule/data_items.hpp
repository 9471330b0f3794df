// The pieces of tensors that a schedule keeps track of.
//
// A *piece* is what one tile writes of one tensor. A *part* is what one tile reads of a piece, or
// of a tensor that nobody makes; a part equal to its piece is the piece itself. Both are items.
// Cores hold items; the off-chip memory holds pieces, and every tensor without a producer.
#pragma once

#include "monet/base/ids.hpp"
#include "monet/core_cost/core_cost.hpp"
#include "monet/tiling/tiling.hpp"

#include <optional>
#include <vector>

namespace monet {

using ItemId = Id<struct ItemTag>;
using PoolId = Id<struct PoolTag>;

struct ItemUse {
  PoolId pool;
  TileId tile;
  friend auto operator<=>(const ItemUse&, const ItemUse&) = default;
};

struct Item {
  TensorId tensor;
  Bits bits;
  std::optional<ItemId>
      piece; ///< the piece it lies in (itself for a piece); none: a tensor without producer
  bool to_offchip =
      false; ///< a piece that ends in the off-chip memory: an output, or somebody streams it
  std::vector<ItemUse> uses; ///< tiles that read it from their core's memory, by (pool, tile)
  std::uint32_t readers = 0; ///< of a piece: tiles that read any of it, from wherever
};

struct ItemNeed {
  ItemId item;
  MemoryOperand operand = MemoryOperand::I1;
};
struct StreamedRead {
  std::size_t operand = 0; ///< index into the nest's operands
  std::vector<ItemId> pieces;
};
struct TileOutput {
  std::size_t operand = 0;
  ItemId piece;
  bool streamed = false;
};

struct TileData {
  std::vector<ItemNeed> needs;       ///< items to have in the core's memory, each once
  std::vector<StreamedRead> streams; ///< operands that flow by
  std::vector<TileOutput> outputs;
  std::vector<ItemId> pieces; ///< pieces it reads, kept or streamed, each once
};

struct DataItems {
  std::vector<Item> items;
  std::vector<TileData> tiles;
};

/// Tensors that must be in the off-chip memory when the step is over: graph outputs and everything
/// that shares storage with a parameter, buffer or optimiser state. One flag per tensor.
std::vector<bool> required_offchip(const Graph& graph);

/// `problems` and `pools` are given per tile and per core.
DataItems make_data_items(const TileGraph& tiles, const Graph& graph,
                          const std::vector<const CoreProblem*>& problems,
                          const std::vector<PoolId>& pool_of);

} // namespace monet
