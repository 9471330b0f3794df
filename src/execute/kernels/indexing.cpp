// Reading and adding at indices that other tensors hold. Negative indices count from the end.
#include "execute/kernels/walk.hpp"
#include "workload/shared/operators.hpp"

#include <fmt/core.h>

#include <numeric>

namespace monet {

namespace {

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
void for_each_indexed(OperatorContext& context, FunctionRef<std::size_t, std::size_t> f) {
  const Operator& op = context.op();
  const IndexedOperand to = indexed_operand(context, 0);
  const IndexedOperand from = indexed_operand(context, *context.operand_index().inputs[0]);
  std::optional<OperandMap> index; // constant indices may have become part of the map
  if (!to.sizes.empty() || !from.sizes.empty())
    index = context.map_of_input(1);
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
      const auto at = index->index(point);
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

constexpr auto kGather = [](OperatorContext& context) {
  const ElementMover move(context, 0, 0);
  for_each_indexed(context, [&](std::size_t to, std::size_t from) { move(from, to); });
};
constexpr auto kGatherGrad = []<class Real>(KernelContext<Real>& context) {
  auto& sums = context.output(0);
  const auto& parts = context.input(0);
  for_each_indexed(context, [&](std::size_t to, std::size_t from) { sums[to] += parts[from]; });
};

/// f(part, whole, count): elements from `part` on of the picked slices are elements from `whole` on
/// of the data. Input 1 holds the indices: its last axis names the first axes of the data after
/// `batch` common ones.
void for_each_slice(OperatorContext& context, const Integers& data, std::size_t batch,
                    FunctionRef<std::size_t, std::size_t, std::size_t> f) {
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
    f(static_cast<std::size_t>(row * slice), static_cast<std::size_t>(begin),
      static_cast<std::size_t>(slice));
  }
}

std::size_t batch_axes(const OperatorContext& context) {
  return static_cast<std::size_t>(context.attributes().integer("batch_dims", 0));
}

constexpr auto kGatherND = [](OperatorContext& context) {
  const ElementMover move(context, 0, 0);
  for_each_slice(context, context.input_shape(0), batch_axes(context),
                 [&](std::size_t part, std::size_t whole, std::size_t count) {
                   move.run(static_cast<std::int64_t>(whole), 1, part, count);
                 });
};
constexpr auto kGatherNDGrad = []<class Real>(KernelContext<Real>& context) {
  auto& sums = context.output(0);
  const auto& parts = context.input(0);
  for_each_slice(context, context.output_shape(0), batch_axes(context),
                 [&](std::size_t part, std::size_t whole, std::size_t count) {
                   for (std::size_t i = 0; i < count; ++i)
                     sums[whole + i] += parts[part + i];
                 });
};

/// Places in the order of the tensor; the network was read for a number of them.
constexpr auto kNonZero = [](OperatorContext& context) {
  const LoopNest& nest = context.op().nest;
  const OperandMap map = context.map_of_input(0);
  const std::int64_t room = context.output_shape(0)[1];
  std::vector<std::string_view> names; // of loops, one for each axis
  for (const LoopDim& dim : nest.dims) {
    if (names.empty() || names.back() != own_loop(dim.name))
      names.push_back(own_loop(dim.name));
  }
  std::int64_t found = 0;
  for_each_point(context.op().nest, [&](const auto& point) {
    const auto at = map.index(point);
    if (context.input_number(0, at) == 0)
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

/// Updates replace, or join, elements of output 0.
template <class Real>
class Updater {
public:
  explicit Updater(KernelContext<Real>& context)
      : reduction_(context.attributes().text("reduction", "none")),
        is_real_(context.is_real_input(2)), real_(context.output(0)),
        real_updates_(context.input(2)), whole_(context.output_integers(0)),
        whole_updates_(context.integers(2)) {}

  void operator()(std::size_t from, std::size_t to) const {
    if (is_real_)
      real_[to] = joined(real_[to], real_updates_[from]);
    else
      whole_[to] = joined(whole_[to], whole_updates_[from]);
  }

private:
  template <class Number>
  Number joined(Number old, Number update) const {
    if (reduction_ == "add")
      return old + update;
    if (reduction_ == "mul")
      return old * update;
    if (reduction_ == "max")
      return std::max(old, update);
    return reduction_ == "min" ? std::min(old, update) : update;
  }

  std::string reduction_;
  bool is_real_;
  std::vector<Real>& real_;
  const std::vector<Real>& real_updates_;
  Integers& whole_;
  const Integers& whole_updates_;
};

constexpr auto kScatterND = []<class Real>(KernelContext<Real>& context) {
  copy_through_nest(context); // the data first
  const Updater put(context);
  for_each_slice(context, context.output_shape(0), 0,
                 [&](std::size_t part, std::size_t whole, std::size_t count) {
                   for (std::size_t i = 0; i < count; ++i)
                     put(part + i, whole + i);
                 });
};

constexpr auto kScatterElements = []<class Real>(KernelContext<Real>& context) {
  copy_through_nest(context); // the data first
  const Integers& shape = context.output_shape(0);
  const Integers strides = strides_of(shape);
  const std::size_t axis = front_axis(context.attributes().integer("axis", 0), shape.size());
  const Updater put(context);
  std::size_t from = 0;
  for_each_place(context.input_shape(2), [&](Integers target) {
    target[axis] =
        checked_index(context.graph(), context.op(), context.integers(1)[from], shape[axis]);
    put(from++, static_cast<std::size_t>(weighted_sum(strides, target)));
  });
};

/// The k largest (smallest) along an axis, in order; of equal ones the first.
constexpr auto kTopK = [](OperatorContext& context) {
  const Integers& in = context.input_shape(0);
  const std::size_t out = context.has_output(0) ? 0 : 1;
  const std::size_t axis = front_axis(context.attributes().integer("axis", -1), in.size());
  const std::int64_t stride = strides_of(in)[axis];
  const std::int64_t chosen = context.output_shape(out)[axis];
  const bool largest = context.attributes().integer("largest", 1) != 0;
  std::optional<ElementMover> move;
  if (context.has_output(0))
    move.emplace(context, 0, 0);
  Integers lines = in;
  lines[axis] = 1;
  for_each_place(lines, [&](const Integers& place) {
    const std::int64_t from = weighted_sum(strides_of(in), place);
    const std::int64_t to = weighted_sum(strides_of(context.output_shape(out)), place);
    Integers order(static_cast<std::size_t>(in[axis]));
    std::vector<double> values;
    for (std::size_t i = 0; i < order.size(); ++i)
      values.push_back(context.input_number(
          0, static_cast<std::size_t>(from + static_cast<std::int64_t>(i) * stride)));
    std::iota(order.begin(), order.end(), std::int64_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      const double left = values[static_cast<std::size_t>(a)];
      const double right = values[static_cast<std::size_t>(b)];
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
constexpr auto kReverseSequence = [](OperatorContext& context) {
  const Integers& shape = context.input_shape(0);
  const std::size_t batch = front_axis(context.attributes().integer("batch_axis", 1), shape.size());
  const std::size_t time = front_axis(context.attributes().integer("time_axis", 0), shape.size());
  const Integers strides = strides_of(shape);
  const ElementMover move(context, 0, 0);
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

KernelTable indexing_kernels() {
  static constexpr KernelEntry kEntries[]{
      kernel("", ops::TopK, kTopK),
      kernel("", ops::ReverseSequence, kReverseSequence),
      kernel("", ops::Gather, kGather),
      kernel("", ops::GatherElements, kGather),
      kernel(kMonetDomain, ops::ShardGather, kGather),
      kernel(kMonetDomain, ops::GatherGrad, kGatherGrad),
      kernel(kMonetDomain, ops::ShardGatherGrad, kGatherGrad),
      kernel(kMonetDomain, ops::GatherElementsGrad, kGatherGrad),
      kernel("", ops::GatherND, kGatherND),
      kernel("", ops::NonZero, kNonZero),
      kernel(kMonetDomain, ops::GatherNDGrad, kGatherNDGrad),
      kernel("", ops::ScatterND, kScatterND),
      kernel("", ops::ScatterElements, kScatterElements),
      kernel("", ops::Scatter, kScatterElements),
  };
  return kEntries;
}

} // namespace monet
