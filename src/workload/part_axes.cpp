#include "workload/part_axes.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace monet {

namespace {

/// More axes than this make boxes dear.
constexpr std::size_t kMostAxes = 8;

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
        const auto inner = shape_of(i).size() < kMostAxes ? parting_of(i, axis) : std::nullopt;
        if (inner)
          part(i, axis, *inner);
        axis += inner ? 2 : 1;
      }
    }
  }

private:
  using Use = std::pair<std::size_t, std::size_t>; ///< operator, operand

  const std::vector<std::int64_t>& shape_of(std::size_t tensor) const {
    return graph_.tensors()[tensor].shape;
  }
  LoopNest& nest_of(const Use& use) { return graph_.op(OpId(use.first)).nest; }

  /// Elements of the inner one of two axes that this one can be.
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
    if (!inner || extent % *inner != 0)
      return std::nullopt;
    const bool all = std::ranges::all_of(uses_[tensor], [&](const Use& use) {
      const LoopNest& nest = nest_of(use);
      return parts(nest.operands[use.second].axes[axis], nest, *inner);
    });
    return all ? inner : std::nullopt;
  }

  /// One step of the leading loop, where another loop of the axis goes in smaller ones.
  static std::optional<std::int64_t> interleaved(const AxisExpr& axis, const LoopNest& nest) {
    std::int64_t most = 0;
    bool within = false;
    for (const AffineTerm& term : axis.terms)
      most = nest.dims[term.dim].size > 1 ? std::max(most, term.coefficient) : most;
    for (const AffineTerm& term : axis.terms)
      within = within || (nest.dims[term.dim].size > 1 && term.coefficient < most);
    return within && most > 1 ? std::optional(most) : std::nullopt;
  }

  /// Every loop goes in whole steps of `inner`, or all the others together in less than one.
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
    auto& shape = graph_.tensor(TensorId(tensor)).shape;
    shape[axis] /= inner;
    shape.insert(shape.begin() + at + 1, inner);
  }

  Graph& graph_;
  std::vector<std::vector<Use>> uses_; ///< per tensor
  std::vector<bool> inside_;           ///< per tensor: made and used up here
};

} // namespace

void part_interleaved_axes(Graph& folded) {
  AxisParting(folded).run();
}

} // namespace monet
