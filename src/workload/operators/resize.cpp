// Rules of interpolation and its gradient, listed in registry.cpp. The gradient has the same loops
// with input and output exchanged.
//
// Integer factors are affine. When enlarging, each input element yields `factor` outputs from
// itself and (linear, cubic) its neighbours; when shrinking, taps are `factor` elements distant.
// Other factors, and aligned corners, access the input in a non-affine order.
#include "workload/operators/families.hpp"

#include <fmt/core.h>

namespace monet {

namespace {

/// Index of the first tap of output 0, and the distance of two taps that covers all taps of
/// `factor` neighbouring outputs.
struct Taps {
  std::int64_t offset = 0;
  std::int64_t distance = 1;
};

struct Interpolation {
  std::int64_t taps = 1; ///< per resized axis: 1 nearest, 2 linear, 4 cubic
  bool centred = true;   ///< coordinates refer to pixel centres
  bool affine = true;    ///< whether integer factors are affine
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

/// Taps of a factor. Enlarging: an output is between inputs `place - 1` and `place + 1` if pixels
/// are centred, otherwise between `place` and `place + 1`. Shrinking: it is in the middle of
/// `factor` inputs, or at the first.
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
} // namespace

LoopNest build_resize(const Graph& graph, const Operator& op) {
  return build_interpolation(graph, op, input_shape(graph, op, 0), output_shape(graph, op, 0),
                             true);
}

/// (dY) -> dX; attribute `scales` is set if the forward operator has scales.
LoopNest build_resize_grad(const Graph& graph, const Operator& op) {
  return build_interpolation(graph, op, output_shape(graph, op, 0), input_shape(graph, op, 0),
                             false);
}

} // namespace monet
