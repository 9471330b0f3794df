// Moves an array of cells through layout operators. The edges over layout operators
// (layout_edges.cpp) call this.
#include "reference/stream/tiles/layout_walk.hpp"

#include <algorithm>
#include <numeric>

namespace monet::stream {

namespace {

std::int64_t size_along(const Shape& shape, std::size_t axis) {
  return axis < shape.size() ? shape[axis] : 0;
}

} // namespace

Interval python_slice(std::int64_t begin, std::int64_t end, std::int64_t size) {
  const auto bound = [&](std::int64_t value) {
    return std::clamp<std::int64_t>(value < 0 ? value + size : value, 0, size);
  };
  return {bound(begin), bound(end)};
}

bool LayoutWalk::pass(const std::vector<std::uint32_t>& path, std::size_t at) {
  const Node& node = network_.nodes[path[at]];
  const Operator& op = graph_.op(node.op);
  switch (node.kind) {
  case NodeKind::compute:
    return stop("a layer on the way");
  case NodeKind::dummy:
    return pass_dummy(op);
  case NodeKind::transpose:
    return pass_transpose(op);
  case NodeKind::reshape:
    return pass_reshape(op);
  case NodeKind::flatten:
    return pass_flatten(op);
  case NodeKind::gather:
    return pass_gather(op, path[at - 1]);
  case NodeKind::slice:
    return pass_slice(op);
  case NodeKind::split:
    return pass_split(op, path[at + 1]);
  case NodeKind::concat:
    return pass_concat(op, path[at - 1]);
  }
  return stop("unknown node");
}

bool LayoutWalk::stop(std::string why) {
  stopped = std::move(why);
  return false;
}

bool LayoutWalk::reshape(Shape shape) {
  if (element_count(shape) != static_cast<std::int64_t>(array.cells.size()))
    return stop("a reshape whose sizes do not fit the rounded ones");
  array.shape = std::move(shape);
  if (exact_)
    relevant.assign(array.shape.size(), true);
  return true;
}

/// Marks an axis as relevant. Negative axes count from the end of the reference's list.
bool LayoutWalk::mark(std::int64_t axis) {
  const auto count = static_cast<std::int64_t>(relevant.size());
  if (axis < 0)
    axis += count;
  if (axis < 0 || axis >= count)
    return stop("an axis that the layer lacks");
  relevant[static_cast<std::size_t>(axis)] = true;
  return true;
}

std::optional<std::size_t> LayoutWalk::from_front(std::int64_t axis) {
  const auto rank = static_cast<std::int64_t>(array.shape.size());
  const std::int64_t place = axis < 0 ? axis + rank : axis;
  if (place >= 0 && place < rank)
    return static_cast<std::size_t>(place);
  stop("an axis that the tensor lacks");
  return std::nullopt;
}

bool LayoutWalk::take(std::int64_t axis, const std::vector<std::uint32_t>& places) {
  const std::optional<std::size_t> at = from_front(axis);
  if (!at)
    return false;
  const std::size_t other =
      array.cells.size() / static_cast<std::size_t>(std::max<std::int64_t>(array.shape[*at], 1));
  if (places.size() > kMaxCells || other * places.size() > kMaxCells)
    return stop("a tensor too large to be followed");
  array = array.picked(*at, places);
  return mark(axis);
}

std::optional<Shape> LayoutWalk::constant(const Operator& op, std::size_t input) const {
  if (input >= op.inputs.size() || !op.inputs[input])
    return std::nullopt;
  const auto& values = graph_.tensor(*op.inputs[input]).values;
  const auto* numbers = values ? std::get_if<std::vector<std::int64_t>>(&*values) : nullptr;
  return numbers == nullptr ? std::nullopt : std::optional(*numbers);
}

bool LayoutWalk::made_by(std::optional<TensorId> tensor, std::uint32_t node) const {
  return tensor && graph_.tensor(*tensor).producer == network_.nodes[node].op;
}

/// The attribute `axis`. If it is omitted, the reference uses the last axis, unlike ONNX.
std::int64_t LayoutWalk::axis_of(const Operator& op, std::int64_t usual) const {
  return op.attributes.integer("axis", exact_ ? usual : -1);
}

bool LayoutWalk::pass_dummy(const Operator& op) {
  if (!exact_ || op.outputs.empty() || !op.outputs[0])
    return true;
  const Shape& shape = graph_.tensor(*op.outputs[0]).shape;
  return shape == array.shape || reshape(shape);
}

bool LayoutWalk::pass_transpose(const Operator& op) {
  Shape order = op.attributes.integers("perm");
  if (order.empty()) {
    if (!exact_)
      return stop("a transpose without perm");
    order.resize(array.shape.size());
    std::iota(order.rbegin(), order.rend(), 0);
  }
  if (order.size() != array.shape.size())
    return stop("a transpose of another number of axes than the layer has");
  std::vector<std::size_t> axes;
  for (const std::int64_t axis : order) {
    if (axis < 0 || axis >= static_cast<std::int64_t>(order.size()) || !mark(axis))
      return stop("an axis that the layer lacks");
    axes.push_back(static_cast<std::size_t>(axis));
  }
  array = array.transposed(axes);
  return true;
}

bool LayoutWalk::pass_reshape(const Operator& op) {
  Shape shape = graph_.tensor(*op.outputs[0]).shape;
  shape.erase(std::remove(shape.begin(), shape.end(), 0), shape.end());
  if (shape.empty())
    return true;
  const Shape old = array.shape;
  if (!reshape(shape))
    return false;
  if (exact_)
    return true;
  // The reference compares old and new sizes by position; for fewer axes it drops one first.
  if (shape.size() < old.size()) {
    std::size_t cut = 0;
    while (cut < shape.size() && old[cut] == shape[cut])
      ++cut;
    cut = cut < shape.size() ? cut : old.size() - 1;
    if (cut >= relevant.size())
      return stop("an axis that the layer lacks");
    relevant.erase(relevant.begin() + static_cast<std::ptrdiff_t>(cut));
    if (cut < shape.size())
      shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(cut));
    else
      return stop("a reshape that drops the last axis"); // the reference cannot drop it
  } else if (shape.size() > old.size()) {
    relevant.push_back(old.empty() || shape.back() != old.back());
  }
  for (std::size_t i = 0; i < std::min(old.size(), shape.size()); ++i) {
    if (old[i] != shape[i] && !mark(static_cast<std::int64_t>(i)))
      return false;
  }
  return true;
}

bool LayoutWalk::pass_flatten(const Operator& op) {
  const auto rank = static_cast<std::int64_t>(array.shape.size());
  std::int64_t axis = axis_of(op, 1);
  axis = std::clamp<std::int64_t>(axis < 0 ? axis + rank : axis, 0, rank);
  const std::int64_t rows = element_count({array.shape.begin(), array.shape.begin() + axis});
  const auto all = static_cast<std::int64_t>(array.cells.size());
  array.shape = {rows, rows == 0 ? 0 : all / rows};
  relevant.assign(2, true);
  return true;
}

bool LayoutWalk::pass_gather(const Operator& op, std::uint32_t previous) {
  if (op.inputs.size() < 2 || !made_by(op.inputs[0], previous))
    return stop("indices that a layer makes");
  const std::optional<Shape> indices = constant(op, 1);
  if (!indices)
    return stop("unknown indices");
  const std::int64_t axis = axis_of(op, 0);
  const std::optional<std::size_t> at = from_front(axis);
  if (!at)
    return false;
  const std::size_t index_axes = graph_.tensor(*op.inputs[1]).shape.size();
  if (index_axes > 1 || (index_axes == 0 && !exact_))
    return stop("indices that are no list");
  const std::int64_t size = array.shape[*at];
  std::vector<std::uint32_t> places;
  for (const std::int64_t index : *indices) {
    const std::int64_t place = index < 0 ? index + size : index;
    places.push_back(place < 0 || place >= size ? kNone : static_cast<std::uint32_t>(place));
  }
  if (!take(axis, places))
    return false;
  if (index_axes == 0) {
    Shape shape = array.shape;
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(*at));
    return reshape(std::move(shape));
  }
  return true;
}

bool LayoutWalk::pass_slice(const Operator& op) {
  const std::optional<Shape> begins = constant(op, 1);
  const std::optional<Shape> ends = constant(op, 2);
  if (!begins || !ends || begins->size() != ends->size())
    return stop("unknown bounds");
  Shape axes(begins->size());
  std::iota(axes.begin(), axes.end(), 0);
  axes = constant(op, 3).value_or(axes);
  const Shape steps = constant(op, 4).value_or(Shape(begins->size(), 1));
  if (axes.size() != begins->size() || steps.size() != begins->size())
    return stop("unknown bounds");
  // The reference uses only the first axis.
  for (std::size_t i = 0; i < (exact_ ? axes.size() : std::min<std::size_t>(axes.size(), 1)); ++i) {
    const std::optional<std::size_t> axis = from_front(axes[i]);
    if (!axis || steps[i] == 0)
      return stop("an axis that the tensor lacks");
    const std::int64_t size = array.shape[*axis];
    if (!exact_ && (op.inputs.size() != 5 || (*ends)[i] < 0))
      return stop("a slice up to a place counted from the end, or without axes or steps");
    std::vector<std::uint32_t> places;
    if (steps[i] > 0) {
      const Interval range = python_slice((*begins)[i], (*ends)[i], size);
      for (std::int64_t at = range.begin; at < range.end; at += std::min(steps[i], size))
        places.push_back(static_cast<std::uint32_t>(at));
    } else {
      const std::int64_t first =
          std::min((*begins)[i] < 0 ? (*begins)[i] + size : (*begins)[i], size - 1);
      const std::int64_t last =
          std::max<std::int64_t>((*ends)[i] < 0 ? (*ends)[i] + size : (*ends)[i], -1);
      for (std::int64_t at = first; at > last && at >= 0; at += std::max(steps[i], -size))
        places.push_back(static_cast<std::uint32_t>(at));
    }
    if (!take(axes[i], places))
      return false;
  }
  return true;
}

bool LayoutWalk::pass_split(const Operator& op, std::uint32_t next) {
  const std::int64_t axis = axis_of(op, 0);
  const std::optional<std::size_t> at = from_front(axis);
  if (!at)
    return false;
  if (!exact_ && std::ranges::none_of(op.inputs, [&](const auto& input) {
        return input && lower_case(graph_.tensor(*input).name).find("split") != std::string::npos;
      }))
    return stop("a split without an input of that name");
  const Operator& reader = graph_.op(network_.nodes[next].op);
  // The first output that the next node reads. The reference ignores further ones.
  std::int64_t begin = 0;
  for (const std::optional<TensorId>& output : op.outputs) {
    if (!output)
      continue;
    const std::int64_t size = size_along(graph_.tensor(*output).shape, *at);
    if (std::ranges::find(reader.inputs, output) != reader.inputs.end()) {
      const Interval range = python_slice(begin, begin + size, array.shape[*at]);
      std::vector<std::uint32_t> places(static_cast<std::size_t>(range.size()));
      std::iota(places.begin(), places.end(), static_cast<std::uint32_t>(range.begin));
      return take(axis, places);
    }
    begin += size;
  }
  return stop("a split that the next node does not read");
}

bool LayoutWalk::pass_concat(const Operator& op, std::uint32_t previous) {
  const std::int64_t axis = axis_of(op, 0);
  const std::optional<std::size_t> at = from_front(axis);
  if (!at)
    return false;
  const auto along = [&](TensorId tensor) { return size_along(graph_.tensor(tensor).shape, *at); };
  std::vector<std::uint32_t> places;
  const auto add = [&](std::int64_t count, bool filled) {
    for (std::int64_t i = 0; i < count && places.size() <= kMaxCells; ++i)
      places.push_back(filled ? static_cast<std::uint32_t>(i) : kNone);
  };
  const std::int64_t own = array.shape[*at];
  if (exact_) {
    for (const std::optional<TensorId>& input : op.inputs) {
      if (input)
        add(made_by(input, previous) ? own : along(*input), made_by(input, previous));
    }
    return take(axis, places);
  }
  // The reference finds one constant input, by its name, and always puts it first.
  for (std::size_t i = 0; i < std::min<std::size_t>(op.inputs.size(), 2); ++i) {
    if (!op.inputs[i] || graph_.tensor(*op.inputs[i]).producer)
      continue;
    const std::string name = lower_case(graph_.tensor(*op.inputs[i]).name);
    if (name.find("constant") == std::string::npos)
      continue;
    Shape constant_shape = graph_.tensor(*op.inputs[i]).shape;
    if (constant_shape.size() == array.shape.size())
      constant_shape[*at] = own;
    if (constant_shape != array.shape)
      return stop("a concatenation of other sizes");
    add(along(*op.inputs[i]), false);
    add(own, true);
    return take(axis, places);
  }
  return stop("a concatenation of results");
}

} // namespace monet::stream
