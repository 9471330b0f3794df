// Restrictions on running an operator tile by tile, together with its producers and consumers.
#pragma once

#include "monet/workload/graph.hpp"

#include <string_view>

namespace monet {

/// Restriction on fusion, in ascending order of severity.
enum class Fusion {
  tiles, ///< any loop may be cut
  /// Loops that a result depends on as a whole (softmax, statistics) remain in one tile.
  rows,
  /// Data determine the access to one operand, which is needed as a whole; other operands are
  /// tiled.
  indexed,
  /// An operand is accessed at unknown positions; only the other operands are tiled.
  whole,
};
std::string_view name_of(Fusion fusion);

/// Restriction due to a loop nest.
Fusion fusion_of(const LoopNest& nest);

} // namespace monet
