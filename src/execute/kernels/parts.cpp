// Operators that cut, join, pad, repeat or rearrange.
#include "base/shared/checked.hpp"
#include "execute/kernels/walk.hpp"
#include "workload/shared/op_types.hpp"

#include <numeric>

namespace monet {

namespace {

/// One for one through the nest, when the numbers are integers: reals might round them.
void move_integers(OperatorContext& context) {
  const OperandMap to = context.map_of(0);
  for (std::size_t i = 0; i < context.op().inputs.size(); ++i) {
    const auto operand = context.operand_index().inputs[i];
    if (!operand)
      continue;
    const OperandMap from = context.map_of(*operand);
    const ElementMover move(context, i, 0);
    for_each_point(context.op().nest, [&](const auto& point) {
      const auto source = from.at(point);
      if (source)
        move(static_cast<std::size_t>(*source), to.index(point));
    });
  }
}

/// Each output element has one source; loops that leave an input read nothing there.
constexpr auto kJoin = []<class Real>(KernelContext<Real>& context) {
  if (!context.is_real_input(0)) {
    move_integers(context);
    return;
  }
  context.for_each_iteration([](std::span<const Real> v, std::span<Real> y) {
    y[0] = std::accumulate(v.begin(), v.end(), Real{0});
  });
};

constexpr auto kMove = []<class Real>(KernelContext<Real>& context) {
  if (!context.is_real_input(0)) {
    move_integers(context);
    return;
  }
  copy_through_nest(context);
};

constexpr auto kSlice = [](OperatorContext& context) {
  const auto& shape = context.input_shape(0);
  Integers starts(shape.size(), 0);
  Integers steps(shape.size(), 1);
  const Integers& given = context.integers(1);
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::size_t axis =
        context.has_input(3) ? front_axis(context.integers(3).at(i), shape.size()) : i;
    steps[axis] = context.has_input(4) ? context.integers(4).at(i) : 1;
    const std::int64_t start = given[i] < 0 ? given[i] + shape[axis] : given[i];
    const std::int64_t last = steps[axis] > 0 ? shape[axis] : shape[axis] - 1;
    starts[axis] = std::clamp<std::int64_t>(start, 0, std::max<std::int64_t>(last, 0));
  }
  copy_slice(context, 0, starts, steps);
};

constexpr auto kSplit = [](OperatorContext& context) {
  const std::size_t rank = context.input_shape(0).size();
  const std::size_t axis = front_axis(context.attributes().integer("axis", 0), rank);
  Integers starts(rank, 0);
  for (std::size_t i = 0; i < context.op().outputs.size(); ++i) {
    if (!context.has_output(i)) {
      starts[axis] += context.integers(1).at(i);
      continue;
    }
    copy_slice(context, i, starts, Integers(rank, 1));
    starts[axis] += context.output_shape(i)[axis];
  }
};

/// Element inside an axis of `size` elements that a padded position repeats.
std::int64_t source_index(const std::string& mode, std::int64_t index, std::int64_t size) {
  if (mode == "edge")
    return std::clamp<std::int64_t>(index, 0, size - 1);
  if (mode == "wrap")
    return (index % size + size) % size;
  const std::int64_t period = std::max<std::int64_t>(2 * (size - 1), 1); // reflect
  const std::int64_t place = (index % period + period) % period;
  return place < size ? place : period - place;
}

/// f(inner, outer): element `outer` of the padded tensor is element `inner` of the one inside.
void for_each_padded(const Integers& inside, const Integers& padded, const Integers& pads,
                     const std::string& mode, FunctionRef<std::size_t, std::size_t> f) {
  const Integers strides = strides_of(inside);
  std::size_t outer = 0;
  for_each_place(padded, [&](const Integers& place) {
    std::int64_t inner = 0;
    for (std::size_t d = 0; d < place.size(); ++d)
      inner += source_index(mode, place[d] - pads[d], inside[d]) * strides[d];
    f(static_cast<std::size_t>(inner), outer++);
  });
}

/// The elements inside the border.
void pad(OperatorContext& context) {
  const std::string mode = context.attributes().text("mode", "constant");
  const ElementMover move(context, 0, 0);
  if (mode != "constant") {
    for_each_padded(context.input_shape(0), context.output_shape(0), context.integers(1), mode,
                    move);
    return;
  }
  const LoopNest& nest = context.op().nest;
  const std::size_t input = *context.operand_index().inputs[0];
  internal_check(!nest.operands[input].opaque, "the pads of a Pad are known");
  const OperandMap from = context.map_of(input);
  const OperandMap to = context.map_of(0);
  for_each_point(nest, [&](const auto& point) {
    if (const auto source = from.at(point))
      move(static_cast<std::size_t>(*source), to.index(point));
  });
}

constexpr auto kPad = []<class Real>(KernelContext<Real>& context) {
  const double border = context.scalar(2, 0.0);
  if (context.is_real_input(0))
    std::ranges::fill(context.output(0), static_cast<Real>(border));
  else
    std::ranges::fill(context.output_integers(0), static_cast<std::int64_t>(border));
  pad(context);
};

/// Attributes `pads` and `mode` of the forward operator.
constexpr auto kPadGrad = []<class Real>(KernelContext<Real>& context) {
  for_each_padded(context.output_shape(0), context.input_shape(0),
                  context.attributes().integers("pads"), context.attributes().text("mode", ""),
                  [&to = context.output(0), &from = context.input(0)](
                      std::size_t inner, std::size_t outer) { to[inner] += from[outer]; });
};

/// Keeps the triangle above (or below) diagonal k of the last two axes.
constexpr auto kTrilu = [](OperatorContext& context) {
  const OperandMap from = context.map_of_input(0);
  const OperandMap to = context.map_of(0);
  const auto& shape = context.output_shape(0);
  const std::int64_t columns = shape.back();
  const std::int64_t rows = shape[shape.size() - 2];
  const auto diagonal = saturated_integer(context.scalar(1, 0.0));
  const bool upper = context.attributes().integer("upper", 1) != 0;
  const ElementMover move(context, 0, 0);
  for_each_point(context.op().nest, [&](const auto& point) {
    const std::int64_t target = to.at(point).value();
    const std::int64_t distance = target % columns - target / columns % rows;
    if (upper ? distance >= diagonal : distance <= diagonal)
      move(from.index(point), static_cast<std::size_t>(target));
  });
};

/// (indices, depth, [off, on]).
constexpr auto kOneHot = [](OperatorContext& context) {
  const auto& shape = context.output_shape(0);
  const std::size_t axis = front_axis(context.attributes().integer("axis", -1), shape.size());
  const std::int64_t stride = strides_of(shape)[axis];
  const OperandMap from = context.map_of_input(0);
  const OperandMap to = context.map_of(0);
  const ElementMover move(context, 2, 0);
  const bool real = context.is_real_input(0);
  for_each_point(context.op().nest, [&](const auto& point) {
    const auto target = to.index(point);
    const auto source = from.index(point);
    std::int64_t hot =
        real ? saturated_integer(context.input_number(0, source)) : context.integers(0)[source];
    hot = hot < 0 ? hot + shape[axis] : hot;
    const bool on = static_cast<std::int64_t>(target) / stride % shape[axis] == hot;
    move(on ? 1 : 0, target);
  });
};

} // namespace

KernelTable parts_kernels() {
  static constexpr KernelEntry kEntries[]{
      kernel("", ops::Concat, kJoin),
      kernel("", ops::Slice, kSlice),
      kernel("", ops::Split, kSplit),
      kernel("", ops::Tile, kMove),
      kernel("", ops::DepthToSpace, kMove),
      kernel("", ops::SpaceToDepth, kMove),
      kernel(kMonetDomain, ops::SliceGrad, kMove),
      kernel("", ops::Pad, kPad),
      kernel(kMonetDomain, ops::PadGrad, kPadGrad),
      kernel("", ops::Trilu, kTrilu),
      kernel("", ops::OneHot, kOneHot),
  };
  return kEntries;
}

} // namespace monet
