// Folds views into the access maps of their readers (fold_views), so that views cost nothing;
// training_graph/memory calls it.
#include "workload/shared/views.hpp"

#include "workload/operators/view_map.hpp"
#include "workload/part_axes.hpp"
#include "workload/shared/op_types.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace monet {

namespace {

/// View: output `output` of operator `op`.
struct ViewOf {
  OpId op;
  std::size_t output = 0;
};

class Folding {
public:
  explicit Folding(const Graph& graph)
      : graph_(graph), view_(graph.tensors().size()), copied_(graph.tensors().size(), false),
        nests_(graph.operators().size()), copies_(graph.tensors().size()) {}

  Graph run() {
    for (std::size_t i = 0; i < graph_.operators().size(); ++i) {
      const Operator& op = graph_.op(OpId(i));
      if (is_view(graph_, op)) {
        for (std::size_t k = 0; k < op.outputs.size(); ++k) {
          if (op.outputs[k])
            view_[op.outputs[k]->index()] = ViewOf{OpId(i), k};
        }
        continue;
      }
      nests_[i] = op.nest;
      if (reads_as_declared(op)) {
        copy_views(nests_[i]);
      } else {
        fold(nests_[i]);
      }
    }
    return rebuild();
  }

private:
  bool is_folded(TensorId tensor) const {
    return view_[tensor.index()] && !copied_[tensor.index()];
  }
  TensorId viewed(TensorId tensor) const { return *graph_.op(view_[tensor.index()]->op).inputs[0]; }

  /// Whether an operator needs operands in their declared layout. Interpolation repeats borders,
  /// and the gradient of a normalisation over channels reads neighbours of neighbours; the loops do
  /// not express either.
  static bool reads_as_declared(const Operator& op) {
    return op.op_type == ops::Resize || op.op_type == ops::ResizeGrad ||
           op.op_type == ops::LRNGrad || op.op_type == ops::MaxUnpoolGrad || writes_places(op);
  }
  /// Whether the operator outputs indices that count through its input.
  static bool writes_places(const Operator& op) {
    return op.op_type == ops::MaxPool && op.outputs.size() > 1 && op.outputs[1] &&
           op.attributes.integer("window_indices", 0) == 0;
  }
  /// Whether several axes are data-dependent; in another order of axes the assignment of indices
  /// would be lost.
  static bool is_indexed_often(const Access& access) {
    return std::ranges::count_if(access.axes,
                                 [](const AxisExpr& axis) { return axis.data_dependent; }) > 1;
  }
  void copy_views(const LoopNest& nest) {
    for (const Access& access : nest.operands) {
      if (is_view_tensor(access.tensor))
        copy(access.tensor);
    }
  }

  /// Composes views into all operands, one view at a time. A view that does not compose becomes a
  /// copy.
  void fold(LoopNest& nest) {
    for (std::size_t i = 0; i < nest.operands.size(); ++i) {
      if (is_indexed_often(nest.operands[i])) {
        if (is_view_tensor(nest.operands[i].tensor))
          copy(nest.operands[i].tensor);
        continue;
      }
      while (is_view_tensor(nest.operands[i].tensor)) {
        const TensorId view = nest.operands[i].tensor;
        if (!compose(nest, i, view)) {
          copy(view);
          break;
        }
        nest.operands[i].tensor = viewed(view);
      }
    }
  }

  bool is_view_tensor(TensorId tensor) const { return view_[tensor.index()].has_value(); }

  bool compose(LoopNest& nest, std::size_t operand, TensorId view) const {
    const ViewOf& of = *view_[view.index()];
    const auto step = view_step(graph_, graph_.op(of.op), of.output);
    return step && compose_view(nest, operand, *step, graph_.tensor(viewed(view)).shape,
                                graph_.tensor(view).shape);
  }

  /// Makes the view a separate tensor, written by a Copy. Unrolls chains of views without
  /// recursion: a copy reads through earlier views and may require another copy.
  void copy(TensorId first) {
    std::vector<TensorId> wanted{first};
    while (!wanted.empty()) {
      const TensorId view = wanted.back();
      wanted.pop_back();
      if (copied_[view.index()])
        continue;
      copied_[view.index()] = true;
      LoopNest& nest = copies_[view.index()];
      nest = identity(view);
      while (is_view_tensor(nest.operands[1].tensor)) {
        const TensorId source = nest.operands[1].tensor;
        if (compose(nest, 1, source)) {
          nest.operands[1].tensor = viewed(source);
        } else if (source == view) {
          nest.operands[1] = Access{viewed(view), AccessMode::read, "I", {}, 1, true};
        } else {
          wanted.push_back(source);
          break;
        }
      }
    }
  }

  /// Nest with loops over all elements of the tensor; operand 1 reads it as operand 0 writes it.
  LoopNest identity(TensorId tensor) const {
    LoopNest nest;
    Access access{tensor, AccessMode::write, "O", {}, 1, false};
    const auto& shape = graph_.tensor(tensor).shape;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      nest.dims.push_back({fmt::format("A{}", i), shape[i]});
      access.axes.push_back({{{static_cast<std::uint32_t>(i), 1}}, 0, false});
    }
    nest.operands = {access, access};
    nest.operands[1].mode = AccessMode::read;
    nest.operands[1].role = "I";
    return nest;
  }

  TensorId resolve(TensorId tensor) const {
    while (is_folded(tensor))
      tensor = viewed(tensor);
    return tensor;
  }

  // --- rebuilding the graph ---

  Graph rebuild() {
    Graph result;
    result.name = graph_.name;
    result.origin = graph_.origin;
    result.buffers = graph_.buffers;
    new_tensor_.resize(graph_.tensors().size());
    new_op_.resize(graph_.operators().size());
    for (std::size_t i = 0; i < graph_.tensors().size(); ++i) {
      if (is_folded(TensorId(i)))
        continue;
      Tensor tensor = graph_.tensor(TensorId(i));
      tensor.producer.reset();
      tensor.consumers.clear();
      new_tensor_[i] = result.add_tensor(std::move(tensor));
    }
    for (std::size_t i = 0; i < graph_.operators().size(); ++i) {
      if (is_view(graph_, graph_.op(OpId(i)))) {
        add_copies(result, OpId(i));
      } else {
        add_operator(result, OpId(i));
      }
    }
    for (std::size_t i = 0; i < graph_.tensors().size(); ++i) {
      const auto alias = graph_.tensor(TensorId(i)).alias_of;
      if (new_tensor_[i] && alias)
        result.tensor(*new_tensor_[i]).alias_of = renamed(*alias);
    }
    for (const TensorId id : graph_.inputs)
      result.inputs.push_back(renamed(id));
    for (const TensorId id : graph_.outputs)
      result.outputs.push_back(renamed(id));
    return result;
  }

  TensorId renamed(TensorId old) const { return *new_tensor_[resolve(old).index()]; }

  void rename(LoopNest& nest) const {
    for (Access& access : nest.operands)
      access.tensor = renamed(access.tensor);
  }

  void add_operator(Graph& result, OpId id) {
    Operator op = graph_.op(id);
    // Replaces inputs that the nest accesses by the tensors that it now reads; the k-th access of a
    // tensor belongs to its k-th input.
    std::size_t place = 0;
    for (auto& input : op.inputs) {
      if (input)
        input = renamed(follow(id, *input, place));
    }
    for (auto& output : op.outputs) {
      if (output)
        output = renamed(*output);
    }
    op.nest = nests_[id.index()];
    rename(op.nest);
    relink(op);
    if (op.forward_op)
      op.forward_op = new_op_[op.forward_op->index()];
    new_op_[id.index()] = result.add_operator(std::move(op));
  }

  /// Tensor that the operator's accesses to `input` reach after folding; one reader may fold a view
  /// that another copies. The search begins at `place`, since accesses mostly have the order of the
  /// inputs; `place` is then set after the match.
  TensorId follow(OpId id, TensorId input, std::size_t& place) const {
    const auto& before = graph_.op(id).nest.operands;
    const auto& after = nests_[id.index()].operands;
    for (std::size_t k = 0; k < before.size(); ++k) {
      const std::size_t i = (place + k) % before.size();
      if (before[i].tensor == input && before[i].mode == AccessMode::read) {
        place = i + 1;
        return after[i].tensor;
      }
    }
    return input;
  }

  void add_copies(Graph& result, OpId id) {
    const Operator& view = graph_.op(id);
    for (std::size_t k = 0; k < view.outputs.size(); ++k) {
      if (!view.outputs[k] || !copied_[view.outputs[k]->index()])
        continue;
      Operator op;
      op.name = view.outputs.size() == 1 ? view.name : fmt::format("{}/{}", view.name, k);
      op.op_type = ops::Copy;
      op.domain = kMonetDomain;
      op.attributes = copy_attributes(view_step(graph_, view, k));
      op.phase = view.phase;
      op.gradient_of = view.gradient_of;
      if (view.forward_op)
        op.forward_op = new_op_[view.forward_op->index()];
      op.nest = copies_[view.outputs[k]->index()];
      rename(op.nest);
      op.inputs = {op.nest.operands[1].tensor};
      op.outputs = {op.nest.operands[0].tensor};
      new_op_[id.index()] = result.add_operator(std::move(op));
    }
  }

  /// Adds every read tensor to the inputs: two accesses of one view may reach different tensors.
  static void relink(Operator& op) {
    const std::set<std::optional<TensorId>> inputs(op.inputs.begin(), op.inputs.end());
    std::set<TensorId> added;
    for (const Access& access : op.nest.operands) {
      if (access.mode == AccessMode::read && inputs.count(access.tensor) == 0 &&
          added.insert(access.tensor).second)
        op.inputs.emplace_back(access.tensor);
    }
  }

  const Graph& graph_;
  std::vector<std::optional<ViewOf>> view_; ///< per tensor that a view operator makes
  std::vector<bool> copied_;                ///< views that some reader cannot fold
  std::vector<LoopNest> nests_;             ///< per operator, in old tensor ids
  std::vector<LoopNest> copies_;            ///< per copied tensor
  std::vector<std::optional<TensorId>> new_tensor_;
  std::vector<std::optional<OpId>> new_op_;
};

} // namespace

Graph fold_views(const Graph& graph) {
  Graph folded = Folding(graph).run();
  part_interleaved_axes(folded);
  return folded;
}

void read_through_views(const Graph& graph, LoopNest& nest, std::size_t operand) {
  while (true) {
    const TensorId view = nest.operands[operand].tensor;
    const auto producer = graph.tensor(view).producer;
    if (!producer || !is_view(graph, graph.op(*producer)))
      return;
    const Operator& op = graph.op(*producer);
    const auto output = std::ranges::find(op.outputs, view) - op.outputs.begin();
    const auto step = view_step(graph, op, static_cast<std::size_t>(output));
    const TensorId viewed = *op.inputs[0];
    if (!step ||
        !compose_view(nest, operand, *step, graph.tensor(viewed).shape, graph.tensor(view).shape))
      return;
    nest.operands[operand].tensor = viewed;
  }
}

TensorId storage_root(const Graph& graph, TensorId tensor) {
  while (const auto producer = graph.tensor(tensor).producer) {
    const Operator& op = graph.op(*producer);
    if (!is_view(graph, op))
      break;
    tensor = *op.inputs[0];
  }
  return tensor;
}

} // namespace monet
