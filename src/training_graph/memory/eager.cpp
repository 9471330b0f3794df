// Finds the storages that PyTorch's autograd keeps; storage.cpp calls it for pytorch_eager.
#include "training_graph/build/block_copies.hpp"
#include "training_graph/memory/eager_parts.hpp"
#include "training_graph/memory/storage.hpp"
#include "workload/shared/operators.hpp"
#include "workload/shared/views.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>

namespace monet {

namespace {

using Shape = Integers;

using enum OperatorRow::Kept;

class EagerModel {
public:
  EagerModel(const Graph& graph, const std::vector<bool>& requires_grad)
      : graph_(graph), requires_grad_(requires_grad), kept_(graph) {
    add_unquantised_gradients();
    add_flat_gradients();
  }

  EagerStorage run() {
    const std::vector<EagerFused> fused = find_eager_fused(graph_, requires_grad_);
    for (const EagerFused& one : fused)
      fused_.insert(one.parts.begin(), one.parts.end());
    for (std::size_t i = 0; i < graph_.operators().size(); ++i)
      visit(OpId(i));
    for (const EagerFused& one : fused) {
      for (const TensorId id : one.kept)
        keep(id);
      kept_.add_copies(one.copied_bytes);
    }
    return kept_.storage();
  }

private:
  const Tensor& tensor(TensorId id) const { return graph_.tensor(id); }
  void keep(TensorId id) { kept_.keep(id); }
  void keep(const std::vector<std::optional<TensorId>>& ids, std::size_t i) { kept_.keep(ids, i); }
  bool requires_grad(TensorId id) const {
    return id.index() < requires_grad_.size() && requires_grad_[id.index()];
  }
  bool requires_grad(const Operator& op, std::size_t input) const {
    return input < op.inputs.size() && op.inputs[input] && requires_grad(*op.inputs[input]);
  }

  void visit(OpId id) {
    const Operator& op = graph_.op(id);
    if (fused_.count(id) != 0)
      return;
    if (op.phase == Phase::forward) {
      if (is_selection(op) || is_view(graph_, op))
        kept_.layouts().add_view(op);
      else if (requires_grad_by_output(op) && !keep_by_type(op))
        unknown_.insert(id);
    } else if (op.phase == Phase::loss) {
      keep_loss(op, id);
    } else if (op.phase == Phase::backward && op.forward_op && unknown_.count(*op.forward_op) > 0) {
      keep_reads(op);
    }
  }

  bool requires_grad_by_output(const Operator& op) const {
    return std::ranges::any_of(
        op.outputs, [&](const auto& output) { return output && requires_grad(*output); });
  }

  /// x[:, 0]: one index taken out of an axis is a view in PyTorch.
  bool is_selection(const Operator& op) const {
    return op.op_type == ops::Gather && op.inputs.size() > 1 && op.inputs[1] &&
           tensor(*op.inputs[1]).values && tensor(*op.inputs[1]).shape.empty() &&
           !tensor(*op.inputs[0]).shape.empty();
  }

  bool keep_by_type(const Operator& op) {
    if (op.op_type == ops::MatMul) {
      keep_factors(kept_, graph_, op, requires_grad_);
      return true;
    }
    if (op.op_type == ops::Einsum)
      return keep_einsum(kept_, graph_, op, requires_grad_);
    using Rule = void (EagerModel::*)(const Operator&);
    struct Row {
      OpType op_type;
      Rule rule;
    };
    static constexpr std::array kRules{
        Row{ops::AveragePool, &EagerModel::keep_unpadded},
        Row{ops::Div, &EagerModel::keep_quotient},
        Row{ops::Dropout, &EagerModel::keep_mask},
        Row{ops::FakeQuantize, &EagerModel::keep_rounding},
        Row{ops::Gather, &EagerModel::keep_gathered},
        Row{ops::Gemm, &EagerModel::keep_others},
        Row{ops::Max, &EagerModel::keep_compared},
        Row{ops::Min, &EagerModel::keep_compared},
        Row{ops::Mod, &EagerModel::keep_remainder},
        Row{ops::Mul, &EagerModel::keep_others},
        Row{ops::NegativeLogLikelihoodLoss, &EagerModel::keep_likelihood},
        Row{ops::Pad, &EagerModel::keep_padded},
        Row{ops::Pow, &EagerModel::keep_power},
        Row{ops::RMSNormalization, &EagerModel::keep_squares},
        Row{ops::ReduceMax, &EagerModel::keep_extremum},
        Row{ops::ReduceMean, &EagerModel::keep_averaged},
        Row{ops::ReduceMin, &EagerModel::keep_extremum},
        Row{ops::Silu, &EagerModel::keep_scaled_gate},
        Row{ops::Softsign, &EagerModel::keep_soft_sign},
    };
    for (const Row& row : kRules) {
      if (row.op_type == op.op_type) {
        (this->*row.rule)(op);
        return true;
      }
    }
    return keep_by_table(op);
  }

  bool keep_by_table(const Operator& op) {
    const OperatorRow* row = find_row(op.op_type);
    const std::optional<unsigned> what = row != nullptr ? row->kept : std::nullopt;
    if (!what)
      return false;
    keep_flags(op, *what);
    if ((*what & kStatistics) && op.inputs.size() > 1 && op.inputs[1] &&
        tensor(*op.inputs[1]).producer)
      keep(op.inputs, 1); // a scale that is computed
    if (op.op_type == ops::InstanceNormalization)
      keep_repeated_scale(op);
    if (op.op_type == ops::RoiAlign)
      keep_regions(op);
    return true;
  }

  /// Keeps each factor of a product that the gradient of the other one needs.
  void keep_others(const Operator& op) {
    keep_other(op, 0);
    keep_other(op, 1);
  }

  void keep_quotient(const Operator& op) {
    keep_number_or_tensor(op, 1);
    keep_other(op, 1);
  }

  void keep_likelihood(const Operator& op) {
    keep_flags(op, kX | kX1 | kY1);
    keep(op.inputs, 2);
    if (op.outputs.size() < 2) // what it divides by, or would
      kept_.add_copies(bits_of(tensor(*op.outputs[0]).type) / 8);
  }

  /// Keeps the operand of a padding, unless the border is constant: then sizes suffice.
  void keep_padded(const Operator& op) {
    if (op.attributes.text("mode", "constant") != "constant")
      keep(op.inputs, 0);
  }

  /// Keeps the operand of a mean, unless the mean is over all axes: then sizes suffice.
  void keep_averaged(const Operator& op) {
    if (reduced_axes(op) < tensor(*op.inputs[0]).shape.size())
      keep(op.inputs, 0);
  }

  void keep_gathered(const Operator& op) {
    keep_places(*op.inputs[1]);
    if (is_embedding(op))
      keep(op.inputs, 0);
  }

  void keep_compared(const Operator& op) {
    for (std::size_t i = 0; i < op.inputs.size() && op.inputs.size() > 1; ++i)
      keep(op.inputs, i);
  }

  /// x, and 1 + |x| that it is divided by.
  void keep_soft_sign(const Operator& op) {
    keep(op.inputs, 0);
    kept_.add_copies(bytes_of(size_of(tensor(*op.outputs[0]))));
  }

  void keep_power(const Operator& op) {
    keep(op.inputs, 0);
    if (!requires_grad(op, 1))
      return;
    keep(op.inputs, 1);
    keep(op.outputs, 0);
  }

  /// How often the divisor fits is found again for the divisor's gradient.
  void keep_remainder(const Operator& op) {
    if (!requires_grad(op, 1))
      return;
    keep(op.inputs, 0);
    keep(op.inputs, 1);
  }

  void keep_flags(const Operator& op, unsigned what) {
    if (what & kX)
      keep(op.inputs, 0);
    if (what & kX1)
      keep(op.inputs, 1);
    if (what & kY)
      keep(op.outputs, 0);
    if (what & kY1)
      keep(op.outputs, 1);
    if (what & kRunning) {
      keep(op.inputs, 3);
      keep(op.inputs, 4);
    }
    if (what & kStatistics) { // mean and inverse deviation, the last outputs
      for (std::size_t i = op.outputs.size();
           i-- > std::max<std::size_t>(1, op.outputs.size() - 2);)
        keep(op.outputs, i);
    }
  }

  /// Axes that are reduced; all of them when none are named.
  std::size_t reduced_axes(const Operator& op) const {
    const std::size_t rank = tensor(*op.inputs[0]).shape.size();
    const auto listed = known_integers(graph_, op, 1);
    const std::size_t named = listed ? listed->size() : op.attributes.integers("axes").size();
    return named == 0 ? rank : named;
  }

  /// max(dim) keeps where it found them, as int64; max() and amax() what they compared.
  void keep_extremum(const Operator& op) {
    if (reduced_axes(op) == 1 && tensor(*op.inputs[0]).shape.size() > 1) {
      const std::string_view place = op.op_type == ops::ReduceMax ? ops::ArgMax : ops::ArgMin;
      for (const OpId reader : tensor(*op.inputs[0]).consumers) {
        if (graph_.op(reader).op_type == place)
          return keep(graph_.op(reader).outputs, 0);
      }
      kept_.add_copies(8 * element_count(tensor(*op.outputs[0])));
      return;
    }
    keep(op.inputs, 0);
    keep(op.outputs, 0);
  }

  void keep_loss(const Operator& op, OpId id) {
    const EagerLoss loss = eager_loss(graph_, op);
    kept_.add_copies(loss.copied_bytes);
    if (loss.keeps_reads)
      unknown_.insert(id);
  }

  /// With a learned scale, what is rounded and the zero point, in single precision; else the mask.
  void keep_rounding(const Operator& op) {
    if (!requires_grad(op, 1))
      return keep(op.outputs, 1);
    keep(op.inputs, 0);
    kept_.add_copies(4 * element_count(tensor(*op.inputs[1])));
  }

  /// An export joins the indices of x[i, j] to one, i * n + j, which PyTorch does not.
  void keep_places(TensorId id) {
    const auto producer = tensor(id).producer;
    const Operator* op = producer ? &graph_.op(*producer) : nullptr;
    const auto is_number = [&](TensorId input) {
      return tensor(input).kind == TensorKind::constant && element_count(tensor(input)) == 1;
    };
    if (!op || (op->op_type != ops::Add && op->op_type != ops::Mul) || op->inputs.size() != 2)
      return keep(id);
    for (const TensorId input : present(op->inputs)) {
      if (!is_number(input))
        keep_places(input);
    }
  }

  /// Rows of a table that no data flows into: torch's embedding() keeps the table, indexing does
  /// not.
  bool is_embedding(const Operator& op) {
    if (op.attributes.integer("axis", 0) != 0 || tensor(*op.inputs[0]).shape.size() != 2)
      return false;
    if (fed_.empty()) {
      fed_.resize(graph_.tensors().size());
      for (const TensorId id : graph_.inputs)
        fed_[id.index()] = true;
      for (const Operator& each : graph_.operators()) {
        const bool any = std::ranges::any_of(
            each.inputs, [&](const auto& id) { return id && fed_[id->index()]; });
        for (const TensorId id : present(each.outputs))
          fed_[id.index()] = any;
      }
    }
    return !fed_[op.inputs[0]->index()];
  }

  /// PyTorch has x * sigmoid(x) alone: where the gate is scaled it is kept, and so is the number.
  void keep_scaled_gate(const Operator& op) {
    keep(op.inputs, 0);
    if (op.attributes.number("alpha", 1.0) != 1.0)
      kept_.add_copies(bytes_of(size_of(tensor(*op.outputs[0]))) + 8);
  }

  /// The exporter spells a padded average as Pad and AveragePool.
  void keep_unpadded(const Operator& op) {
    const auto producer = tensor(*op.inputs[0]).producer;
    const bool padded = producer && graph_.op(*producer).op_type == ops::Pad;
    keep(padded ? *graph_.op(*producer).inputs[0] : *op.inputs[0]);
  }

  /// PyTorch 1.13 has no such operator: its mean keeps the squares, the product with the scale what
  /// is scaled; of data that needs no gradient that alone.
  void keep_squares(const Operator& op) {
    const std::int64_t bytes = bytes_of(size_of(tensor(*op.inputs[0])));
    kept_.add_copies(requires_grad(op, 1) ? bytes : 0);
    if (!requires_grad(op, 0))
      return;
    keep_flags(op, kX | kStatistics);
    kept_.add_copies(bytes);
  }

  /// Instance normalisation is a batch normalisation of one image with every image's channels, for
  /// which the scale is repeated.
  void keep_repeated_scale(const Operator& op) {
    if (op.inputs.size() < 2 || !op.inputs[1] ||
        tensor(*op.inputs[1]).kind != TensorKind::parameter)
      return;
    const Shape& shape = tensor(*op.inputs[0]).shape;
    kept_.add_copies(shape.at(0) * bytes_of(size_of(tensor(*op.inputs[1]))));
  }

  /// torchvision's regions hold the number of their image as a fifth number.
  void keep_regions(const Operator& op) {
    const Tensor& corners = tensor(*op.inputs[1]);
    kept_.add_copies(bytes_of(size_of(corners)) / 4 * 5);
  }

  /// The other operand of a product is kept when this one requires a gradient.
  void keep_other(const Operator& op, std::size_t input) {
    if (requires_grad(op, input))
      keep_number_or_tensor(op, 1 - input);
  }

  /// A number that a tensor is multiplied by becomes a tensor of eight bytes.
  void keep_number_or_tensor(const Operator& op, std::size_t input) {
    const Tensor& operand = tensor(*op.inputs[input]);
    if (operand.kind == TensorKind::constant && operand.shape.empty())
      kept_.add_copies(8);
    else
      keep(op.inputs, input);
  }

  /// See widen_dropout_masks().
  void keep_mask(const Operator& op) {
    if (op.outputs.size() < 2 || !op.outputs[1])
      return;
    const Tensor& result = tensor(*op.outputs[0]);
    keep(op.outputs, 1);
    if (bits_of(result.type) >= 32)
      kept_.add_copies(bytes_of(size_of(result)) - bytes_of(size_of(tensor(*op.outputs[1]))));
  }

  /// Operators of which PyTorch's node is not known keep what our backward reads of the forward.
  void keep_reads(const Operator& backward) {
    for (const TensorId input : present(backward.inputs)) {
      const Tensor& root = tensor(storage_root(graph_, input));
      const bool made = root.producer
                            ? graph_.op(*root.producer).phase == Phase::forward ||
                                  graph_.op(*root.producer).phase == Phase::loss
                            : root.kind == TensorKind::input || root.kind == TensorKind::label ||
                                  is_loss_weight(backward, root);
      if (made)
        keep(input);
    }
  }

  bool is_loss_weight(const Operator& backward, const Tensor& read) const {
    return read.kind == TensorKind::constant && !read.shape.empty() &&
           graph_.op(*backward.forward_op).phase == Phase::loss;
  }

  /// Marks results that are only quantised: their copies are what the network's tensors are.
  void add_unquantised_gradients() {
    requires_grad_.resize(graph_.tensors().size(), false);
    for (const Operator& op : graph_.operators()) {
      if (op.phase == Phase::forward && makes_quantised_copies(op) && requires_grad(*op.outputs[0]))
        requires_grad_[op.inputs[0]->index()] = true;
    }
  }

  /// Marks tensors computed from roundings and signs as requiring a gradient, as in PyTorch, where
  /// it is zero: the other operands of their readers are then kept.
  void add_flat_gradients() {
    std::vector<bool> flat(graph_.tensors().size(), false);
    const auto any = [](const Operator& op, const std::vector<bool>& of) {
      return std::ranges::any_of(op.inputs, [&](const auto& id) { return id && of[id->index()]; });
    };
    for (const Operator& op : graph_.operators()) {
      const bool is_flat = op.op_type.is_one_of({ops::Ceil, ops::Floor, ops::Round, ops::Sign});
      if (op.phase != Phase::forward || !(any(op, flat) || (is_flat && any(op, requires_grad_))))
        continue;
      for (const TensorId id : present(op.outputs))
        flat[id.index()] = is_floating(tensor(id).type);
    }
    for (std::size_t i = 0; i < flat.size(); ++i)
      requires_grad_[i] = requires_grad_[i] || flat[i];
  }

  const Graph& graph_;
  std::vector<bool> requires_grad_;
  EagerKept kept_;
  std::vector<bool> fed_; ///< tensors that follow from inputs of the step; made when asked for
  std::set<OpId> unknown_;
  std::set<OpId> fused_; ///< parts of what is one operator in PyTorch
};

} // namespace

EagerStorage find_eager_storage(const Graph& step, const std::vector<bool>& requires_grad) {
  return EagerModel(step, requires_grad).run();
}

void widen_dropout_masks(Graph& step) {
  for (const Operator& op : step.operators()) {
    if (op.phase != Phase::forward || op.op_type != ops::Dropout || op.outputs.size() < 2 ||
        !op.outputs[1])
      continue;
    const ElementType type = step.tensor(*op.outputs[0]).type;
    if (bits_of(type) >= 32)
      step.tensor(*op.outputs[1]).type = type;
  }
}

} // namespace monet
