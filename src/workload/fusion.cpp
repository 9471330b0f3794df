// Restrictions on tiling fused operators, by loop nest.
#include "workload/shared/fusion.hpp"

#include <algorithm>
#include <array>

namespace monet {

std::string_view name_of(Fusion fusion) {
  static constexpr std::array<std::string_view, 4> kNames{"tiles", "rows", "indexed", "whole"};
  return kNames.at(static_cast<std::size_t>(fusion));
}

Fusion fusion_of(const LoopNest& nest) {
  Fusion fusion = Fusion::tiles;
  for (const LoopDim& dim : nest.dims) {
    if (dim.coupled && dim.size > 1)
      fusion = Fusion::rows;
  }
  for (const Access& access : nest.operands) {
    if (access.opaque)
      return Fusion::whole;
    if (std::ranges::any_of(access.axes, [](const AxisExpr& axis) { return axis.data_dependent; }))
      fusion = Fusion::indexed;
  }
  return fusion;
}

} // namespace monet
