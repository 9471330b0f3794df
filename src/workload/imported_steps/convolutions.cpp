// Recognises weight and input gradients of convolutions in imported training steps: ConvTranspose
// of dY, and a product of dY with patches that Gathers collect. foreign.cpp calls it.
//
//   patches = Gather(... Gather(Pad(X), index_1, axis 2) ..., index_n, axis 2n)
//             [B, C, F1, O1, ...]
//   dW = Reshape(ReduceSum(MatMul(Reshape(dY) [B, K, O],
//                                 Reshape(Transpose(patches)) [B, O, C*F]), 0))
#include "workload/imported_steps/parts.hpp"
#include "workload/shared/op_types.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace monet::foreign {

namespace {

using Sizes = Integers;

/// Geometry of a convolution over the axes after batch and channel.
struct Geometry {
  Sizes strides;
  Sizes dilations;
  Sizes pads; ///< begins, then ends
  std::int64_t group = 1;

  friend bool operator==(const Geometry&, const Geometry&) = default;
};

std::optional<Geometry> geometry_of(const Operator& op, std::size_t axes) {
  const std::string padding = op.attributes.text("auto_pad", "NOTSET");
  if (padding != "NOTSET" && padding != "VALID" && !padding.empty())
    return std::nullopt;
  Geometry geometry;
  geometry.strides = op.attributes.integers("strides", Sizes(axes, 1));
  geometry.dilations = op.attributes.integers("dilations", Sizes(axes, 1));
  geometry.pads = op.attributes.integers("pads", Sizes(2 * axes, 0));
  geometry.group = op.attributes.integer("group", 1);
  return geometry;
}

const Sizes& shape_of(const Graph& graph, TensorId id) {
  return graph.tensor(id).shape;
}

std::size_t spatial_axes(const Sizes& shape) {
  return shape.size() < 3 ? 0 : shape.size() - 2;
}

/// Shapes of a convolution's input, weight and result.
struct ConvolutionShapes {
  Sizes x;
  Sizes weight;
  Sizes y;
};

/// Finds a convolution of the forward phase that reads `shared` and has this geometry and these
/// shapes.
std::optional<OpId> find_convolution(const Graph& graph, const std::vector<Phase>& phases,
                                     TensorId shared, const Geometry& geometry,
                                     const ConvolutionShapes& shapes) {
  for (const OpId id : graph.tensor(shared).consumers) {
    const Operator& op = graph.op(id);
    if (op.op_type != ops::Conv || phases[id.index()] != Phase::forward)
      continue;
    if (shape_of(graph, *op.inputs[0]) == shapes.x &&
        shape_of(graph, *op.inputs[1]) == shapes.weight &&
        shape_of(graph, *op.outputs[0]) == shapes.y &&
        geometry_of(op, spatial_axes(shapes.x)) == geometry)
      return id;
  }
  return std::nullopt;
}

Operator gradient_operator(const Operator& last, OpType op_type, GradientOf of,
                           const Geometry& geometry, const Sizes& weight,
                           std::optional<OpId> forward) {
  return {.name = last.name,
          .op_type = std::string(op_type),
          .domain = std::string(kMonetDomain),
          .attributes = {{"strides", geometry.strides},
                         {"dilations", geometry.dilations},
                         {"pads", geometry.pads},
                         {"group", geometry.group},
                         {"kernel_shape", Sizes(weight.begin() + 2, weight.end())}},
          .outputs = {last.outputs[0]},
          .phase = Phase::backward,
          .gradient_of = of,
          .forward_op = forward};
}

Match refused(std::string why) {
  return {std::nullopt, std::move(why)};
}

/// Operators of a chain that begins at a MatMul; tensor ids are inputs unless noted otherwise.
struct Chain {
  const Operator* product = nullptr;
  const Operator* transpose = nullptr;
  std::vector<const Operator*> gathers; ///< in the order of axes
  const Operator* pad = nullptr;        ///< null without padding
  OpId last;                            ///< the Reshape to the weight's shape
  TensorId x;
  TensorId dy;
  int operators = 0;
};

std::optional<OpId> only_reader(const Graph& graph, TensorId id, OpType op_type) {
  const std::vector<OpId>& readers = graph.tensor(id).consumers;
  if (readers.size() != 1 || graph.op(readers[0]).op_type != op_type)
    return std::nullopt;
  return readers[0];
}

/// Follows the product to the gradient. Returns a reason if the chain does not match, otherwise an
/// empty string.
std::string follow_result(const Graph& graph, Chain& chain) {
  const auto sum = only_reader(graph, *chain.product->outputs[0], ops::ReduceSum);
  if (!sum || known_integers(graph, graph.op(*sum), 1) != Sizes{0})
    return "the product is not summed over the batch alone";
  const auto last = only_reader(graph, *graph.op(*sum).outputs[0], ops::Reshape);
  if (!last)
    return "the sum does not become the weight's shape";
  chain.last = *last;
  return {};
}

/// Follows the patches to the input. Returns a reason if the chain does not match, otherwise an
/// empty string.
std::string follow_patches(const Graph& graph, Chain& chain) {
  const Operator* flat = made_by(graph, chain.product->inputs[1], ops::Reshape);
  const Operator* dy = made_by(graph, chain.product->inputs[0], ops::Reshape);
  if (!dy)
    return "the first operand is not a reshaped gradient";
  if (!flat)
    return "its patches are not collected from an input";
  chain.dy = *dy->inputs[0];
  const std::size_t axes = spatial_axes(shape_of(graph, chain.dy));
  chain.transpose = made_by(graph, flat->inputs[0], ops::Transpose);
  if (!chain.transpose || axes == 0)
    return "the patches are not transposed";
  std::optional<TensorId> at = chain.transpose->inputs[0];
  for (std::size_t i = axes; i-- > 0;) {
    const Operator* gather = made_by(graph, at, ops::Gather);
    if (!gather || gather->attributes.integer("axis", 0) != static_cast<std::int64_t>(2 + 2 * i))
      return fmt::format("no Gather collects the windows of axis {}", i);
    chain.gathers.insert(chain.gathers.begin(), gather);
    at = gather->inputs[0];
  }
  chain.pad = made_by(graph, at, ops::Pad);
  chain.x = chain.pad ? *chain.pad->inputs[0] : *at;
  // two reshapes of operands, transpose, product, sum, reshape
  chain.operators = 6 + static_cast<int>(axes) + (chain.pad ? 1 : 0);
  return {};
}

/// Padding of X in a convolution's form; nullopt if the Pad does not match a convolution.
std::optional<Sizes> padding_of(const Graph& graph, const Operator* pad, std::size_t axes) {
  if (!pad)
    return Sizes(2 * axes, 0);
  const auto pads = known_integers(graph, *pad, 1);
  if (!pads || pads->size() != 2 * (axes + 2) ||
      pad->attributes.text("mode", "constant") != "constant" || pad->inputs.size() > 2)
    return std::nullopt;
  const auto begin = pads->begin();
  const auto half = static_cast<std::ptrdiff_t>(axes + 2);
  const bool others = begin[0] != 0 || begin[1] != 0 || begin[half] != 0 || begin[half + 1] != 0 ||
                      std::ranges::any_of(*pads, [](std::int64_t value) { return value < 0; });
  if (others)
    return std::nullopt;
  Sizes result(begin + 2, begin + half);
  result.insert(result.end(), begin + half + 2, pads->end());
  return result;
}

enum class Table { windows, one_window, unknown, other };

/// Compares `table` [F, O] with stride * o + dilation * f.
Table check_table(const std::optional<Sizes>& table, std::int64_t kernel, std::int64_t places,
                  std::int64_t stride, std::int64_t dilation) {
  if (!table)
    return Table::unknown;
  if (static_cast<std::int64_t>(table->size()) != kernel * places)
    return Table::other;
  bool windows = true;
  bool last_only = true;
  for (std::int64_t f = 0; f < kernel; ++f) {
    for (std::int64_t o = 0; o < places; ++o) {
      const std::int64_t value = (*table)[static_cast<std::size_t>(f * places + o)];
      windows = windows && value == stride * o + dilation * f;
      last_only = last_only && value == stride * (places - 1) + dilation * f;
    }
  }
  return windows ? Table::windows : last_only ? Table::one_window : Table::other;
}

/// Strides and dilations from the index tables; 1 if a table has no numbers or a single entry along
/// the axis.
void read_steps(const Graph& graph, const Chain& chain, Geometry& geometry) {
  for (const Operator* gather : chain.gathers) {
    const auto table = known_integers(graph, *gather, 1);
    const Sizes& shape = shape_of(graph, *gather->inputs[1]);
    const bool rows = table && shape.size() == 2;
    geometry.strides.push_back(rows && shape[1] > 1 ? (*table)[1] - (*table)[0] : 1);
    geometry.dilations.push_back(
        rows && shape[0] > 1 ? (*table)[static_cast<std::size_t>(shape[1])] - (*table)[0] : 1);
  }
}

/// Whether the patches' axes after transposing are batch, places, channel, kernel, ignoring axes of
/// size 1.
bool in_order(const Graph& graph, const Operator& transpose, std::size_t axes) {
  const Sizes perm = transpose.attributes.integers("perm");
  const Sizes& shape = shape_of(graph, *transpose.inputs[0]); // [B, C, F1, O1, F2, O2, ...]
  Sizes wanted{0};
  for (std::size_t i = 0; i < axes; ++i)
    wanted.push_back(static_cast<std::int64_t>(3 + 2 * i));
  wanted.push_back(1);
  for (std::size_t i = 0; i < axes; ++i)
    wanted.push_back(static_cast<std::int64_t>(2 + 2 * i));
  const auto drop = [&](Sizes order) {
    std::erase_if(order,
                  [&](std::int64_t axis) { return shape[static_cast<std::size_t>(axis)] == 1; });
    return order;
  };
  return perm.size() == wanted.size() && drop(perm) == drop(wanted);
}

std::string join(const std::vector<std::string>& parts) {
  return fmt::format("{}", fmt::join(parts, "; "));
}

/// Differences between the file's arithmetic and the gradient of this geometry; nullopt if it is
/// not such a gradient.
std::optional<std::vector<std::string>> deviations(const Graph& graph, const Chain& chain,
                                                   const Geometry& geometry, const Sizes& weight,
                                                   const Sizes& dy) {
  std::vector<std::string> found;
  for (std::size_t i = 0; i < chain.gathers.size(); ++i) {
    const Table table = check_table(known_integers(graph, *chain.gathers[i], 1), weight[2 + i],
                                    dy[2 + i], geometry.strides[i], geometry.dilations[i]);
    if (table == Table::other)
      return std::nullopt;
    if (table == Table::one_window)
      found.push_back(fmt::format("all indices along axis {} name the last window", 2 + i));
    if (table == Table::unknown)
      found.push_back(fmt::format("the indices along axis {} have no numbers", 2 + i));
  }
  if (!in_order(graph, *chain.transpose, chain.gathers.size()))
    found.emplace_back("the patches' order is not that of the weight");
  return found;
}

} // namespace

Match match_input_gradient(const Graph& graph, const std::vector<Phase>& phases, OpId id) {
  const Operator& op = graph.op(id);
  const Sizes& dy = shape_of(graph, *op.inputs[0]);
  const Sizes& weight = shape_of(graph, *op.inputs[1]);
  const Sizes& dx = shape_of(graph, *op.outputs[0]);
  const auto geometry = geometry_of(op, spatial_axes(dx));
  if (!geometry || op.attributes.has("output_shape"))
    return refused("its padding follows from its shape");
  if (op.inputs.size() > 2 && op.inputs[2])
    return refused("it adds a bias");
  const auto forward = find_convolution(graph, phases, *op.inputs[1], *geometry, {dx, weight, dy});
  if (!forward)
    return refused("no convolution of the forward phase has its weight and geometry");
  Replacement made{
      id,
      gradient_operator(op, ops::ConvGradInput, GradientOf::input, *geometry, weight, forward),
      {op.name, GradientOf::input, 1, ""}};
  made.made.inputs = {op.inputs[0], op.inputs[1]};
  return {std::move(made), ""};
}

bool is_kernel_product(const Graph& graph, const Operator& op) {
  Chain chain;
  chain.product = &op;
  return follow_result(graph, chain).empty() &&
         spatial_axes(shape_of(graph, *graph.op(chain.last).outputs[0])) > 0;
}

Match match_weight_gradient(const Graph& graph, const std::vector<Phase>& phases, OpId id) {
  Chain chain;
  chain.product = &graph.op(id);
  if (std::string why = follow_patches(graph, chain); !why.empty())
    return refused(std::move(why));
  if (std::string why = follow_result(graph, chain); !why.empty())
    return refused(std::move(why));
  const Operator& last = graph.op(chain.last);
  const Sizes& weight = shape_of(graph, *last.outputs[0]);
  const Sizes& dy = shape_of(graph, chain.dy);
  const Sizes& x = shape_of(graph, chain.x);
  const std::size_t axes = chain.gathers.size();
  const auto pads = padding_of(graph, chain.pad, axes);
  if (!pads)
    return refused("the input's padding is not that of a convolution");
  const bool shapes = weight.size() == axes + 2 && x.size() == axes + 2 && dy[0] == x[0] &&
                      weight[0] == dy[1] && weight[1] == x[1];
  if (!shapes)
    return refused("the shapes are not those of a convolution");

  Geometry geometry{{}, {}, *pads, 1};
  read_steps(graph, chain, geometry);
  auto deviation = deviations(graph, chain, geometry, weight, dy);
  std::optional<OpId> forward;
  if (!deviation || !deviation->empty()) {
    // The tables do not suffice as evidence: a convolution with this result must exist.
    for (const OpId reader : graph.tensor(chain.x).consumers) {
      const auto its = graph.op(reader).op_type == ops::Conv ? geometry_of(graph.op(reader), axes)
                                                             : std::nullopt;
      if (!its || its->pads != *pads || its->group != 1)
        continue;
      forward = find_convolution(graph, phases, chain.x, *its, {x, weight, dy});
      deviation = deviations(graph, chain, *its, weight, dy);
      geometry = *its;
      if (forward && deviation)
        break;
    }
    if (!deviation)
      return refused("the indices are those of no convolution");
    if (!forward)
      return refused("no convolution of the forward phase reads this input with this geometry (" +
                     join(*deviation) + ")");
  } else {
    forward = find_convolution(graph, phases, chain.x, geometry, {x, weight, dy});
  }
  Replacement made{
      chain.last,
      gradient_operator(last, ops::ConvGradWeight, GradientOf::weight, geometry, weight, forward),
      {last.name, GradientOf::weight, chain.operators, join(*deviation)}};
  made.made.inputs = {chain.x, chain.dy};
  return {std::move(made), ""};
}

} // namespace monet::foreign
