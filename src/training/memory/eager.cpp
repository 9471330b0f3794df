#include "training/memory/eager.hpp"

#include "training/build/step_builder.hpp"
#include "training/memory/layout.hpp"

#include "monet/workload/operators.hpp"
#include "monet/workload/views.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

namespace monet {

namespace {

using Shape = std::vector<std::int64_t>;

/// What an operator's node in autograd keeps: its first two inputs, outputs.
enum Keeps : unsigned { kX = 1, kX1 = 2, kY = 4, kY1 = 8, kStatistics = 16, kRunning = 32 };

struct Kept {
  std::string_view op_type;
  unsigned what;
};

/// derivatives.yaml of PyTorch 1.13. Products and quotients are not here: what they keep depends on
/// which operands require a gradient.
constexpr Kept kKept[]{
    {"Abs", kX},
    {"Add", 0},
    {"BatchNormalization", kX | kRunning | kStatistics},
    {"Cast", 0},
    {"Celu", kX},
    {"Clip", kX},
    {"Concat", 0},
    {"Conv", kX | kX1}, // a weight that is no parameter counts
    {"ConvTranspose", kX | kX1},
    {"Cos", kX},
    {"DepthToSpace", 0},
    {"Elu", kX},
    {"Erf", kX},
    {"Exp", kY},
    {"FakeQuantize", kY1},
    {"Gather", kX1},
    {"GatherElements", kX | kX1},
    {"GatherND", kX1},
    {"Gelu", kX},
    {"GridSample", kX | kX1},
    {"GlobalAveragePool", kX},
    {"GroupNormalization", kX | kStatistics},
    {"HardSigmoid", kX},
    {"HardSwish", kX},
    {"InstanceNormalization", kX | kStatistics},
    {"LayerNormalization", kX | kStatistics},
    {"LeakyRelu", kX},
    {"Log", kX},
    {"LogSoftmax", kY},
    {"MaxPool", kX | kY1},
    {"MaxUnpool", kX1},
    {"Mish", kX},
    {"Neg", 0},
    {"PRelu", kX | kX1},
    {"RMSNormalization", kX | kStatistics},
    {"Reciprocal", kY},
    {"ReduceL2", kX | kY},
    {"ReduceLogSumExp", kX | kY},
    {"ReduceSum", 0},
    {"ReduceSumSquare", kX},
    {"Relu", kY},
    {"Resize", 0},
    {"RoiAlign", 0},
    {"Selu", kX},
    {"Sigmoid", kY},
    {"Silu", kX},
    {"Sin", kX},
    {"Softmax", kY},
    {"Softplus", kX},
    {"Sqrt", kY},
    {"Sub", 0},
    {"Sum", 0},
    {"Tanh", kY},
    {"Tile", 0},
    {"Where", kX},
};

class EagerModel {
public:
  EagerModel(const Graph& graph, const std::vector<bool>& requires_grad)
      : graph_(graph), requires_grad_(requires_grad), layouts_(graph.tensors().size()) {}

  EagerStorage run() {
    find_fused();
    for (std::size_t i = 0; i < graph_.operators().size(); ++i)
      visit(OpId(i));
    EagerStorage storage;
    storage.bytes = copied_bytes_;
    std::set<TensorId> roots(copied_.begin(), copied_.end());
    for (const TensorId id : kept_) {
      storage.bytes += bytes_of(size_of(graph_.tensor(id)));
      roots.insert(storage_root(graph_, id));
    }
    storage.tensors.assign(roots.begin(), roots.end());
    return storage;
  }

private:
  const Tensor& tensor(TensorId id) const { return graph_.tensor(id); }
  bool requires_grad(TensorId id) const {
    return id.index() < requires_grad_.size() && requires_grad_[id.index()];
  }
  bool requires_grad(const Operator& op, std::size_t input) const {
    return input < op.inputs.size() && op.inputs[input] && requires_grad(*op.inputs[input]);
  }

  const Layout& layout(TensorId id) {
    auto& known = layouts_[id.index()];
    if (!known)
      known = Layout{id, row_major(tensor(id).shape)};
    return *known;
  }

  void keep(TensorId id) {
    TensorId storage = layout(id).storage;
    while (tensor(storage).alias_of) // statistics are updated where they lie
      storage = *tensor(storage).alias_of;
    if (tensor(storage).kind != TensorKind::parameter)
      kept_.insert(storage);
  }
  void keep(const std::vector<std::optional<TensorId>>& ids, std::size_t i) {
    if (i < ids.size() && ids[i])
      keep(*ids[i]);
  }

  void visit(OpId id) {
    const Operator& op = graph_.op(id);
    if (fused_.count(id) != 0)
      return;
    if (op.phase == Phase::forward) {
      if (is_selection(op) || is_view(graph_, op))
        view(op);
      else if (requires_grad_by_output(op) && !keep_by_type(op))
        unknown_.insert(id);
    } else if (op.phase == Phase::loss) {
      unknown_.insert(id);
    } else if (op.phase == Phase::backward && op.forward_op && unknown_.count(*op.forward_op) > 0) {
      keep_reads(op);
    }
  }

  bool requires_grad_by_output(const Operator& op) const {
    return std::any_of(op.outputs.begin(), op.outputs.end(),
                       [&](const auto& output) { return output && requires_grad(*output); });
  }

  /// x[:, 0]: one index taken out of an axis is a view in PyTorch.
  bool is_selection(const Operator& op) const {
    return op.op_type == "Gather" && op.inputs.size() > 1 && op.inputs[1] &&
           tensor(*op.inputs[1]).values && tensor(*op.inputs[1]).shape.empty() &&
           !tensor(*op.inputs[0]).shape.empty();
  }

  void view(const Operator& op) {
    const TensorId source = *op.inputs[0];
    const Shape& from = tensor(source).shape;
    for (const auto& output : op.outputs) {
      if (!output)
        continue;
      const auto strides = strides_through(op, layout(source), from, tensor(*output).shape);
      if (strides)
        layouts_[output->index()] = Layout{layout(source).storage, *strides};
    } // without strides: a copy, a storage of its own
  }

  std::optional<Shape> strides_through(const Operator& op, const Layout& source, const Shape& from,
                                       const Shape& to) const {
    Shape strides = source.strides;
    if (op.op_type == "Transpose") {
      const Shape order = op.attributes.integers("perm");
      for (std::size_t i = 0; i < strides.size(); ++i)
        strides[i] = source.strides[order.empty() ? strides.size() - 1 - i
                                                  : static_cast<std::size_t>(order[i])];
      return strides;
    }
    if (op.op_type == "Slice" || op.op_type == "Split")
      return strides;
    if (op.op_type == "Gather") {
      const std::size_t axis = normal_axis(op.attributes.integer("axis", 0), from.size());
      strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(axis));
      return strides;
    }
    if (op.op_type == "Expand") {
      const std::size_t added = to.size() - from.size();
      Shape wide(to.size(), 0);
      for (std::size_t i = 0; i < from.size(); ++i)
        wide[i + added] = from[i] == to[i + added] ? strides[i] : 0;
      return wide;
    }
    return reshaped_strides(source, from, to);
  }

  bool keep_by_type(const Operator& op) {
    if (op.op_type == "MatMul") {
      keep_factors(op);
    } else if (op.op_type == "Gemm") {
      keep_other(op, 0);
      keep_other(op, 1);
    } else if (op.op_type == "Mul") {
      keep_other(op, 0);
      keep_other(op, 1);
    } else if (op.op_type == "Div") {
      keep_number_or_tensor(op, 1);
      keep_other(op, 1);
    } else if (op.op_type == "NegativeLogLikelihoodLoss") {
      keep_flags(op, kX | kX1 | kY1);
      keep(op.inputs, 2);
      if (op.outputs.size() < 2) // what it divides by, or would
        copied_bytes_ += bytes_of(size_of(tensor(*op.outputs[0])));
    } else if (op.op_type == "Mod") {
      keep_remainder(op);
    } else if (op.op_type == "Pad") {
      if (op.attributes.text("mode", "constant") != "constant")
        keep(op.inputs, 0);
    } else if (op.op_type == "ReduceMean") {
      if (reduced_axes(op) < tensor(*op.inputs[0]).shape.size()) // of everything, only sizes
        keep(op.inputs, 0);
    } else if (op.op_type == "ReduceMax" || op.op_type == "ReduceMin") {
      keep_extremum(op);
    } else if (op.op_type == "AveragePool") {
      keep_unpadded(op);
    } else if (op.op_type == "Dropout") {
      keep_mask(op);
    } else if (op.op_type == "Pow") {
      keep(op.inputs, 0);
      if (requires_grad(op, 1)) {
        keep(op.inputs, 1);
        keep(op.outputs, 0);
      }
    } else {
      const auto* entry = std::find_if(std::begin(kKept), std::end(kKept), [&](const Kept& kept) {
        return kept.op_type == op.op_type;
      });
      if (entry == std::end(kKept))
        return false;
      keep_flags(op, entry->what);
      if (op.op_type == "InstanceNormalization")
        keep_repeated_scale(op);
      if (op.op_type == "RMSNormalization")
        keep_squares(op);
      if (op.op_type == "RoiAlign")
        keep_regions(op);
    }
    return true;
  }

  const Operator* maker(std::optional<TensorId> id, std::string_view op_type) const {
    const auto producer = id ? tensor(*id).producer : std::nullopt;
    const bool right = producer && graph_.op(*producer).op_type == op_type;
    return right ? &graph_.op(*producer) : nullptr;
  }
  bool is_parameter(std::optional<TensorId> id) const {
    return id && tensor(*id).kind == TensorKind::parameter;
  }

  /// What makes the tensor that this one is a view of.
  const Operator* maker_behind(TensorId id, std::string_view op_type) const {
    return maker(storage_root(graph_, id), op_type);
  }

  void fuse(std::initializer_list<const Operator*> parts) {
    for (const Operator* part : parts)
      fused_.insert(*tensor(*part->outputs[0]).producer);
  }

  void find_fused() {
    for (const Operator& op : graph_.operators()) {
      if (op.op_type == "RoiAlign" && maker(op.inputs[1], "Gather"))
        fuse({maker(op.inputs[1], "Gather")}); // a file has the corners apart
      if (op.phase != Phase::forward || op.inputs.size() != 2 || !op.inputs[0] || !op.inputs[1])
        continue;
      for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
        if (op.op_type == "Mul" &&
            (fuse_weight_normalisation(op, side) || fuse_gated_unit(op, side)))
          break;
        if (op.op_type == "Add" && fuse_gru(op, side))
          break;
        if (op.op_type == "Sub" && fuse_remainder(op, side))
          break;
      }
    }
  }

  /// g * v / |v| keeps the lengths alone.
  bool fuse_weight_normalisation(const Operator& op, std::size_t side) {
    const Operator* unit = maker(op.inputs[side], "Div");
    const Operator* length = unit ? maker(unit->inputs[1], "ReduceL2") : nullptr;
    if (!length || !is_parameter(op.inputs[1 - side]) || !is_parameter(unit->inputs[0]) ||
        length->inputs[0] != unit->inputs[0])
      return false;
    keep(length->outputs, 0);
    fuse({&op, unit, length});
    return true;
  }

  /// a * sigmoid(b) of the two halves of one tensor, torch's glu, keeps that tensor.
  bool fuse_gated_unit(const Operator& op, std::size_t side) {
    const Operator* gate = maker(op.inputs[side], "Sigmoid");
    const Operator* halves = gate ? maker(gate->inputs[0], "Split") : nullptr;
    if (!halves || halves->outputs.size() != 2 || halves->outputs[0] != op.inputs[1 - side] ||
        halves->outputs[1] != gate->inputs[0] || !requires_grad_by_output(op))
      return false;
    keep(halves->inputs, 0);
    fuse({&op, gate});
    return true;
  }

  /// n + z * (h - n) with n = tanh(x + r * y): the gates of a step are made where the product with
  /// h lies, of three states' size; y, n and h - n are kept beside it.
  bool fuse_gru(const Operator& op, std::size_t side) {
    const Operator* candidate = maker(op.inputs[side], "Tanh");
    const Operator* change = maker(op.inputs[1 - side], "Mul");
    const Operator* sum = candidate ? maker(candidate->inputs[0], "Add") : nullptr;
    if (!change || !sum || !requires_grad(*op.inputs[side]))
      return false;
    const Operator* reset = maker(sum->inputs[0], "Mul");
    if (!reset)
      reset = maker(sum->inputs[1], "Mul");
    const auto gate_of = [&](const Operator& product) -> const Operator* {
      const Operator* gate = maker_behind(*product.inputs[0], "Sigmoid");
      return gate ? gate : maker_behind(*product.inputs[1], "Sigmoid");
    };
    const auto is_difference = [&](std::optional<TensorId> id) {
      const Operator* minus = maker(id, "Sub");
      return minus && minus->inputs[1] == op.inputs[side];
    };
    if (!reset || !gate_of(*reset) || !gate_of(*change) ||
        (!is_difference(change->inputs[0]) && !is_difference(change->inputs[1])))
      return false;
    copied_bytes_ += 6 * bytes_of(size_of(tensor(*op.inputs[side])));
    fuse({candidate, change, reset, gate_of(*reset), gate_of(*change)});
    return true;
  }

  /// a - floor(a / b) * b, torch's remainder.
  bool fuse_remainder(const Operator& op, std::size_t side) {
    const Operator* product = maker(op.inputs[1], "Mul");
    const Operator* floor = product ? maker(product->inputs[side], "Floor") : nullptr;
    const Operator* quotient = floor ? maker(floor->inputs[0], "Div") : nullptr;
    if (!quotient || quotient->inputs[0] != op.inputs[0] ||
        quotient->inputs[1] != product->inputs[1 - side])
      return false;
    keep_remainder(*quotient);
    fuse({&op, product, floor, quotient});
    return true;
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
      copied_bytes_ += 8 * element_count(tensor(*op.outputs[0]));
      return;
    }
    keep(op.inputs, 0);
    keep(op.outputs, 0);
  }

  /// The exporter spells a padded average as Pad and AveragePool.
  void keep_unpadded(const Operator& op) {
    const auto producer = tensor(*op.inputs[0]).producer;
    const bool padded = producer && graph_.op(*producer).op_type == "Pad";
    keep(padded ? *graph_.op(*producer).inputs[0] : *op.inputs[0]);
  }

  /// PyTorch 1.13 has no such operator: its mean keeps the squares, the product with the scale what
  /// is scaled.
  void keep_squares(const Operator& op) {
    const std::int64_t bytes = bytes_of(size_of(tensor(*op.inputs[0])));
    copied_bytes_ += requires_grad(op, 1) ? 2 * bytes : bytes;
  }

  /// Instance normalisation is a batch normalisation of one image with every image's channels, for
  /// which the scale is repeated.
  void keep_repeated_scale(const Operator& op) {
    if (op.inputs.size() < 2 || !op.inputs[1] ||
        tensor(*op.inputs[1]).kind != TensorKind::parameter)
      return;
    const Shape& shape = tensor(*op.inputs[0]).shape;
    copied_bytes_ += shape.at(0) * bytes_of(size_of(tensor(*op.inputs[1])));
  }

  /// torchvision's regions hold the number of their image as a fifth number.
  void keep_regions(const Operator& op) {
    const Tensor& corners = tensor(*op.inputs[1]);
    copied_bytes_ += bytes_of(size_of(corners)) / 4 * 5;
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
      copied_bytes_ += 8;
    else
      keep(op.inputs, input);
  }

  /// On a CPU, as 32-bit networks are measured, the mask is a tensor of what the result is
  /// multiplied by; the fused operator of GPUs, where 16-bit networks run, keeps one byte an
  /// element.
  void keep_mask(const Operator& op) {
    if (op.outputs.size() < 2 || !op.outputs[1])
      return;
    const Tensor& result = tensor(*op.outputs[0]);
    keep(op.outputs, 1);
    if (bits_of(result.type) >= 32)
      copied_bytes_ += bytes_of(size_of(result)) - bytes_of(size_of(tensor(*op.outputs[1])));
  }

  /// Batched factors are expanded and reshaped to three axes, a stack of rows times a matrix to
  /// two; that copies what does not lie in memory like that.
  void keep_factors(const Operator& op) {
    const Shape& result = tensor(*op.outputs[0]).shape;
    for (std::size_t i = 0; i < 2; ++i) {
      if (!requires_grad(op, 1 - i))
        continue;
      const TensorId factor = *op.inputs[i];
      const Shape& shape = tensor(factor).shape;
      const std::size_t other = tensor(*op.inputs[1 - i]).shape.size();
      if (shape.size() < 3 || (other < 3 && i == 1)) {
        keep(factor);
        continue;
      }
      Shape wide = shape;
      Layout seen = layout(factor);
      if (other >= 3) {
        wide.assign(result.begin(), result.end() - 2);
        wide.insert(wide.end(), shape.end() - 2, shape.end());
        Shape strides(wide.size(), 0);
        const std::size_t added = wide.size() - shape.size();
        for (std::size_t k = 0; k < shape.size(); ++k)
          strides[k + added] = shape[k] == wide[k + added] ? seen.strides[k] : 0;
        seen.strides = strides;
      }
      std::int64_t rows = 1;
      const std::size_t joined = other >= 3 ? wide.size() - 2 : wide.size() - 1;
      for (std::size_t k = 0; k < joined; ++k)
        rows *= wide[k];
      Shape flat{rows};
      flat.insert(flat.end(), wide.begin() + static_cast<std::ptrdiff_t>(joined), wide.end());
      if (reshaped_strides(seen, wide, flat)) {
        keep(factor);
      } else {
        Tensor copy = tensor(factor);
        copy.shape = flat;
        copied_bytes_ += bytes_of(size_of(copy));
        copied_.insert(storage_root(graph_, factor));
      }
    }
  }

  /// Operators of which PyTorch's node is not known keep what our backward reads of the forward.
  void keep_reads(const Operator& backward) {
    for (const TensorId input : present(backward.inputs)) {
      const Tensor& root = tensor(storage_root(graph_, input));
      const bool made = root.producer
                            ? graph_.op(*root.producer).phase == Phase::forward ||
                                  graph_.op(*root.producer).phase == Phase::loss
                            : root.kind == TensorKind::input || root.kind == TensorKind::label;
      if (made)
        keep(input);
    }
  }

  const Graph& graph_;
  const std::vector<bool>& requires_grad_;
  std::vector<std::optional<Layout>> layouts_;
  std::set<TensorId> kept_;   ///< storages, by the tensor they were made for
  std::set<TensorId> copied_; ///< tensors of which products made copies
  std::int64_t copied_bytes_ = 0;
  std::set<OpId> unknown_;
  std::set<OpId> fused_; ///< parts of what is one operator in PyTorch
};

} // namespace

EagerStorage find_eager_storage(const Graph& step, const std::vector<bool>& requires_grad) {
  return EagerModel(step, requires_grad).run();
}

} // namespace monet
