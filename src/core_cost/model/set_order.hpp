// The order in which ZigZag 3.8.5 walks sets of names. It decides which of several equally good
// unrollings is tried first, and which is dropped when there are too many, which operands of a tile
// count as streamed, and at which loop the rows of an array that computes in memory shift.
//
// Its names hash as the SHA-512 of their serialised text (Python's pickle, protocol 4), combined
// with that of their class, so that the order is the same in every run; a set is walked in the
// order of CPython's open-addressing table.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace monet::core_cost_detail {

enum class NameKind { layer_dim, array_dim, memory_operand };

/// Indices into `names`, which are inserted in their order; all different.
std::vector<std::size_t> set_order(std::span<const std::string> names, NameKind kind);

} // namespace monet::core_cost_detail
