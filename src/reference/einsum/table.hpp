// What the searches over a cascade share: which tensors are followed from Einsum to Einsum, the
// rows of every Einsum, and the way back from joined rows to a mapping.
#pragma once

#include "reference/einsum/join.hpp"

#include <cstdint>
#include <vector>

namespace monet::einsum {

/// Where a tensor is used, and whether the mapper may choose where it is between its uses.
struct TensorUses {
  std::vector<std::vector<std::uint32_t>> uses; ///< Einsums per tensor, rising
  std::vector<bool> made;
  std::vector<bool> followed; ///< from Einsum to Einsum
  std::vector<bool> may_stay; ///< in the buffer
  bool relaxed = false;       ///< some that may stay are not followed
};

TensorUses follow(const EinsumCascade& cascade, bool resident);

/// Lets go of tensors that live past more than `span` Einsums: wherever each use wants them, they
/// are. Every mapping is one of the relaxed problem, with no more traffic and memory.
TensorUses relax(TensorUses f, std::uint32_t span);

std::int64_t bits_of(const EinsumTensor& tensor);
Shape shape_of(const EinsumCascade& cascade, const TensorUses& follow, std::uint32_t e);
Uses uses_of(const EinsumCascade& cascade, const TensorUses& follow, std::uint32_t e);

/// Rows by shape: each shape is solved once.
struct RowTable {
  std::vector<Shape> shapes;
  std::vector<Rows> rows;
  std::vector<std::uint32_t> of; ///< per Einsum
};

/// InfeasibleError when an Einsum has no mapping within the buffer.
RowTable make_table(const EinsumCascade& cascade, const TensorUses& follow,
                    const EinsumOptions& options, const SearchControl& control,
                    Tiles tiles = Tiles::all);

/// The mapping whose last row is `row` of the one node after the last Einsum.
std::vector<EinsumMapping> trace(const JoinGraph& graph, const Joined& joined, std::uint32_t row);

/// All rows after the last Einsum with their mappings; empty when the join did not get there.
std::vector<EinsumPoint> points_of(const JoinGraph& graph, const Joined& joined);

} // namespace monet::einsum
