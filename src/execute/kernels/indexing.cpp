// Reading and adding at indices that other tensors hold. Negative indices count from the end.
#include "execute/kernels/walk.hpp"

#include "monet/workload/operators.hpp"

#include <fmt/core.h>

#include <numeric>

namespace monet {

namespace {

using Integers = std::vector<std::int64_t>;

std::int64_t checked_index(const Graph& graph, const Operator& op, std::int64_t index,
                           std::int64_t size) {
  if (index < -size || index >= size)
    throw InputError(location_of(graph, op),
                     fmt::format("index {} is outside an axis of {} elements", index, size));
  return index < 0 ? index + size : index;
}

/// f(to, from) for every iteration, both by element; input 1 holds the indices of whichever of
/// output 0 and input 0 has an indexed axis. Where that is a rank's part of its rows, in order of
/// the ranks, input 2 holds the rank's number: rows of others are passed over.
template <class Real, class F>
void for_each_indexed(KernelContext<Real>& context, F f) {
  const Operator& op = context.op();
  const IndexedOperand to = indexed_operand(context.graph(), op, 0);
  const IndexedOperand from =
      indexed_operand(context.graph(), op, *context.operand_index().inputs[0]);
  std::optional<OperandMap> index; // constant indices may have become part of the map
  if (!to.sizes.empty() || !from.sizes.empty())
    index = context.map_of(context.operand_index().inputs.at(1).value());
  const bool puts = !to.sizes.empty();
  const IndexedOperand& indexed = puts ? to : from;
  const std::int64_t stride = index ? indexed.strides[0] : 0;
  const std::int64_t size = index ? indexed.sizes[0] : 0;
  const std::span<const std::int64_t> indices =
      index ? context.integers(1) : std::span<const std::int64_t>{};
  const std::int64_t parts = context.has_input(2) ? op.attributes.integer("parts", 1) : 1;
  const std::int64_t first = context.has_input(2) ? context.integers(2)[0] * size : 0;
  for_each_point(context.op().nest, [&](const auto& point) {
    std::int64_t shift = 0;
    if (index) {
      const auto at = static_cast<std::size_t>(index->at(point).value());
      const std::int64_t row =
          checked_index(context.graph(), op, indices[at], size * parts) - first;
      if (row < 0 || row >= size)
        return;
      shift = stride * row;
    }
    const std::int64_t target = to.map.at(point).value() + (puts ? shift : 0);
    const std::int64_t source = from.map.at(point).value() + (puts ? 0 : shift);
    f(static_cast<std::size_t>(target), static_cast<std::size_t>(source));
  });
}

constexpr auto kGather = []<class Real>(KernelContext<Real>& context) {
  const ElementMover<Real> move(context, 0, 0);
  for_each_indexed(context, [&](std::size_t to, std::size_t from) { move(from, to); });
};
constexpr auto kGatherGrad = []<class Real>(KernelContext<Real>& context) {
  auto& sums = context.output(0);
  const auto& parts = context.input(0);
  for_each_indexed(context, [&](std::size_t to, std::size_t from) { sums[to] += parts[from]; });
};

/// f(part, whole): element `part` of the picked slices is element `whole` of the data. Input 1
/// holds the indices: its last axis names the first axes of the data after `batch` common ones.
template <class Real, class F>
void for_each_slice(KernelContext<Real>& context, const Integers& data, std::size_t batch, F f) {
  const Integers& indices = context.input_shape(1);
  const Integers strides = strides_of(data);
  const auto depth = static_cast<std::size_t>(indices.empty() ? 0 : indices.back());
  if (depth == 0 || depth > data.size() || batch > data.size() - depth)
    throw InputError(location_of(context.graph(), context.op()),
                     fmt::format("{} common and {} indexed axes of {}", batch, depth, data.size()));
  std::int64_t slice = 1;
  for (std::size_t i = batch + depth; i < data.size(); ++i)
    slice *= data[i];
  std::int64_t rows = 1;
  for (std::size_t i = 0; i + 1 < indices.size(); ++i)
    rows *= indices[i];
  std::int64_t batches = 1;
  for (std::size_t i = 0; i < batch; ++i)
    batches *= data[i];
  const std::int64_t data_batch = batch == 0 ? 0 : strides[batch - 1];
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t begin = row / std::max<std::int64_t>(rows / batches, 1) * data_batch;
    for (std::size_t k = 0; k < depth; ++k) {
      const std::int64_t index = context.integers(1)[static_cast<std::size_t>(row) * depth + k];
      begin +=
          strides[batch + k] * checked_index(context.graph(), context.op(), index, data[batch + k]);
    }
    for (std::int64_t i = 0; i < slice; ++i)
      f(static_cast<std::size_t>(row * slice + i), static_cast<std::size_t>(begin + i));
  }
}

template <class Real>
std::size_t batch_axes(const KernelContext<Real>& context) {
  return static_cast<std::size_t>(context.attributes().integer("batch_dims", 0));
}

constexpr auto kGatherND = []<class Real>(KernelContext<Real>& context) {
  const ElementMover<Real> move(context, 0, 0);
  for_each_slice(context, context.input_shape(0), batch_axes(context),
                 [&](std::size_t part, std::size_t whole) { move(whole, part); });
};
constexpr auto kGatherNDGrad = []<class Real>(KernelContext<Real>& context) {
  auto& sums = context.output(0);
  const auto& parts = context.input(0);
  for_each_slice(context, context.output_shape(0), batch_axes(context),
                 [&](std::size_t part, std::size_t whole) { sums[whole] += parts[part]; });
};

/// Places in the order of the tensor; the network was read for a number of them.
constexpr auto kNonZero = []<class Real>(KernelContext<Real>& context) {
  const LoopNest& nest = context.op().nest;
  const OperandMap map = context.map_of(*context.operand_index().inputs[0]);
  const std::int64_t room = context.output_shape(0)[1];
  std::vector<std::string_view> names; // of loops, one for each axis
  for (const LoopDim& dim : nest.dims) {
    if (names.empty() || names.back() != own_loop(dim.name))
      names.push_back(own_loop(dim.name));
  }
  std::int64_t found = 0;
  for_each_point(context.op().nest, [&](const auto& point) {
    const auto at = static_cast<std::size_t>(map.at(point).value());
    if (context.is_real_input(0) ? context.input(0)[at] == 0 : context.integers(0)[at] == 0)
      return;
    for (std::size_t axis = 0; axis < names.size() && found < room; ++axis)
      context.output_integers(
          0)[axis * static_cast<std::size_t>(room) + static_cast<std::size_t>(found)] =
          loop_value(nest, names[axis], point);
    ++found;
  });
  if (found != room)
    throw InputError(location_of(context.graph(), context.op()),
                     fmt::format("{} elements are not zero, {} were stated", found, room));
};

/// Data first, through the nest.
template <class Real>
void copy_data(KernelContext<Real>& context) {
  context.template for_each_iteration<1, 1>([](auto v, auto y) { y[0] = v[0]; });
}

/// An update replaces, or joins, an element of output 0.
template <class Real>
void put_update(KernelContext<Real>& context, std::size_t from, std::size_t to) {
  const std::string reduction = context.attributes().text("reduction", "none");
  const auto joined = [&](auto old, auto update) {
    if (reduction == "add")
      return static_cast<decltype(old)>(old + update);
    if (reduction == "mul")
      return static_cast<decltype(old)>(old * update);
    if (reduction == "max")
      return std::max<decltype(old)>(old, update);
    if (reduction == "min")
      return std::min<decltype(old)>(old, update);
    return static_cast<decltype(old)>(update);
  };
  if (context.is_real_input(2)) {
    Real& target = context.output(0)[to];
    target = joined(target, context.input(2)[from]);
  } else {
    std::int64_t& target = context.output_integers(0)[to];
    target = joined(target, context.integers(2)[from]);
  }
}

constexpr auto kScatterND = []<class Real>(KernelContext<Real>& context) {
  copy_data(context);
  for_each_slice(context, context.output_shape(0), 0,
                 [&](std::size_t part, std::size_t whole) { put_update(context, part, whole); });
};

constexpr auto kScatterElements = []<class Real>(KernelContext<Real>& context) {
  copy_data(context);
  const Integers& shape = context.output_shape(0);
  const Integers strides = strides_of(shape);
  const std::size_t axis = front_axis(context.attributes().integer("axis", 0), shape.size());
  std::size_t from = 0;
  for_each_place(context.input_shape(2), [&](Integers target) {
    target[axis] =
        checked_index(context.graph(), context.op(), context.integers(1)[from], shape[axis]);
    put_update(context, from++, static_cast<std::size_t>(weighted_sum(strides, target)));
  });
};

/// The k largest (smallest) along an axis, in order; of equal ones the first.
constexpr auto kTopK = []<class Real>(KernelContext<Real>& context) {
  const Integers& in = context.input_shape(0);
  const std::size_t out = context.has_output(0) ? 0 : 1;
  const std::size_t axis = front_axis(context.attributes().integer("axis", -1), in.size());
  const std::int64_t stride = strides_of(in)[axis];
  const std::int64_t chosen = context.output_shape(out)[axis];
  const bool largest = context.attributes().integer("largest", 1) != 0;
  const bool real = context.is_real_input(0);
  const auto value = [&](std::int64_t i) {
    const auto at = static_cast<std::size_t>(i);
    return real ? static_cast<double>(context.input(0)[at])
                : static_cast<double>(context.integers(0)[at]);
  };
  std::optional<ElementMover<Real>> move;
  if (context.has_output(0))
    move.emplace(context, 0, 0);
  Integers lines = in;
  lines[axis] = 1;
  for_each_place(lines, [&](const Integers& place) {
    const std::int64_t from = weighted_sum(strides_of(in), place);
    const std::int64_t to = weighted_sum(strides_of(context.output_shape(out)), place);
    Integers order(static_cast<std::size_t>(in[axis]));
    std::iota(order.begin(), order.end(), std::int64_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      const double left = value(from + a * stride);
      const double right = value(from + b * stride);
      return largest ? left > right : left < right;
    });
    for (std::int64_t k = 0; k < chosen; ++k) {
      const auto target = static_cast<std::size_t>(to + k * stride);
      const std::int64_t source = order[static_cast<std::size_t>(k)];
      if (move)
        (*move)(static_cast<std::size_t>(from + source * stride), target);
      if (context.has_output(1))
        context.output_integers(1)[target] = source;
    }
  });
};

/// The first `lengths[batch]` elements along the time axis, backwards.
constexpr auto kReverseSequence = []<class Real>(KernelContext<Real>& context) {
  const Integers& shape = context.input_shape(0);
  const std::size_t batch = front_axis(context.attributes().integer("batch_axis", 1), shape.size());
  const std::size_t time = front_axis(context.attributes().integer("time_axis", 0), shape.size());
  const Integers strides = strides_of(shape);
  const ElementMover<Real> move(context, 0, 0);
  for_each_place(shape, [&](const Integers& place) {
    const std::int64_t length = context.integers(1)[static_cast<std::size_t>(place[batch])];
    if (length < 0 || length > shape[time])
      throw InputError(location_of(context.graph(), context.op()),
                       fmt::format("a length of {} on an axis of {}", length, shape[time]));
    Integers source = place;
    if (place[time] < length)
      source[time] = length - 1 - place[time];
    move(static_cast<std::size_t>(weighted_sum(strides, source)),
         static_cast<std::size_t>(weighted_sum(strides, place)));
  });
};

} // namespace

std::vector<KernelEntry> indexing_kernels() {
  return {
      kernel("", "TopK", kTopK),
      kernel("", "ReverseSequence", kReverseSequence),
      kernel("", "Gather", kGather),
      kernel("", "GatherElements", kGather),
      kernel(kMonetDomain, "ShardGather", kGather),
      kernel(kMonetDomain, "GatherGrad", kGatherGrad),
      kernel(kMonetDomain, "ShardGatherGrad", kGatherGrad),
      kernel(kMonetDomain, "GatherElementsGrad", kGatherGrad),
      kernel("", "GatherND", kGatherND),
      kernel("", "NonZero", kNonZero),
      kernel(kMonetDomain, "GatherNDGrad", kGatherNDGrad),
      kernel("", "ScatterND", kScatterND),
      kernel("", "ScatterElements", kScatterElements),
      kernel("", "Scatter", kScatterElements),
  };
}

} // namespace monet
