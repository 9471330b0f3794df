// Restrictions on tiling fused operators, by operator type and loop nest; the table of supported
// operators reports them.
#include "workload/shared/fusion.hpp"

#include <algorithm>
#include <array>
#include <span>

namespace monet {

namespace {

// All other operators are tiled freely. A test compares these lists with the nests of all cases.
constexpr std::string_view kNeedRows[]{"Attention",
                                       "CumSum",
                                       "Hardmax",
                                       "LogSoftmax",
                                       "Softmax",
                                       "SoftmaxCrossEntropyLoss",
                                       "SoftmaxCrossEntropyLossInternal"};
constexpr std::string_view kNeedIndexed[]{
    "Gather", "GatherElements", "GridSample", "MaxUnpool", "NegativeLogLikelihoodLoss", "RoiAlign"};
/// Includes Pad for reflected or repeated edges, and Resize for factors that are not integers.
constexpr std::string_view kNeedWhole[]{"GatherND",        "NonZero",         "Pad",       "Resize",
                                        "ReverseSequence", "ScatterElements", "ScatterND", "TopK"};

} // namespace

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

Fusion usual_fusion(std::string_view op_type) {
  const auto in = [&](std::span<const std::string_view> names) {
    return std::ranges::find(names, op_type) != names.end();
  };
  if (in(kNeedWhole))
    return Fusion::whole;
  if (in(kNeedIndexed))
    return Fusion::indexed;
  return in(kNeedRows) || op_type.ends_with("Normalization") ? Fusion::rows : Fusion::tiles;
}

} // namespace monet
