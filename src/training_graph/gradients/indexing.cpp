// Operators that pick, place or join parts: Gather, Scatter, Slice, Pad, Concat, Split.
#include "training_graph/gradients/rules.hpp"
#include "workload/shared/op_types.hpp"

#include <algorithm>
#include <numeric>

namespace monet {

namespace {

TensorId pad(GradientContext& context, TensorId tensor, const Integers& before,
             const Integers& shape) {
  const Integers from = context.graph().tensor(tensor).shape;
  if (from == shape)
    return tensor;
  Integers pads = before;
  for (std::size_t i = 0; i < shape.size(); ++i)
    pads.push_back(shape[i] - from[i] - before[i]);
  return context.emit_value({ops::Pad, {tensor, context.integers(pads)}}, shape);
}

/// dY is the gradient of the rows that were looked up, index by index.
void look_up(GradientContext& context) {
  Integers values = context.input_shape(0);
  values[0] = 1;
  for (const std::int64_t extent : context.input_shape(1))
    values[0] *= extent;
  const TensorId rows = context.reshape(context.input(1), {values[0]});
  context.give_rows(0, context.reshape(context.dy(), values), rows);
}

/// Embedding: rows of dY are added into the rows of a dense zero-filled gradient. Picking one known
/// index along an axis is a slice, whose gradient is dY between zeros.
void gather(GradientContext& context) {
  const Integers shape = context.input_shape(0);
  const std::size_t axis = normal_axis(context.op().attributes.integer("axis", 0), shape.size());
  if (context.takes_rows(0))
    return look_up(context);
  const auto index = known_integers(context.graph(), context.op(), 1);
  if (index && index->size() == 1) {
    Integers one = shape;
    one[axis] = 1;
    Integers before(shape.size(), 0);
    before[axis] = index->front() < 0 ? index->front() + shape[axis] : index->front();
    context.give(0, pad(context, context.reshape(context.dy(), one), before, shape));
    return;
  }
  context.emit({ops::GatherGrad,
                {context.dy(), context.input(1)},
                {{"axis", static_cast<std::int64_t>(axis)}}});
}

/// First element and step of every axis.
struct SliceRange {
  Integers starts;
  Integers steps;
};

SliceRange slice_range(const Graph& graph, const Operator& op) {
  const Integers& shape = graph.tensor(*op.inputs[0]).shape;
  const Integers starts = known_integers(graph, op, 1).value();
  Integers axes(starts.size());
  std::iota(axes.begin(), axes.end(), std::int64_t{0});
  if (const auto given = known_integers(graph, op, 3))
    axes = *given;
  const Integers steps = known_integers(graph, op, 4).value_or(Integers(starts.size(), 1));
  SliceRange range{Integers(shape.size(), 0), Integers(shape.size(), 1)};
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::size_t axis = normal_axis(axes[i], shape.size());
    const std::int64_t start = starts[i] < 0 ? starts[i] + shape[axis] : starts[i];
    const std::int64_t last = steps[i] > 0 ? shape[axis] : shape[axis] - 1;
    range.starts[axis] = std::min(std::max<std::int64_t>(start, 0), last);
    range.steps[axis] = steps[i];
  }
  return range;
}

/// dY between zeros, spread out where the slice skipped or reversed elements.
void slice(GradientContext& context) {
  const SliceRange range = slice_range(context.graph(), context.op());
  const bool dense = std::ranges::all_of(range.steps, [](std::int64_t step) { return step == 1; });
  if (dense) {
    context.give(0, pad(context, context.dy(), range.starts, context.input_shape(0)));
    return;
  }
  context.emit(
      {ops::SliceGrad, {context.dy()}, {{"starts", range.starts}, {"steps", range.steps}}});
}
std::string refuse_slice(const Graph& graph, const Operator& op) {
  for (std::size_t i = 1; i < op.inputs.size(); ++i) {
    if (op.inputs[i] && !known_integers(graph, op, i))
      return "Slice has a gradient only when its starts, ends, axes and steps are constants";
  }
  return {};
}

/// A part of dY as a view.
TensorId take(GradientContext& context, const Integers& starts, const Integers& shape) {
  Integers ends(starts.size());
  Integers axes(starts.size());
  for (std::size_t i = 0; i < starts.size(); ++i) {
    ends[i] = starts[i] + shape[i];
    axes[i] = static_cast<std::int64_t>(i);
  }
  if (context.dy_shape() == shape)
    return context.dy();
  return context.emit_value(
      {ops::Slice,
       {context.dy(), context.integers(starts), context.integers(ends), context.integers(axes)}},
      shape);
}

/// Constant borders: dY without them; what a negative pad cut off is zero. Other borders: their
/// gradients belong to the elements they repeat.
void pad_rule(GradientContext& context) {
  const Integers shape = context.input_shape(0);
  Integers pads = known_integers(context.graph(), context.op(), 1).value();
  const std::string mode = context.op().attributes.text("mode", "constant");
  if (mode != "constant") {
    context.emit({ops::PadGrad, {context.dy()}, {{"pads", pads}, {"mode", mode}}});
    return;
  }
  const bool cuts = std::ranges::any_of(pads, [](std::int64_t v) { return v < 0; });
  if (cuts) {
    for (std::int64_t& amount : pads)
      amount = -amount;
    context.emit({ops::Pad, {context.dy(), context.integers(pads)}});
    return;
  }
  pads.resize(shape.size());
  context.give(0, take(context, pads, shape));
}
std::string refuse_pad(const Graph& graph, const Operator& op) {
  if (op.inputs.size() > 3 && op.inputs[3])
    return "Pad has a gradient only without input 'axes'";
  const auto pads = known_integers(graph, op, 1);
  if (!pads || pads->size() != 2 * graph.tensor(*op.inputs[0]).shape.size()) {
    return "Pad has a gradient only when its pads are constants for every axis";
  }
  return {};
}

void concat(GradientContext& context) {
  const std::size_t inputs = context.op().inputs.size();
  const Integers whole = context.dy_shape();
  const std::size_t axis = normal_axis(context.op().attributes.integer("axis", 0), whole.size());
  Integers starts(whole.size(), 0);
  for (std::size_t i = 0; i < inputs; ++i) {
    const Integers shape = context.input_shape(i);
    if (context.wants(i))
      context.give(i, take(context, starts, shape));
    starts[axis] += shape[axis];
  }
}

/// Joins the gradients of the parts; an unused part has gradient zero.
void split(GradientContext& context) {
  const Integers shape = context.input_shape(0);
  const auto axis = static_cast<std::int64_t>(
      normal_axis(context.op().attributes.integer("axis", 0), shape.size()));
  std::vector<std::optional<TensorId>> parts;
  for (std::size_t i = 0; i < context.op().outputs.size(); ++i) {
    auto part = context.gradient_of_output(i);
    if (!part)
      part = context.expand(context.scalar(0.0), context.graph().tensor(context.output(i)).shape);
    parts.push_back(part);
  }
  context.emit({ops::Concat, std::move(parts), {{"axis", axis}}});
}

/// dY is added where the indices point.
void gather_elements(GradientContext& context) {
  context.emit({ops::GatherElementsGrad,
                {context.dy(), context.input(1)},
                {{"axis", context.op().attributes.integer("axis", 0)}}});
}
/// The chosen elements receive dY.
void top_k(GradientContext& context) {
  context.emit({ops::GatherElementsGrad,
                {context.dy(), context.output(1)},
                {{"axis", context.op().attributes.integer("axis", -1)}}});
}
std::string refuse_top_k(const Graph&, const Operator& op) {
  return op.outputs.size() > 1 && op.outputs[1] ? std::string()
                                                : "TopK has a gradient only with its indices";
}

/// Reversed once more, everything is where it was.
void reverse_sequence(GradientContext& context) {
  context.emit({ops::ReverseSequence, {context.dy(), context.input(1)}, context.op().attributes});
}

void gather_nd(GradientContext& context) {
  context.emit({ops::GatherNDGrad,
                {context.dy(), context.input(1)},
                {{"batch_dims", context.op().attributes.integer("batch_dims", 0)}}});
}

/// Data: dY, with zeros where updates have replaced it. Updates: dY where they went.
void scatter(GradientContext& context) {
  const bool by_element = context.op().op_type != ops::ScatterND;
  const Attributes of_op = context.op().attributes;
  const Integers updates = context.input_shape(2);
  Attributes axis;
  if (by_element)
    axis.set("axis", of_op.integer("axis", 0));
  if (context.wants(2))
    context.emit(
        {by_element ? ops::GatherElements : ops::GatherND, {context.dy(), context.input(1)}, axis},
        {2});
  if (!context.wants(0))
    return;
  if (of_op.text("reduction", "none") == "add") {
    context.give(0, context.dy());
    return;
  }
  const TensorId zeros = context.expand(context.scalar(0.0), updates);
  context.emit({by_element ? ops::ScatterElements : ops::ScatterND,
                {context.dy(), context.input(1), zeros},
                axis});
}
std::string refuse_scatter(const Graph&, const Operator& op) {
  const std::string reduction = op.attributes.text("reduction", "none");
  return reduction == "none" || reduction == "add"
             ? std::string()
             : op.op_type.str() + " has a gradient only with reduction 'none' or 'add'";
}

} // namespace

std::vector<GradientRule> indexing_gradients() {
  return {
      {ops::Gather, gather},
      {ops::GatherElements, gather_elements},
      {ops::GatherND, gather_nd},
      {ops::TopK, top_k, refuse_top_k, 1},
      {ops::ReverseSequence, reverse_sequence},
      {ops::Scatter, scatter, refuse_scatter},
      {ops::ScatterElements, scatter, refuse_scatter},
      {ops::ScatterND, scatter, refuse_scatter},
      {ops::Slice, slice, refuse_slice},
      {ops::Pad, pad_rule, refuse_pad},
      {ops::Concat, concat},
      {ops::Split, split},
  };
}

} // namespace monet
