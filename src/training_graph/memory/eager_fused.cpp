// Finds chains that are one operator in PyTorch, for eager.cpp.
#include "training_graph/memory/eager_parts.hpp"
#include "workload/shared/op_types.hpp"
#include "workload/shared/views.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace monet {

namespace {

/// One chain after the other, from its last operator.
class FusedChains {
public:
  FusedChains(const Graph& graph, const std::vector<bool>& requires_grad)
      : graph_(graph), requires_grad_(requires_grad) {}

  std::vector<EagerFused> run() {
    using Match = bool (FusedChains::*)(const Operator&);
    struct Row {
      std::string_view last;
      Match match;
    };
    static constexpr std::array kRows{
        Row{ops::Mul, &FusedChains::weight_normalisation},
        Row{ops::Mul, &FusedChains::gated_unit},
        Row{ops::Mul, &FusedChains::multiplied_by_one},
        Row{ops::Add, &FusedChains::gated_recurrent_unit},
        Row{ops::Add, &FusedChains::soft_shrink},
        Row{ops::Div, &FusedChains::soft_plus},
        Row{ops::Div, &FusedChains::inverse_root},
        Row{ops::Div, &FusedChains::cosine_similarity},
        Row{ops::Log, &FusedChains::log_sigmoid},
        Row{ops::Neg, &FusedChains::binary_cross_entropy},
        Row{ops::Where, &FusedChains::divergence},
        Row{ops::Gather, &FusedChains::unfold},
        Row{ops::Gather, &FusedChains::corners},
        Row{ops::Sub, &FusedChains::remainder},
        Row{ops::ReduceSum, &FusedChains::embedding_bag},
        Row{ops::ReduceMean, &FusedChains::embedding_bag},
        Row{ops::Concat, &FusedChains::ragged_bags},
        Row{ops::ReduceMean, &FusedChains::variance},
        Row{ops::Where, &FusedChains::hard_shrink},
        Row{ops::Reciprocal, &FusedChains::one_over},
        Row{ops::ReduceMax, &FusedChains::embedding_bag},
    };
    for (const Operator& op : graph_.operators()) {
      if (op.phase != Phase::forward || !op.domain.empty())
        continue;
      for (const Row& row : kRows) {
        if (row.last == op.op_type && (this->*row.match)(op))
          break;
      }
    }
    return std::move(found_);
  }

private:
  using Id = std::optional<TensorId>;

  const Tensor& tensor(TensorId id) const { return graph_.tensor(id); }
  std::int64_t bytes(TensorId id) const { return bytes_of(size_of(tensor(id))); }
  bool requires_grad(Id id) const {
    return id && id->index() < requires_grad_.size() && requires_grad_[id->index()];
  }
  bool is_parameter(Id id) const { return id && tensor(*id).kind == TensorKind::parameter; }

  const Operator* maker(Id id, OpType op_type) const {
    const auto producer = id ? tensor(*id).producer : std::nullopt;
    const bool right = producer && graph_.op(*producer).op_type == op_type;
    return right ? &graph_.op(*producer) : nullptr;
  }
  /// Producer of the tensor behind this view.
  const Operator* maker_behind(TensorId id, OpType op_type) const {
    return maker(storage_root(graph_, id), op_type);
  }

  /// A product, sum or quotient of two: the operand on one side, and the other.
  struct Sides {
    const Operator* made;
    TensorId other;
  };
  std::optional<Sides> side(const Operator* op, OpType op_type) const {
    if (!op || op->inputs.size() != 2 || !op->inputs[0] || !op->inputs[1])
      return std::nullopt;
    for (std::size_t i = 0; i < 2; ++i) {
      if (const Operator* made = maker(op->inputs[i], op_type))
        return Sides{made, *op->inputs[1 - i]};
    }
    return std::nullopt;
  }

  std::ptrdiff_t forward_readers(TensorId id) const {
    const std::vector<OpId>& readers = tensor(id).consumers;
    return std::ranges::count_if(
        readers, [&](OpId reader) { return graph_.op(reader).phase == Phase::forward; });
  }

  std::optional<double> number(Id id) const {
    if (!id || tensor(*id).kind != TensorKind::constant)
      return std::nullopt;
    const auto* values = reals_of(tensor(*id).values);
    return values && values->size() == 1 ? std::optional(values->front()) : std::nullopt;
  }

  bool add(const std::vector<const Operator*>& parts, std::vector<TensorId> kept,
           std::int64_t copied = 0) {
    EagerFused fused{{}, std::move(kept), copied};
    for (const Operator* part : parts)
      fused.parts.push_back(*tensor(*part->outputs[0]).producer);
    found_.push_back(std::move(fused));
    return true;
  }

  /// g * v / |v| keeps the lengths alone.
  bool weight_normalisation(const Operator& op) {
    const auto factors = side(&op, ops::Div);
    const Operator* length = factors ? maker(factors->made->inputs[1], ops::ReduceL2) : nullptr;
    if (!length || !is_parameter(factors->other) || !is_parameter(factors->made->inputs[0]) ||
        length->inputs[0] != factors->made->inputs[0])
      return false;
    return add({&op, factors->made, length}, {*length->outputs[0]});
  }

  /// a * sigmoid(b) of the two halves of one tensor, torch's glu, keeps that tensor.
  bool gated_unit(const Operator& op) {
    const auto factors = side(&op, ops::Sigmoid);
    const Operator* halves = factors ? maker(factors->made->inputs[0], ops::Split) : nullptr;
    if (!halves || halves->outputs.size() != 2 || halves->outputs[0] != factors->other ||
        halves->outputs[1] != factors->made->inputs[0] || !requires_grad(op.outputs[0]))
      return false;
    return add({&op, factors->made}, {*halves->inputs[0]});
  }

  /// The exporter scales both terms of baddbmm() by one.
  bool multiplied_by_one(const Operator& op) {
    const auto term = scaled_by(1.0, op);
    const std::vector<OpId>& readers = tensor(*op.outputs[0]).consumers;
    const auto adds_product = [&](OpId id) {
      const Operator& reader = graph_.op(id);
      if (reader.op_type != ops::Add || reader.phase != Phase::forward)
        return false;
      return std::ranges::any_of(reader.inputs, [&](Id input) {
        const Operator* scaled = maker(input, ops::Mul);
        const auto other = scaled ? scaled_by(1.0, *scaled) : std::nullopt;
        return other && maker(*other, ops::MatMul);
      });
    };
    return term && std::ranges::any_of(readers, adds_product) && add({&op}, {});
  }

  /// Other factor of a product with this number; nullopt for any other product.
  Id scaled_by(double factor, const Operator& op) const {
    for (std::size_t i = 0; i < 2 && op.inputs.size() == 2; ++i) {
      if (number(op.inputs[i]) == factor)
        return op.inputs[1 - i];
    }
    return std::nullopt;
  }

  /// n + z * (h - n) with n = tanh(x + r * y): the gates of a step are made where the product with
  /// h lies, of three states' size; y, n and h - n are kept, too.
  bool gated_recurrent_unit(const Operator& op) {
    const auto terms = side(&op, ops::Tanh);
    if (!terms || !requires_grad(terms->made->outputs[0]))
      return false;
    const TensorId candidate = *terms->made->outputs[0];
    const Operator* change = maker(terms->other, ops::Mul);
    const auto sum = side(maker(terms->made->inputs[0], ops::Add), ops::Mul);
    if (!change || !sum)
      return false;
    const auto gate_of = [&](const Operator& product) -> const Operator* {
      const Operator* gate = maker_behind(*product.inputs[0], ops::Sigmoid);
      return gate ? gate : maker_behind(*product.inputs[1], ops::Sigmoid);
    };
    const auto is_difference = [&](Id id) {
      const Operator* minus = maker(id, ops::Sub);
      return minus && minus->inputs[1] == candidate;
    };
    const Operator* reset = gate_of(*sum->made);
    const Operator* update = gate_of(*change);
    if (!reset || !update ||
        (!is_difference(change->inputs[0]) && !is_difference(change->inputs[1])))
      return false;
    return add({terms->made, change, sum->made, reset, update}, {}, 6 * bytes(candidate));
  }

  /// (x > l ? x - l : 0) + (x < -l ? x + l : 0)
  bool soft_shrink(const Operator& op) {
    const auto half = [&](Id id, std::string_view comparison,
                          std::string_view shift) -> const Operator* {
      const Operator* where = maker(id, ops::Where);
      const Operator* test = where ? maker(where->inputs[0], comparison) : nullptr;
      const Operator* moved = where ? maker(where->inputs[1], shift) : nullptr;
      const bool matches = test && moved && test->inputs[0] == moved->inputs[0] &&
                           number(test->inputs[1]) && number(moved->inputs[1]);
      return matches ? where : nullptr;
    };
    const Operator* above = half(op.inputs[0], ops::Greater, ops::Sub);
    const Operator* below = half(op.inputs[1], ops::Less, ops::Add);
    if (!above || !below)
      return false;
    const Operator* down = maker(above->inputs[1], ops::Sub);
    const Operator* up = maker(below->inputs[1], ops::Add);
    if (down->inputs[0] != up->inputs[0])
      return false;
    return add({&op, above, below, down, up}, {*down->inputs[0]});
  }

  /// log(1 + exp(b x)) / b
  bool soft_plus(const Operator& op) {
    const Operator* soft = maker(op.inputs[0], ops::Softplus);
    const Operator* scaled = soft ? maker(soft->inputs[0], ops::Mul) : nullptr;
    const auto slope = number(op.inputs[1]);
    const Id argument = scaled && slope ? scaled_by(*slope, *scaled) : std::nullopt;
    return argument && add({&op, soft, scaled}, {*argument});
  }

  /// 1 / sqrt(x), torch's rsqrt
  bool inverse_root(const Operator& op) {
    const Operator* root = maker(op.inputs[1], ops::Sqrt);
    if (!root || number(op.inputs[0]) != 1.0 || !requires_grad(op.outputs[0]))
      return false;
    return add({&op, root}, {*op.outputs[0]});
  }

  /// a b / max(sqrt(a a * b b), eps), summed along an axis: both are divided by their lengths.
  bool cosine_similarity(const Operator& op) {
    const Operator* dot = maker(op.inputs[0], ops::ReduceSum);
    const Operator* product = dot ? maker(dot->inputs[0], ops::Mul) : nullptr;
    const Operator* most = maker(op.inputs[1], ops::Max);
    const Operator* root =
        most && most->inputs.size() == 2 ? maker(most->inputs[0], ops::Sqrt) : nullptr;
    const Operator* lengths = root ? maker(root->inputs[0], ops::Mul) : nullptr;
    if (!product || !lengths || !number(most->inputs[1]))
      return false;
    std::vector<const Operator*> parts{&op, dot, product, most, root, lengths};
    std::vector<TensorId> kept;
    std::int64_t copied = 0;
    for (std::size_t i = 0; i < 2; ++i) {
      if (!requires_grad(product->inputs[i])) // its length may be a constant
        continue;
      const Operator* sum = maker(lengths->inputs[i], ops::ReduceSum);
      const Operator* square = sum ? maker(sum->inputs[0], ops::Mul) : nullptr;
      if (!square || square->inputs[0] != square->inputs[1] ||
          square->inputs[0] != product->inputs[i])
        return false;
      parts.insert(parts.end(), {sum, square});
      kept.push_back(*product->inputs[i]);
      copied += bytes(*dot->outputs[0]) + bytes(*product->outputs[0]);
    }
    return add(parts, std::move(kept), copied);
  }

  bool log_sigmoid(const Operator& op) {
    const Operator* gate = maker(op.inputs[0], ops::Sigmoid);
    if (!gate || !requires_grad(op.outputs[0]) || forward_readers(*gate->outputs[0]) != 1)
      return false;
    return add({&op, gate}, {*gate->inputs[0]}, bytes(*gate->outputs[0]));
  }

  /// -(t log(s) + (1 - t) log(1 - s)) with s = sigmoid(x), as binary_cross_entropy_with_logits() is
  /// exported: x and t are kept.
  bool binary_cross_entropy(const Operator& op) {
    const Operator* sum = maker(op.inputs[0], ops::Add);
    const auto right = sum ? side(maker(sum->inputs[0], ops::Mul), ops::Log) : std::nullopt;
    const auto wrong = sum ? side(maker(sum->inputs[1], ops::Mul), ops::Log) : std::nullopt;
    if (!right || !wrong)
      return false;
    const Operator* gate = maker(right->made->inputs[0], ops::Sigmoid);
    const Operator* rest = maker(wrong->made->inputs[0], ops::Sub);
    const Operator* other = maker(wrong->other, ops::Sub);
    if (!gate || !rest || rest->inputs[1] != gate->outputs[0] ||
        (other && other->inputs[1] != right->other))
      return false;
    return add({&op, sum, maker(sum->inputs[0], ops::Mul), maker(sum->inputs[1], ops::Mul),
                right->made, wrong->made, gate, rest},
               {*gate->inputs[0], right->other});
  }

  /// t > 0 ? t * (log t - q) : 0, as kl_div() is exported: t and q are kept.
  bool divergence(const Operator& op) {
    const Operator* test = maker(op.inputs[0], ops::Greater);
    const auto terms = side(maker(op.inputs[1], ops::Mul), ops::Sub);
    const Operator* log = terms ? maker(terms->made->inputs[0], ops::Log) : nullptr;
    if (!test || !log || log->inputs[0] != terms->other || test->inputs[0] != terms->other)
      return false;
    return add({&op, test, maker(op.inputs[1], ops::Mul), terms->made, log},
               {terms->other, *terms->made->inputs[1]});
  }

  /// Windows of rows, then of columns, gathered by constant places: torch's im2col keeps what
  /// it unfolds.
  bool unfold(const Operator& op) {
    const auto is_windows = [&](const Operator* gather) {
      return gather && gather->inputs.size() == 2 && gather->inputs[1] &&
             tensor(*gather->inputs[1]).kind == TensorKind::constant &&
             tensor(*gather->inputs[1]).shape.size() == 2;
    };
    const Operator* rows = maker(op.inputs[0], ops::Gather);
    if (!is_windows(&op) || !is_windows(rows) || op.attributes.integer("axis", 0) != 4 ||
        rows->attributes.integer("axis", 0) != 2)
      return false;
    const Operator* padded = maker(rows->inputs[0], ops::Pad);
    return add({&op, rows}, {padded ? *padded->inputs[0] : *rows->inputs[0]});
  }

  /// Files store the corners of regions separately from the image numbers.
  bool corners(const Operator& op) {
    const std::vector<OpId>& readers = tensor(*op.outputs[0]).consumers;
    const bool regions = std::ranges::any_of(readers, [&](OpId id) {
      const Operator& reader = graph_.op(id);
      return reader.op_type == ops::RoiAlign && reader.inputs[1] == op.outputs[0];
    });
    return regions && add({&op}, {});
  }

  /// a - floor(a / b) * b: how often b fits is found again for its gradient.
  bool remainder(const Operator& op) {
    const auto product = side(maker(op.inputs[1], ops::Mul), ops::Floor);
    const Operator* quotient = product ? maker(product->made->inputs[0], ops::Div) : nullptr;
    if (!quotient || quotient->inputs[0] != op.inputs[0] || quotient->inputs[1] != product->other)
      return false;
    std::vector<TensorId> kept;
    if (requires_grad(quotient->inputs[1]))
      kept = {*quotient->inputs[0], *quotient->inputs[1]};
    return add({&op, maker(op.inputs[1], ops::Mul), product->made, quotient}, std::move(kept));
  }

  /// The mean of (x - mean x)^2, scaled by n / (n - 1) where it is unbiased: x is kept. A
  /// normalisation written by hand reads difference or mean again.
  bool variance(const Operator& op) {
    const Operator* square = maker(op.inputs[0], ops::Mul);
    const Operator* difference = square ? maker(square->inputs[0], ops::Sub) : nullptr;
    const Operator* mean = difference ? maker(difference->inputs[1], ops::ReduceMean) : nullptr;
    if (!mean || square->inputs[0] != square->inputs[1] ||
        mean->inputs[0] != difference->inputs[0] || !requires_grad(op.outputs[0]) ||
        forward_readers(*difference->outputs[0]) != 1 || forward_readers(*mean->outputs[0]) != 1)
      return false;
    std::vector<const Operator*> parts{&op, square, difference, mean};
    const Operator* scaled = only_reader(*op.outputs[0], ops::Mul);
    const Operator* unbiased = scaled ? only_reader(*scaled->outputs[0], ops::Div) : nullptr;
    const auto count = scaled ? number(scaled->inputs[1]) : std::nullopt;
    const auto less = unbiased ? number(unbiased->inputs[1]) : std::nullopt;
    if (count && less && *count == *less + 1.0)
      parts.insert(parts.end(), {scaled, unbiased});
    return add(parts, {*difference->inputs[0]});
  }

  /// The operator that alone reads a tensor forward.
  const Operator* only_reader(TensorId id, OpType op_type) const {
    if (forward_readers(id) != 1)
      return nullptr;
    for (const OpId reader : tensor(id).consumers) {
      const Operator& op = graph_.op(reader);
      if (op.phase == Phase::forward)
        return op.op_type == op_type ? &op : nullptr;
    }
    return nullptr;
  }

  /// 1 / x is a reciprocal times one, which an export leaves out: both results and the number.
  bool one_over(const Operator& op) {
    const TensorId result = *op.outputs[0];
    const Operator* product = only_reader(result, ops::Mul);
    const bool scaled = product && (number(product->inputs[0]) || number(product->inputs[1]));
    if (!requires_grad(result) || scaled)
      return false;
    return add({&op}, {result}, bytes(result) + 8);
  }

  /// x where |x| is large, written with two comparisons.
  bool hard_shrink(const Operator& op) {
    const Operator* either = maker(op.inputs[0], ops::Or);
    const auto compared = [&](std::size_t i, std::string_view comparison) -> const Operator* {
      const Operator* cast = either ? maker(either->inputs[i], ops::Cast) : nullptr;
      return either ? maker(cast ? cast->inputs[0] : either->inputs[i], comparison) : nullptr;
    };
    const Operator* above = compared(0, ops::Greater);
    const Operator* below = compared(1, ops::Less);
    if (!above || !below || above->inputs[0] != below->inputs[0] ||
        above->inputs[0] != op.inputs[1])
      return false;
    return add({&op, either, above, below}, {*op.inputs[1]});
  }

  /// In addition to indices and weights, embedding_bag() keeps where bags begin, how long they are,
  /// which rows were largest and, but for sums, the bag of every row and of the end: all as int64.
  std::int64_t bag_bytes(const Operator& reduction, const Tensor& result, std::int64_t rows) const {
    const std::int64_t bags = result.shape.empty() ? 1 : result.shape[0];
    const std::int64_t places = reduction.op_type == ops::ReduceMax ? element_count(result) : bags;
    return 8 * (2 * bags + places + (reduction.op_type == ops::ReduceSum ? 0 : rows + 1));
  }

  /// Bags of one length: what their export is read as is called after its loop.
  bool embedding_bag(const Operator& op) {
    const Operator* weighted = maker(op.inputs[0], ops::Mul);
    const Operator* rows = maker(weighted ? weighted->inputs[0] : op.inputs[0], ops::Gather);
    if (!rows || rows->name.rfind(op.name + "/", 0) != 0 || !is_parameter(rows->inputs[0]))
      return false;
    std::vector<TensorId> kept{*rows->inputs[1]};
    std::vector<const Operator*> parts{&op, rows};
    if (weighted) {
      kept.push_back(*weighted->inputs[1]);
      parts.push_back(weighted);
    }
    return add(parts, std::move(kept),
               bag_bytes(op, tensor(*op.outputs[0]), element_count(tensor(*rows->inputs[1]))));
  }

  /// Bags of different lengths, processed one by one in a loop.
  bool ragged_bags(const Operator& op) {
    const std::size_t end = op.name.rfind("/out");
    std::vector<const Operator*> parts{&op};
    const Operator* reduction = nullptr;
    std::vector<TensorId> kept;
    std::int64_t rows = 0;
    for (const auto& input : op.inputs) {
      const auto made = graph_.tensor(storage_root(graph_, *input)).producer;
      reduction = made ? &graph_.op(*made) : nullptr;
      const Operator* looked_up = reduction ? maker(reduction->inputs[0], ops::Gather) : nullptr;
      if (end == std::string::npos || !looked_up || !is_parameter(looked_up->inputs[0]) ||
          !reduction->op_type.starts_with("Reduce") ||
          looked_up->name.rfind(op.name.substr(0, end + 1), 0) != 0)
        return false;
      parts.insert(parts.end(), {reduction, looked_up});
      rows += element_count(tensor(*looked_up->inputs[1]));
      kept.push_back(storage_root(graph_, *looked_up->inputs[1]));
    }
    return reduction &&
           add(parts, std::move(kept), bag_bytes(*reduction, tensor(*op.outputs[0]), rows));
  }

  const Graph& graph_;
  const std::vector<bool>& requires_grad_;
  std::vector<EagerFused> found_;
};

} // namespace

std::vector<EagerFused> find_eager_fused(const Graph& graph,
                                         const std::vector<bool>& requires_grad) {
  return FusedChains(graph, requires_grad).run();
}

} // namespace monet
