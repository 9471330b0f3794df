// Splits axes of internal tensors in which two loops interleave; fold_views() in views.cpp calls it
// last.
#include "workload/part_axes.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace monet {

namespace {

/// Maximum axes of a tensor; more make operations on boxes expensive.
constexpr std::size_t kMaxAxes = 8;

class AxisParting {
public:
  explicit AxisParting(Graph& graph) : graph_(graph), uses_(graph.tensors().size()) {
    for (std::size_t i = 0; i < graph.operators().size(); ++i) {
      const auto& operands = graph.operators()[i].nest.operands;
      for (std::size_t k = 0; k < operands.size(); ++k)
        uses_[operands[k].tensor.index()].emplace_back(i, k);
    }
    inside_.assign(graph.tensors().size(), true);
    for (std::size_t i = 0; i < graph.tensors().size(); ++i) {
      const Tensor& tensor = graph.tensors()[i];
      inside_[i] = inside_[i] && tensor.producer && !tensor.consumers.empty() && !tensor.alias_of;
      if (tensor.alias_of)
        inside_[tensor.alias_of->index()] = false;
    }
    for (const TensorId id : graph.outputs)
      inside_[id.index()] = false;
  }

  void run() {
    for (std::size_t i = 0; i < uses_.size(); ++i) {
      for (std::size_t axis = 0; inside_[i] && axis < shape_of(i).size();) {
        const auto inner = shape_of(i).size() < kMaxAxes ? parting_of(i, axis) : std::nullopt;
        if (inner)
          part(i, axis, *inner);
        axis += inner ? 2 : 1;
      }
    }
  }

private:
  using Use = std::pair<std::size_t, std::size_t>; ///< operator, operand

  const Integers& shape_of(std::size_t tensor) const { return graph_.tensors()[tensor].shape; }
  LoopNest& nest_of(const Use& use) { return graph_.op(OpId(use.first)).nest; }

  /// Size of the inner axis if the axis can be split in two; otherwise nullopt.
  std::optional<std::int64_t> parting_of(std::size_t tensor, std::size_t axis) {
    std::optional<std::int64_t> inner;
    for (const Use& use : uses_[tensor]) {
      const LoopNest& nest = nest_of(use);
      const Access& access = nest.operands[use.second];
      if (access.opaque || axis >= access.axes.size())
        return std::nullopt;
      if (access.mode != AccessMode::read && !inner)
        inner = interleaved(access.axes[axis], nest);
    }
    const std::int64_t extent = shape_of(tensor)[axis];
    if (!inner || extent % *inner != 0 || *inner % block_extent(tensor, axis) != 0)
      return std::nullopt;
    const bool all = std::ranges::all_of(uses_[tensor], [&](const Use& use) {
      const LoopNest& nest = nest_of(use);
      return parts(nest.operands[use.second].axes[axis], nest, *inner);
    });
    return all ? inner : std::nullopt;
  }

  /// An axis counted from the last, as block formats do.
  int from_last(std::size_t tensor, std::size_t axis) const {
    return static_cast<int>(axis) - static_cast<int>(shape_of(tensor).size());
  }

  /// Elements along the axis that share a scale. An inner axis that they do not fill evenly would
  /// change the blocks.
  std::int64_t block_extent(std::size_t tensor, std::size_t axis) const {
    const auto& blocks = graph_.tensors()[tensor].type.format().blocks;
    const auto extents = blocks ? extents_of(*blocks) : std::vector<std::int64_t>{};
    const auto at = static_cast<std::int64_t>(extents.size()) + from_last(tensor, axis);
    return at < 0 || extents.empty() ? 1 : extents[static_cast<std::size_t>(at)];
  }

  /// The format of the tensor after `axis` has become two: blocks along it lie along the inner one.
  ElementType parted_type(std::size_t tensor, std::size_t axis) const {
    TensorFormat format = graph_.tensors()[tensor].type.format();
    if (!format.blocks)
      return graph_.tensors()[tensor].type;
    BlockScaling& blocks = *format.blocks;
    const int split = from_last(tensor, axis);
    blocks.row_axis -= blocks.rows > 1 && blocks.row_axis < split ? 1 : 0;
    blocks.column_axis -= blocks.columns > 1 && blocks.column_axis < split ? 1 : 0;
    return ElementType(format);
  }

  /// Step of the loop with the largest coefficient, if another loop of the axis has a smaller one.
  static std::optional<std::int64_t> interleaved(const AxisExpr& axis, const LoopNest& nest) {
    std::int64_t most = 0;
    bool within = false;
    for (const AffineTerm& term : axis.terms)
      most = nest.dims[term.dim].size > 1 ? std::max(most, term.coefficient) : most;
    for (const AffineTerm& term : axis.terms)
      within = within || (nest.dims[term.dim].size > 1 && term.coefficient < most);
    return within && most > 1 ? std::optional(most) : std::nullopt;
  }

  /// Whether each loop moves in multiples of `inner`, and all other loops together move less than
  /// `inner`.
  static bool parts(const AxisExpr& axis, const LoopNest& nest, std::int64_t inner) {
    if (axis.data_dependent || axis.offset != 0)
      return false;
    std::int64_t reach = 0;
    for (const AffineTerm& term : axis.terms) {
      const std::int64_t steps = nest.dims[term.dim].size - 1;
      if (term.coefficient < 0)
        return false;
      if (term.coefficient % inner == 0)
        continue;
      if (steps > 0 && term.coefficient > (inner - 1 - reach) / steps)
        return false;
      reach += term.coefficient * steps;
    }
    return true;
  }

  void part(std::size_t tensor, std::size_t axis, std::int64_t inner) {
    const auto at = static_cast<std::ptrdiff_t>(axis);
    for (const Use& use : uses_[tensor]) {
      auto& axes = nest_of(use).operands[use.second].axes;
      AxisExpr outer;
      AxisExpr within;
      for (AffineTerm term : axes[axis].terms) {
        const bool whole = term.coefficient % inner == 0;
        if (whole)
          term.coefficient /= inner;
        (whole ? outer : within).terms.push_back(term);
      }
      axes[axis] = std::move(outer);
      axes.insert(axes.begin() + at + 1, std::move(within));
    }
    graph_.tensor(TensorId(tensor)).type = parted_type(tensor, axis);
    auto& shape = graph_.tensor(TensorId(tensor)).shape;
    shape[axis] /= inner;
    shape.insert(shape.begin() + at + 1, inner);
  }

  Graph& graph_;
  std::vector<std::vector<Use>> uses_; ///< per tensor
  std::vector<bool> inside_;           ///< per tensor: produced and consumed in this graph
};

} // namespace

void part_interleaved_axes(Graph& folded) {
  AxisParting(folded).run();
}

} // namespace monet
