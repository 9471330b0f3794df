// Interpolation, and its gradient: the same loops with input and output exchanged. Whole factors
// are affine: each input element makes `factor` outputs from itself and (linear, cubic) its
// neighbours, or each output is made of taps `factor` apart. Other factors, and corners that are
// aligned, touch the input in an order that is not affine.
#include "workload/operators/families.hpp"

#include <fmt/core.h>

namespace monet {

namespace {

/// Index of the first tap of output 0, and the distance between the first and the second tap that
/// covers all taps of `factor` neighbouring outputs.
struct Taps {
  std::int64_t offset = 0;
  std::int64_t distance = 1;
};

struct Interpolation {
  std::int64_t taps = 1; ///< per axis that changes: 1 nearest, 2 linear, 4 cubic
  bool centred = true;   ///< coordinates are those of pixels' middles
  bool affine = true;    ///< for whole factors
};

Interpolation interpolation_of(const Operator& op) {
  const std::string mode = op.attributes.text("mode", "nearest");
  const std::string place = op.attributes.text("coordinate_transformation_mode", "half_pixel");
  const std::string rounding = op.attributes.text("nearest_mode", "round_prefer_floor");
  Interpolation found;
  found.taps = mode == "cubic" ? 4 : mode == "linear" ? 2 : 1;
  found.centred = place == "half_pixel" || place == "pytorch_half_pixel";
  found.affine = found.centred || place == "asymmetric";
  if (found.taps == 1)
    found.affine = found.centred ? rounding == "round_prefer_floor"
                                 : place == "asymmetric" && rounding == "floor";
  return found;
}

/// Up: an output lies between input `place - 1` and `place + 1` when pixels are centred, otherwise
/// between `place` and `place + 1`. Down: in the middle of `factor` inputs, or at the first.
Taps taps_of(const Interpolation& how, bool down, std::int64_t factor) {
  Taps taps;
  if (down) {
    taps.offset = how.centred ? (factor - 1) / 2 : 0;
  } else if (how.taps > 1 && how.centred) {
    taps.offset = -1;
    taps.distance = 2;
  }
  if (how.taps == 4) {
    taps.offset -= 1;
    taps.distance = 1;
  }
  return taps;
}

LoopNest build_interpolation(const Graph& graph, const Operator& op, const Integers& in,
                             const Integers& out, bool forward) {
  if (in.size() != out.size())
    fail(graph, op, "the output has other axes than the input");
  const Interpolation how = interpolation_of(op);
  const bool adds = how.taps > 1 || !forward;
  const VectorWork work = how.taps > 1 ? VectorWork{1, 1, 0, 0, 0, 0}
                          : adds       ? VectorWork{1, 0, 0, 0, 0, 0}
                                       : VectorWork{};
  LoopNestBuilder nest(graph, op, adds ? ComputeKind::vector : ComputeKind::copy, work);
  bool affine = true;
  std::vector<AxisExpr> to;
  std::vector<AxisExpr> from;
  const auto names = axis_names(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) {
    const bool same = in[i] == out[i];
    const bool up = in[i] > 0 && out[i] % in[i] == 0;
    const bool down = !up && out[i] > 0 && in[i] % out[i] == 0;
    affine = affine && (same || (how.affine && (up || down)));
    const std::int64_t factor = up ? out[i] / in[i] : down ? in[i] / out[i] : 1;
    const LoopIndex place = nest.loop(names[i], up ? in[i] : out[i]);
    std::vector<AffineTerm> source{{place, down ? factor : 1}};
    std::vector<AffineTerm> target{{place, 1}};
    const Taps taps = same ? Taps{} : taps_of(how, down, factor);
    if (up && !same) {
      target[0].coefficient = factor;
      target.push_back({nest.loop(fmt::format("R{}", i), factor), 1});
    }
    if (how.taps > 1 && !same)
      source.push_back({nest.loop(fmt::format("T{}", i), how.taps), taps.distance});
    to.push_back(axis_sum(std::move(target)));
    from.push_back(axis_sum(std::move(source), taps.offset));
  }
  if (forward) {
    nest.output(0, "O", std::move(to));
  } else if (affine) {
    nest.output(0, "O", std::move(from), AccessMode::accumulate);
  } else {
    nest.opaque_output(0, "O", AccessMode::accumulate);
  }
  if (!forward) {
    nest.input(0, "I", std::move(to));
  } else if (affine) {
    nest.padded_input(0, "I", std::move(from));
  } else {
    nest.opaque_input(0, "I");
  }
  return nest.finish();
}

LoopNest build_resize(const Graph& graph, const Operator& op) {
  return build_interpolation(graph, op, input_shape(graph, op, 0), output_shape(graph, op, 0),
                             true);
}
/// (dY) -> dX; attribute `scales` where the forward operator was given scales.
LoopNest build_resize_grad(const Graph& graph, const Operator& op) {
  return build_interpolation(graph, op, output_shape(graph, op, 0), input_shape(graph, op, 0),
                             false);
}

} // namespace

std::vector<OperatorRule> resize_rules() {
  return {
      {"", "Resize", build_resize},
      {kMonetDomain, "ResizeGrad", build_resize_grad},
  };
}

} // namespace monet
