// Operators of a network in the conventions of ZigZag's ONNX reader: which loops, in which order,
// on which operands. The first spatial entry of kernel_shape, strides and dilations goes with the
// last axis (FX, OX), as there.
#include "base/shared/checked.hpp"
#include "core_cost/files/layer_equation.hpp"
#include "workload/shared/op_types.hpp"

#include "monet/core_cost/layers.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <ranges>
#include <span>

namespace monet {

namespace {

constexpr std::int64_t kMaxAttributeBits = 4096;
constexpr std::int64_t kLargestStep = std::int64_t{1} << 31;

using Shape = std::vector<std::int64_t>;

SourceLoc location_of(const Graph& graph, const Operator& op) {
  return {graph.origin, 0, 0, fmt::format("node '{}' ({})", op.name, op.op_type)};
}

const Shape& shape_of(const Graph& graph, const Operator& op,
                      const std::vector<std::optional<TensorId>>& tensors, std::size_t index) {
  if (index >= tensors.size() || !tensors[index])
    throw InputError(location_of(graph, op), "an input or output is missing");
  return graph.tensor(*tensors[index]).shape;
}

std::int64_t precision(const Graph& graph, const Operator& op, const char* attribute,
                       std::int64_t fallback) {
  if (!op.attributes.has(attribute))
    return fallback;
  const std::int64_t bits = op.attributes.integer(attribute, -1);
  if (bits < 0 || bits > kMaxAttributeBits) {
    throw InputError(location_of(graph, op), fmt::format("attribute '{}' must be 0 to {} bits",
                                                         attribute, kMaxAttributeBits));
  }
  return bits;
}

/// Two values of an attribute, with 1 for the missing one of a convolution over one axis.
std::pair<std::int64_t, std::int64_t> two_steps(const Graph& graph, const Operator& op,
                                                const char* attribute, std::size_t axes) {
  Shape values = op.attributes.integers(attribute, Shape(axes, 1));
  const bool valid = values.size() == axes && std::ranges::all_of(values, [](auto v) {
                       return v >= 1 && v <= kLargestStep;
                     });
  if (!valid) {
    throw InputError(location_of(graph, op),
                     fmt::format("attribute '{}' needs {} values of at least 1", attribute, axes));
  }
  return {values[0], axes == 2 ? values[1] : 1};
}

/// Builds the problem of one layer.
class LayerBuilder {
public:
  LayerBuilder(const Graph& graph, const Operator& op) : graph_(graph), op_(op) {
    layer_.name = op.name;
    layer_.op_type = op.op_type;
    layer_.where = location_of(graph, op);
    layer_.problem.compute = ComputeKind::mac;
  }

  std::uint32_t loop(const char* name, std::int64_t size) {
    if (size < 1)
      throw InputError(layer_.where, fmt::format("loop {} has {} iterations", name, size));
    iterations_ = checked_multiply(iterations_, size);
    layer_.problem.dims.push_back({name, size});
    return static_cast<std::uint32_t>(layer_.problem.dims.size() - 1);
  }

  AxisExpr axis(std::uint32_t dim) const { return {{{dim, 1}}, 0, false}; }

  /// Adds an operand; `extents` of axes with one loop equal that loop's size.
  void operand(const char* role, MemoryOperand memory, std::vector<AxisExpr> axes,
               const Shape& extents = {}) {
    ProblemOperand operand;
    operand.mode = memory == MemoryOperand::O ? AccessMode::write : AccessMode::read;
    operand.memory = memory;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      operand.extents.push_back(axes[i].terms.size() == 1
                                    ? layer_.problem.dims[axes[i].terms[0].dim].size
                                    : extents.at(i));
    }
    operand.axes = std::move(axes);
    layer_.roles.emplace_back(role);
    layer_.problem.operands.push_back(std::move(operand));
  }

  Layer finish(bool constant_weights) {
    const std::int64_t activation = precision(graph_, op_, "act_size", 8);
    const std::int64_t partial = precision(graph_, op_, "output_size", 2 * activation);
    const std::int64_t weight = precision(graph_, op_, "weight_size", 8);
    for (std::size_t i = 0; i < layer_.roles.size(); ++i) {
      ProblemOperand& operand = layer_.problem.operands[i];
      operand.bits = layer_.roles[i] == "W" && constant_weights ? weight : activation;
      operand.partial_bits = layer_.roles[i] == "O" ? partial : operand.bits;
    }
    layer_.constant_weights = constant_weights;
    return std::move(layer_);
  }

private:
  const Graph& graph_;
  const Operator& op_;
  Layer layer_;
  std::int64_t iterations_ = 1;
};

Layer convolution(const Graph& graph, const Operator& op) {
  const Shape& x = shape_of(graph, op, op.inputs, 0);
  const Shape& w = shape_of(graph, op, op.inputs, op.op_type == ops::QLinearConv ? 3 : 1);
  const Shape& y = shape_of(graph, op, op.outputs, 0);
  if (x.size() < 3 || x.size() > 4 || w.size() != x.size() || y.size() != x.size()) {
    throw InputError(location_of(graph, op),
                     fmt::format("a convolution over {} axes; ZigZag's reader accepts two",
                                 x.size() < 2 ? 0 : x.size() - 2));
  }
  const bool flat = x.size() == 3; // one spatial axis: the other has one element
  const auto [stride_x, stride_y] = two_steps(graph, op, "strides", x.size() - 2);
  const auto [dilation_x, dilation_y] = two_steps(graph, op, "dilations", x.size() - 2);
  const std::int64_t groups = std::max<std::int64_t>(1, op.attributes.integer("group", 1));
  const auto per_group = [&](std::int64_t channels) { return (channels + groups - 1) / groups; };

  LayerBuilder layer(graph, op);
  const std::uint32_t b = layer.loop("B", y[0]);
  const std::uint32_t k = layer.loop("K", per_group(y[1]));
  const std::uint32_t g = layer.loop("G", groups);
  const std::uint32_t ox = layer.loop("OX", y.back());
  const std::uint32_t oy = layer.loop("OY", flat ? 1 : y[2]);
  const std::uint32_t c = layer.loop("C", per_group(x[1]));
  const std::uint32_t fx = layer.loop("FX", w[2]);
  const std::uint32_t fy = layer.loop("FY", flat ? 1 : w[3]);
  const AxisExpr ix{{{ox, stride_x}, {fx, dilation_x}}, 0, false};
  const AxisExpr iy{{{oy, stride_y}, {fy, dilation_y}}, 0, false};
  const auto axis = [&](std::uint32_t dim) { return layer.axis(dim); };
  layer.operand("O", MemoryOperand::O, {axis(b), axis(g), axis(k), axis(oy), axis(ox)});
  layer.operand("W", MemoryOperand::I2, {axis(g), axis(k), axis(c), axis(fy), axis(fx)});
  layer.operand("I", MemoryOperand::I1, {axis(b), axis(g), axis(c), iy, ix},
                {1, 1, 1, flat ? 1 : x[2], x.back()});
  return layer.finish(true);
}

/// Number of inputs that nodes of the file make, with repetitions. Folded constants count only if
/// they are not parameters.
std::size_t computed_inputs(const Graph& graph, const Operator& op) {
  return static_cast<std::size_t>(
      std::ranges::count_if(op.inputs, [&](const std::optional<TensorId>& id) {
        return id && (graph.tensor(*id).producer || graph.tensor(*id).kind == TensorKind::constant);
      }));
}

Layer product(const Graph& graph, const Operator& op) {
  Shape x = shape_of(graph, op, op.inputs, 0);
  const Shape& y = shape_of(graph, op, op.outputs, 0);
  const std::size_t rank = x.size();
  if (rank == 2 && op.attributes.integer("transA", 0) != 0)
    std::swap(x[0], x[1]);
  const bool readable =
      rank >= 2 && rank <= 4 && y.size() == rank && std::equal(x.begin(), x.end() - 1, y.begin());
  if (!readable) {
    throw InputError(location_of(graph, op), "ZigZag's reader accepts products of two to four axes "
                                             "whose first input has the output's rows and batch");
  }
  const bool constant_weights = computed_inputs(graph, op) < 2;

  LayerBuilder layer(graph, op);
  const std::uint32_t c = layer.loop("C", x[rank - 1]);
  const std::uint32_t d = layer.loop("D", x[rank - 2]);
  const std::uint32_t k = layer.loop("K", y[rank - 1]);
  std::vector<AxisExpr> batch;
  if (rank >= 3)
    batch.push_back(layer.axis(layer.loop("B", x[0])));
  if (rank == 4)
    batch.push_back(layer.axis(layer.loop("H", x[1])));
  const auto with_batch = [&](bool batched, std::uint32_t row, std::uint32_t column) {
    std::vector<AxisExpr> axes = batched ? batch : std::vector<AxisExpr>{};
    axes.push_back(layer.axis(row));
    axes.push_back(layer.axis(column));
    return axes;
  };
  layer.operand("O", MemoryOperand::O, with_batch(true, d, k));
  layer.operand("I", MemoryOperand::I1, with_batch(true, d, c));
  layer.operand("W", MemoryOperand::I2, with_batch(!constant_weights, c, k));
  return layer.finish(constant_weights);
}

/// The first layers, two at most, since only one and several are distinguished.
using FewLayers = std::vector<std::size_t>;

void add(const FewLayers& layers, FewLayers& to) {
  to.insert(to.end(), layers.begin(), layers.end());
  std::ranges::sort(to);
  to.erase(std::unique(to.begin(), to.end()), to.end());
  to.resize(std::min<std::size_t>(2, to.size()));
}

/// Links layers to the layers whose outputs they read, through operators without cost. `order` and
/// `parents` refer to operators; `layer_of` is the layer of an operator with cost.
void link_layers(std::span<const std::size_t> order,
                 const std::vector<std::vector<std::size_t>>& parents,
                 const std::vector<std::optional<std::size_t>>& layer_of,
                 std::vector<Layer>& layers) {
  std::vector<FewLayers> made_by(parents.size());
  for (const std::size_t i : order) {
    for (const std::size_t parent : parents[i])
      add(layer_of[parent] ? FewLayers{*layer_of[parent]} : made_by[parent], made_by[i]);
    if (layer_of[i])
      layers[*layer_of[i]].makers = made_by[i];
  }
  std::vector<FewLayers> taken_by(parents.size());
  for (const std::size_t i : std::views::reverse(order)) {
    for (const std::size_t parent : parents[i])
      add(layer_of[i] ? FewLayers{*layer_of[i]} : taken_by[i], taken_by[parent]);
    if (layer_of[i])
      layers[*layer_of[i]].takers = taken_by[i];
  }
}

} // namespace

NetworkLayers zigzag_layers(const Graph& graph) {
  NetworkLayers result;
  ProblemList problems;
  std::vector<std::vector<std::size_t>> parents;
  for (const Operator& op : graph.operators()) {
    parents.emplace_back();
    for (const std::optional<TensorId>& input : op.inputs) {
      if (input && graph.tensor(*input).producer)
        parents.back().push_back(graph.tensor(*input).producer->index());
    }
  }
  const std::vector<std::size_t> order = core_cost_detail::by_generation(parents);
  std::vector<std::optional<std::size_t>> layer_of(parents.size());
  for (const std::size_t i : order) {
    const Operator& op = graph.operators()[i];
    const bool convolves = op.op_type == ops::Conv || op.op_type == ops::QLinearConv;
    const bool multiplies = op.op_type == ops::Gemm || op.op_type == ops::MatMul;
    if (!convolves && !multiplies) {
      result.skipped.push_back({op.name, op.op_type.str()});
      continue;
    }
    try {
      result.layers.push_back(convolves ? convolution(graph, op) : product(graph, op));
      layer_of[i] = result.layers.size() - 1;
    } catch (const InputError& error) {
      problems.add(error.problems());
    }
  }
  problems.throw_if_any();
  link_layers(order, parents, layer_of, result.layers);
  return result;
}

} // namespace monet
