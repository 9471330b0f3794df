#include "monet/workload/fusion.hpp"

#include "monet/base/errors.hpp"

#include <algorithm>
#include <array>

namespace monet {

namespace {

struct Entry {
  std::string_view op_type;
  Fusion fusion;
};

/// Everything that is not here is tiled freely. A test holds this against the nests of all cases.
constexpr std::array kTable{
    Entry{"Attention", Fusion::rows},
    Entry{"CumSum", Fusion::rows},
    Entry{"Gather", Fusion::indexed},
    Entry{"GatherElements", Fusion::indexed},
    Entry{"GatherND", Fusion::whole},
    Entry{"Hardmax", Fusion::rows},
    Entry{"LogSoftmax", Fusion::rows},
    Entry{"NegativeLogLikelihoodLoss", Fusion::indexed},
    Entry{"Pad", Fusion::whole},    // reflected or repeated edges
    Entry{"Resize", Fusion::whole}, // by factors that are no whole numbers
    Entry{"ReverseSequence", Fusion::whole},
    Entry{"ScatterElements", Fusion::whole},
    Entry{"ScatterND", Fusion::whole},
    Entry{"Softmax", Fusion::rows},
    Entry{"SoftmaxCrossEntropyLoss", Fusion::rows},
    Entry{"SoftmaxCrossEntropyLossInternal", Fusion::rows},
    Entry{"TopK", Fusion::whole},
};

} // namespace

std::string_view name_of(Fusion fusion) {
  switch (fusion) {
  case Fusion::tiles:
    return "tiles";
  case Fusion::rows:
    return "rows";
  case Fusion::indexed:
    return "indexed";
  case Fusion::whole:
    return "whole";
  }
  throw InternalError("fusion without a name");
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
    if (std::any_of(access.axes.begin(), access.axes.end(),
                    [](const AxisExpr& axis) { return axis.data_dependent; }))
      fusion = Fusion::indexed;
  }
  return fusion;
}

Fusion usual_fusion(std::string_view, std::string_view op_type) {
  const auto* found = std::find_if(kTable.begin(), kTable.end(),
                                   [&](const Entry& entry) { return entry.op_type == op_type; });
  if (found != kTable.end())
    return found->fusion;
  return op_type.ends_with("Normalization") ? Fusion::rows : Fusion::tiles;
}

} // namespace monet
