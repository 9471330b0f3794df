// All mappings of one Einsum that can be part of an optimal mapping of a cascade, by what its
// neighbours see of them.
#pragma once

#include "monet/reference/einsum_mapper.hpp"

#include <cstdint>
#include <vector>

namespace monet::einsum {

/// What decides the mappings of an Einsum: equal shapes have equal rows.
struct Shape {
  struct Operand {
    std::vector<AxisExpr> axes;
    std::vector<std::int64_t> extents;
    std::int64_t bits = 8;
    bool written = false;
    bool may_share = false;      ///< may be backed by the buffer
    std::int64_t share_bits = 0; ///< DRAM traffic that it then still has
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

/// Rows that neighbours cannot tell apart: the shared loops and where the shared tensors are.
/// A row is {DRAM bits, bits held under at most 0, 1, ... loops of the path, bits held in all}.
struct RowGroup {
  std::vector<int> levels; ///< per operand: loops of the path above it, or kInDram
  std::vector<PathLoop> path;
  std::vector<std::int64_t> tile_bits; ///< per operand in the buffer
  std::vector<std::int64_t> values;
  std::vector<std::uint32_t> sources; ///< per row

  std::size_t stride() const { return path.size() + 2; }
  std::size_t size() const { return sources.size(); }
  const std::int64_t* row(std::size_t i) const { return values.data() + i * stride(); }
};

/// How a row came about: operands from the outermost tile inwards, and the tile of every rank at
/// each of them.
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

/// Axis of the operand that the rank alone indexes with step 1, or -1.
int direct_axis(const Shape::Operand& operand, std::uint32_t rank);
/// Bits of the operand's tile.
std::int64_t tile_bits(const Shape::Operand& operand, const std::int64_t* tiles);
/// No more bits of the operand than any mapping has to fetch or write: strides leave gaps, which
/// small tiles skip.
std::int64_t min_bits(const Shape& shape, std::size_t operand);

enum class Tiles {
  all,
  coarse, ///< few sizes, of few candidates: some mapping within milliseconds, if there is one
};

Rows make_rows(const Shape& shape, const EinsumOptions& options, const SearchControl& control,
               Tiles tiles = Tiles::all);

/// Keeps the rows that no other row is at most as large as in each of the first `columns`; equal
/// rows once, the first. `order` receives the indices of what is left, by rising first column.
void keep_pareto(const std::vector<std::int64_t>& values, std::size_t stride, std::size_t columns,
                 std::vector<std::uint32_t>& order);

} // namespace monet::einsum
