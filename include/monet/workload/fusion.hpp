// How far an operator can run tile by tile next to those that make and read its tensors.
#pragma once

#include "monet/workload/graph.hpp"

#include <string_view>

namespace monet {

/// In order: each hinders fusion more than those before.
enum class Fusion {
  tiles,   ///< any loop may be cut
  rows,    ///< loops that a result depends on as a whole (softmax, statistics) stay in one tile
  indexed, ///< data say where one operand is touched: it must be whole, the rest is tiled
  whole,   ///< some operand is touched nobody knows where: tiled over the others only
};
std::string_view name_of(Fusion fusion);

/// What the nest allows.
Fusion fusion_of(const LoopNest& nest);
/// The most that operators of a type need, whatever their attributes and shapes.
Fusion usual_fusion(std::string_view op_type);

} // namespace monet
