// Adds copies of block-scaled tensors along the axes that products sum over.
#include "training_graph/build/block_copies.hpp"

#include "training_graph/build/rebuild.hpp"
#include "workload/shared/operators.hpp"
#include "workload/shared/views.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace monet {

bool makes_quantised_copies(const Operator& op) {
  return op.domain == kMonetDomain && op.op_type == ops::Quantise;
}

namespace {

constexpr std::string_view kQuantise = ops::Quantise;
constexpr std::string_view kRequantise = ops::Requantise;

bool is_requantise(const Operator& op) {
  return op.domain == kMonetDomain && op.op_type == kRequantise;
}

const std::optional<BlockScaling>& blocks_of(const Tensor& tensor) {
  return tensor.type.format().blocks;
}

/// One number a block, or no block at all, needs no axis.
bool has_blocks(const Graph& graph, TensorId id) {
  const Tensor& tensor = graph.tensor(id);
  const auto& blocks = blocks_of(tensor);
  return is_floating(tensor.type) && !tensor.shape.empty() && blocks &&
         blocks->rows * blocks->columns > 1;
}

/// The next axis outwards, or inwards if `axis` is the first.
int neighbour(int axis, const Tensor& tensor) {
  return -axis < static_cast<int>(tensor.shape.size()) ? axis - 1 : axis + 1;
}

/// One axis has no other.
bool is_row(const Tensor& tensor) {
  return tensor.shape.size() < 2;
}

ElementType with_blocks(const Tensor& tensor, int axis, int other) {
  TensorFormat format = tensor.type.format();
  if (!is_row(tensor))
    format.blocks = along(*format.blocks, axis, other);
  return ElementType(format);
}

bool fits(const Tensor& tensor, int axis) {
  const BlockScaling& blocks = *blocks_of(tensor);
  if (is_row(tensor))
    return true;
  return is_vector(blocks) ? axis_of_vector(blocks) == axis
                           : blocks.row_axis == axis || blocks.column_axis == axis;
}

class BlockCopies {
public:
  BlockCopies(const Graph& source, const Precision& precision)
      : source_(source), how_(precision.transposed), wide_(precision.reduction_type()),
        made_(source), wanted_(source.tensors().size()) {}

  Graph run() {
    find();
    lay();
    for (std::size_t i = 0; i < source_.operators().size(); ++i)
      write(OpId(i));
    return made_.release();
  }

private:
  void find() {
    factors_.resize(source_.operators().size());
    for (std::size_t i = 0; i < factors_.size(); ++i) {
      factors_[i] = summed_factors(source_, source_.op(OpId(i)),
                                   [&](TensorId id) { return has_blocks(source_, id); });
      for (const SummedFactor& factor : factors_[i]) {
        std::vector<int>& axes = wanted_[factor.stored.index()];
        if (std::ranges::find(axes, factor.axis) == axes.end())
          axes.push_back(factor.axis);
      }
    }
  }

  /// The first blocks of every tensor; then the axes that are left are those of copies.
  void lay() {
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
      std::vector<int>& axes = wanted_[i];
      if (axes.empty())
        continue;
      Tensor& tensor = made_.graph().tensor(TensorId(i));
      tensor.type =
          with_blocks(tensor, axes[0], axes.size() > 1 ? axes[1] : neighbour(axes[0], tensor));
      std::erase_if(axes, [&](int axis) { return fits(tensor, axis); });
    }
    for (const Operator& op : source_.operators()) { // casts that change nothing stay so
      if (op.op_type == ops::Cast && is_view(source_, op))
        made_.graph().tensor(*op.outputs[0]).type = made_.graph().tensor(*op.inputs[0]).type;
    }
  }

  void write(OpId id) {
    const Operator& before = source_.op(id);
    Operator op = before;
    for (const SummedFactor& factor : factors_[id.index()])
      read_copy(before, factor, op);
    std::vector<Operator> behind;
    if (how_ == TransposedBlocks::copy && !is_view(source_, before)) {
      for (std::size_t i = 0; i < before.outputs.size(); ++i) {
        const auto& output = before.outputs[i];
        if (output && !wanted_[output->index()].empty() && !source_.tensor(*output).alias_of)
          quantise(op, i, behind);
      }
    }
    const OpId made = made_.copy(id, std::move(op));
    if (makes_quantised_copies(made_.graph().op(made)))
      build_nest(made_.graph(), made);
    for (Operator& next : behind)
      made_.add_operator(std::move(next));
  }

  /// Has the operator read a factor in blocks along the axis that it adds up.
  void read_copy(const Operator& before, const SummedFactor& factor, Operator& op) {
    const Tensor& stored = made_.graph().tensor(factor.stored);
    if (fits(stored, factor.axis))
      return;
    const TensorId read = before.nest.operands[factor.operand].tensor;
    const TensorId copy = copy_of(factor.stored, factor.axis, before);
    const TensorId after = as_viewed(read, factor.stored, copy, before);
    op.nest.operands[factor.operand].tensor = after;
    // The k-th access to a tensor is that of its k-th input.
    const auto end = before.nest.operands.begin() + static_cast<std::ptrdiff_t>(factor.operand);
    auto k = std::count_if(before.nest.operands.begin(), end, [&](const Access& access) {
      return access.mode == AccessMode::read && access.tensor == read;
    });
    for (std::size_t i = 0; i < before.inputs.size(); ++i) {
      if (before.inputs[i] == read && k-- == 0)
        op.inputs[i] = after;
    }
  }

  /// Returns the copy along an axis; makes it from the first blocks if it is missing.
  TensorId copy_of(TensorId id, int axis, const Operator& reader) {
    if (const auto known = copies_.find({id, axis}); known != copies_.end())
      return known->second;
    const std::tuple key{id, axis, reader.phase == Phase::forward};
    if (const auto known = again_.find(key); known != again_.end())
      return known->second;
    const TensorId to = add_copy(id, axis, reader.phase);
    const Tensor& from = source_.tensor(id);
    Operator op = made_like(reader, from.name, kRequantise);
    op.inputs = {id};
    op.outputs = {to};
    made_.add_operator(std::move(op));
    again_.emplace(key, to);
    return to;
  }

  std::optional<OpId> new_reference(const Operator& op) const {
    return op.forward_op ? made_.first_copy(*op.forward_op) : std::nullopt;
  }

  Operator made_like(const Operator& other, const std::string& of, OpType op_type) const {
    Operator op;
    op.name = fmt::format("{}.{}", of, op_type);
    op.op_type = op_type;
    op.domain = kMonetDomain;
    op.phase = other.phase;
    op.forward_op = new_reference(other);
    return op;
  }

  TensorId add_copy(TensorId id, int axis, Phase phase) {
    const Tensor& laid = made_.graph().tensor(id);
    const auto place = static_cast<std::size_t>(axis + static_cast<int>(laid.shape.size()));
    return made_.add_tensor(
        {.name = fmt::format("{}.axis{}", laid.name, place),
         .shape = laid.shape,
         .type = with_blocks(laid, axis, neighbour(axis, laid)),
         .kind = phase == Phase::forward ? TensorKind::activation : TensorKind::gradient});
  }

  /// Output `i` is computed as it comes and then quantised, once for the tensor and for each copy.
  void quantise(Operator& op, std::size_t i, std::vector<Operator>& behind) {
    const TensorId id = *op.outputs[i];
    Operator made = made_like(op, source_.tensor(id).name, kQuantise);
    made.outputs = {id};
    for (const int axis : wanted_[id.index()]) {
      const TensorId copy = add_copy(id, axis, op.phase);
      copies_.emplace(std::pair{id, axis}, copy);
      made.outputs.emplace_back(copy);
    }
    if (op.op_type == ops::Cast && op.domain.empty()) {
      op.op_type = made.op_type;
      op.domain = made.domain;
      op.outputs = made.outputs;
      op.attributes = {};
      return;
    }
    const Tensor& source = source_.tensor(id);
    const TensorId wide = made_.add_tensor(
        {.name = source.name + ".wide", .shape = source.shape, .type = wide_, .kind = source.kind});
    made.inputs = {wide};
    op.outputs[i] = wide;
    for (Access& access : op.nest.operands) {
      if (access.mode != AccessMode::read && access.tensor == id)
        access.tensor = wide;
    }
    behind.push_back(std::move(made));
  }

  /// The copy as `read`, which is a view of `stored`, shows that.
  TensorId as_viewed(TensorId read, TensorId stored, TensorId copy, const Operator& reader) {
    std::vector<TensorId> path;
    for (TensorId at = read; at != stored; at = *source_.op(*source_.tensor(at).producer).inputs[0])
      path.push_back(at);
    TensorId last = copy;
    for (; !path.empty(); path.pop_back()) {
      TensorId& known = views_.try_emplace({path.back(), copy}, path.back()).first->second;
      if (known == path.back())
        known = add_view(path.back(), last, reader);
      last = known;
    }
    return last;
  }

  TensorId add_view(TensorId like, TensorId of, const Operator& reader) {
    const Operator& view = source_.op(*source_.tensor(like).producer);
    Operator op = view;
    op.phase = reader.phase;
    op.forward_op = new_reference(reader);
    op.inputs[0] = of;
    TensorId result = of;
    for (auto& output : op.outputs) {
      if (!output)
        continue;
      const bool is_it = output == like;
      const Tensor& shown = source_.tensor(*output);
      output = made_.add_tensor({.name = shown.name,
                                 .shape = shown.shape,
                                 .type = shown.type,
                                 .kind = made_.graph().tensor(of).kind});
      result = is_it ? *output : result;
    }
    made_.add_operator(std::move(op));
    return result;
  }

  const Graph& source_;
  TransposedBlocks how_;
  ElementType wide_; ///< of what is computed before it is quantised
  GraphRewriter made_;
  std::vector<std::vector<int>> wanted_;           ///< axes of blocks, by tensor
  std::vector<std::vector<SummedFactor>> factors_; ///< by operator
  /// By tensor and axis: made at once; and again, in the forward phase or behind it.
  std::map<std::pair<TensorId, int>, TensorId> copies_;
  std::map<std::tuple<TensorId, int, bool>, TensorId> again_;
  std::map<std::pair<TensorId, TensorId>, TensorId> views_; ///< by what is shown, and the copy
};

} // namespace

Graph with_block_copies(const Graph& graph, const Precision& precision) {
  const bool any = std::ranges::any_of(graph.tensors(), [](const Tensor& tensor) {
    return is_floating(tensor.type) && tensor.type.format().blocks;
  });
  return any ? BlockCopies(graph, precision).run() : graph;
}

Graph quantise_masters(Graph graph, const std::vector<std::pair<TensorId, TensorId>>& masters) {
  if (masters.empty() || std::ranges::none_of(graph.operators(), is_requantise))
    return graph;
  const std::map<TensorId, TensorId> of(masters.begin(), masters.end());
  GraphRewriter made(graph);
  for (std::size_t i = 0; i < graph.operators().size(); ++i) {
    Operator op = graph.op(OpId(i));
    const auto master = is_requantise(op) ? of.find(*op.inputs[0]) : of.end();
    if (master == of.end()) {
      made.copy(OpId(i), std::move(op));
      continue;
    }
    op.op_type = kQuantise;
    op.inputs[0] = master->second;
    build_nest(made.graph(), made.copy(OpId(i), std::move(op)));
  }
  return made.release();
}

std::vector<TensorId> quantised_copies(const Graph& graph, TensorId id) {
  const Tensor& tensor = graph.tensor(id);
  std::optional<OpId> quantise = tensor.producer;
  if (tensor.consumers.size() == 1 && tensor.kind != TensorKind::parameter &&
      makes_quantised_copies(graph.op(tensor.consumers.front())))
    quantise = tensor.consumers.front();
  if (!quantise || !makes_quantised_copies(graph.op(*quantise)))
    return {id};
  auto copies = present(graph.op(*quantise).outputs);
  return {copies.begin(), copies.end()};
}

} // namespace monet
