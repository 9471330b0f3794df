// Rows: the mappings of one Einsum that can be part of an optimal mapping of a cascade, grouped by
// what its neighbours see of them.
#pragma once

#include "monet/reference/einsum_mapper.hpp"

#include <cstdint>
#include <map>
#include <vector>

namespace monet::einsum {

/// The properties of an Einsum that determine its mappings: equal shapes have equal rows.
struct Shape {
  struct Operand {
    std::vector<AxisExpr> axes;
    std::vector<std::int64_t> extents;
    std::int64_t bits = 8;
    bool written = false;
    bool may_share = false;      ///< may be stored in the buffer only
    std::int64_t share_bits = 0; ///< its DRAM traffic in that case
    friend bool operator==(const Operand&, const Operand&) = default;
  };
  std::vector<std::int64_t> bounds;
  std::vector<bool> whole;
  std::vector<Operand> operands;
  friend bool operator==(const Shape&, const Shape&) = default;
};

struct PathLoop {
  std::uint32_t rank = 0;
  std::int64_t tile = 1;
  std::int64_t trips = 1;
  friend auto operator<=>(const PathLoop&, const PathLoop&) = default;
};

inline constexpr int kInDram = -1;

/// Rows with the same shared loops and places of shared tensors, equal for the neighbours. A row is
/// {DRAM bits, bits held under at most 0, 1, ... loops of the path, total bits held}.
struct RowGroup {
  std::vector<int> levels; ///< per operand: number of path loops above it, or kInDram
  std::vector<PathLoop> path;
  std::vector<std::int64_t> tile_bits; ///< per operand in the buffer
  std::vector<std::int64_t> values;
  std::vector<std::uint32_t> sources; ///< per row

  std::size_t stride() const { return path.size() + 2; }
  std::size_t size() const { return sources.size(); }
  const std::int64_t* row(std::size_t i) const { return values.data() + i * stride(); }
};

/// The mapping of a row: operands from the outermost tile inwards, and the tile size of every rank
/// at each of them.
struct RowSource {
  std::vector<std::uint8_t> order;
  std::vector<std::int64_t> tiles;   ///< [position][rank]
  std::vector<std::int64_t> traffic; ///< DRAM bits per position
};

struct Rows {
  std::vector<RowGroup> groups;
  std::vector<RowSource> sources;
  std::vector<EinsumStatistics::Rule> rules;
  bool complete = true; ///< false: the work limit ended the enumeration
};

/// The axis of the operand that only this rank indexes, with step 1, or -1.
int direct_axis(const Shape::Operand& operand, std::uint32_t rank);
/// Bits of the operand's tile. `tiles`: tile size per rank.
std::int64_t tile_bits(const Shape::Operand& operand, const std::int64_t* tiles);
/// A lower bound of the bits of the operand that any mapping fetches or writes. It may be less than
/// the operand, since small tiles skip the gaps of strides.
std::int64_t min_bits(const Shape& shape, std::size_t operand);

enum class Tiles {
  all,
  coarse, ///< few sizes and candidates: finds some mapping within milliseconds
};

Rows make_rows(const Shape& shape, const EinsumOptions& options, const SearchControl& control,
               Tiles tiles = Tiles::all);

/// Finds the rows that are not dominated (minimised) in the first `columns`; of equal rows the
/// first is kept. Sets `order` to their indices, sorted by ascending first column.
void keep_pareto(const std::vector<std::int64_t>& values, std::size_t stride, std::size_t columns,
                 std::vector<std::uint32_t>& order);
/// Keeps the rows of the group that no other dominates.
void keep_pareto(RowGroup& group);

/// Rows of a path before its loop orders are expanded: the loops of a block may have any order.
struct UnorderedRows {
  std::vector<std::vector<PathLoop>> blocks;
  RowGroup group;
};
using PathKey = std::vector<std::int64_t>; ///< what determines a group: levels and loops
void append_loops(PathKey& key, const std::vector<PathLoop>& loops);
/// Adds the rows to the groups of every order of the loops within each block.
void add_orders(const UnorderedRows& rows, std::map<PathKey, RowGroup>& groups);

} // namespace monet::einsum
