// Data shared by the searches over a cascade: tracked tensors, the rows of every Einsum, and the
// reconstruction of mappings from joined rows.
#pragma once

#include "reference/einsum/join.hpp"

#include <cstdint>
#include <vector>

namespace monet::einsum {

/// Uses of the tensors of a cascade, and whether the mapper chooses their places between uses.
struct TensorUses {
  std::vector<std::vector<std::uint32_t>> uses; ///< per tensor: Einsums, ascending
  std::vector<bool> made;
  std::vector<bool> followed; ///< place is tracked from Einsum to Einsum
  std::vector<bool> may_stay; ///< may stay in the buffer
  bool relaxed = false;       ///< some tensors that may stay are not tracked
};

TensorUses follow(const EinsumCascade& cascade, bool resident);

/// Stops tracking tensors that live across more than `span` Einsums: each use chooses their place
/// freely. Every mapping is valid in the relaxed problem, with at most its traffic and memory.
TensorUses relax(TensorUses f, std::uint32_t span);

std::int64_t bits_of(const EinsumTensor& tensor);
Shape shape_of(const EinsumCascade& cascade, const TensorUses& follow, std::uint32_t e);
Uses uses_of(const EinsumCascade& cascade, const TensorUses& follow, std::uint32_t e);

/// The rows of all distinct shapes of a cascade.
struct RowTable {
  std::vector<Shape> shapes;
  std::vector<Rows> rows;
  std::vector<std::uint32_t> of; ///< index of the shape per Einsum
};

/// Computes the rows of every shape. Throws InfeasibleError if an Einsum has no mapping within the
/// buffer.
RowTable make_table(const EinsumCascade& cascade, const TensorUses& follow,
                    const EinsumOptions& options, const SearchControl& control,
                    Tiles tiles = Tiles::all);

/// The mapping that ends in row `row` of the only node after the last Einsum.
std::vector<EinsumMapping> trace(const JoinGraph& graph, const Joined& joined, std::uint32_t row);

/// All rows after the last Einsum with their mappings; empty if the join did not finish.
std::vector<EinsumPoint> points_of(const JoinGraph& graph, const Joined& joined);

} // namespace monet::einsum
