// Sparse update (Lin et al. 2022, "On-device training under 256 KB memory"): biases, and the first
// output channels of chosen weights. Such a weight becomes two parameters, joined before the
// product that reads it, and the gradient of the trained one alone is computed
// (gradients/linear.cpp).
#include "training_graph/build/rebuild.hpp"
#include "training_graph/forward/forward.hpp"
#include "workload/shared/op_types.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_set>

namespace monet {

namespace {

/// Axis of the output channels of a product's weight; nullopt where it is no weight.
std::optional<std::size_t> channel_axis(const Graph& network, const Operator& op) {
  if (!op.domain.empty() || op.inputs.size() < 2 || !op.inputs[1])
    return std::nullopt;
  const Tensor& weight = network.tensor(*op.inputs[1]);
  if (weight.kind != TensorKind::parameter || !is_floating(weight.type))
    return std::nullopt;
  if (op.op_type == ops::Conv)
    return 0;
  if (op.op_type == ops::Gemm)
    return op.attributes.integer("transB", 0) != 0 ? 0 : 1;
  if (op.op_type == ops::MatMul && weight.shape.size() == 2)
    return 1;
  return std::nullopt;
}

/// A matrix that nothing but products reads through this operator, transposed, as linear layers are
/// exported.
bool is_transposed_weight(const Graph& network, const Operator& op) {
  if (!op.domain.empty() || op.op_type != ops::Transpose || !op.inputs[0] || !op.outputs[0])
    return false;
  const Tensor& weight = network.tensor(*op.inputs[0]);
  if (weight.kind != TensorKind::parameter || !is_floating(weight.type) || weight.shape.size() != 2)
    return false;
  const auto& readers = network.tensor(*op.outputs[0]).consumers;
  return op.attributes.integers("perm", {1, 0}) == Integers{1, 0} && !readers.empty() &&
         std::ranges::all_of(readers, [&](OpId id) {
           const Operator& reader = network.op(id);
           return reader.domain.empty() && reader.op_type == ops::MatMul &&
                  reader.inputs[1] == op.outputs[0] && reader.inputs[0] != op.outputs[0];
         });
}

class ChannelSplitter {
public:
  ChannelSplitter(const Graph& network, const SparseOptions& options)
      : network_(network), options_(options), patterns_(patterns_of(options)), made_(network) {}

  AdaptedNetwork run() {
    for (const Operator& op : network_.operators()) {
      if (is_transposed_weight(network_, op))
        choose(op, *op.inputs[0], 0);
      else if (const auto axis = channel_axis(network_, op))
        choose(op, *op.inputs[1], *axis);
    }
    for (std::size_t i = 0; i < network_.operators().size(); ++i) {
      if (!split_before(network_.operators()[i]))
        made_.copy(OpId(i));
    }
    ProblemList problems;
    patterns_.report(
        network_, "no weight of a MatMul, Gemm or Conv matches the pattern '{}' of a sparse update",
        problems);
    problems.throw_if_any();
    return {made_.release(), std::move(trained_), std::move(parts_)};
  }

private:
  struct Cut {
    std::size_t axis = 0;
    std::int64_t taken = 0; ///< channels that are trained
  };

  static std::vector<std::string> patterns_of(const SparseOptions& options) {
    std::vector<std::string> patterns;
    for (const auto& channels : options.channels)
      patterns.push_back(channels.match);
    return patterns;
  }

  /// `op`: the first product that reads the weight, or its transpose. At least one channel is
  /// trained; whole groups of a convolution.
  void choose(const Operator& op, TensorId weight, std::size_t axis) {
    const auto pattern = patterns_.first_match(network_.tensor(weight).name);
    if (!pattern || !done_.insert(weight.value).second)
      return;
    const double share = options_.channels[*pattern].share;
    const std::int64_t all = network_.tensor(weight).shape[axis];
    const std::int64_t groups = op.op_type == ops::Conv ? op.attributes.integer("group", 1) : 1;
    const std::int64_t step = groups > 1 ? std::max<std::int64_t>(1, all / groups) : 1;
    const auto wanted = static_cast<std::int64_t>(std::ceil(share * static_cast<double>(all)));
    const std::int64_t taken =
        std::min(all, ceil_div(std::max<std::int64_t>(1, wanted), step) * step);
    if (taken == all)
      trained_.push_back(weight);
    else
      cuts_.insert_or_assign(weight, Cut{axis, taken});
  }

  /// Splits what the operator is the first to read. True when it is a transpose of which the parts
  /// take the place.
  bool split_before(const Operator& op) {
    bool replaced = false;
    for (const TensorId input : present(op.inputs)) {
      const auto cut = cuts_.find(input);
      if (cut == cuts_.end())
        continue;
      const bool alone = network_.tensor(input).consumers.size() == 1;
      replaced = alone && is_transposed_weight(network_, op);
      split(op, input, cut->second, replaced);
      cuts_.erase(cut);
    }
    return replaced;
  }

  void split(const Operator& op, TensorId weight, const Cut& cut, bool transpose) {
    const std::int64_t all = network_.tensor(weight).shape[cut.axis];
    const TensorId first = part(weight, ".trained", cut.axis, 0, cut.taken);
    const TensorId rest = part(weight, ".frozen", cut.axis, cut.taken, all - cut.taken);
    trained_.push_back(first);
    made_.graph().tensor(weight).kind = TensorKind::activation;
    if (transpose)
      join(transposed(first), transposed(rest), *op.outputs[0], 1);
    else
      join(first, rest, weight, cut.axis);
  }

  void append(OpType op_type, const std::string& name, std::vector<std::optional<TensorId>> inputs,
              TensorId output, Attributes attributes) {
    made_.add_operator({.name = fmt::format("{}.{}", name, op_type),
                        .op_type = std::string(op_type),
                        .attributes = std::move(attributes),
                        .inputs = std::move(inputs),
                        .outputs = {output}});
  }

  void join(TensorId first, TensorId rest, TensorId whole, std::size_t axis) {
    append(ops::Concat, network_.tensor(whole).name, {first, rest}, whole,
           {{"axis", static_cast<std::int64_t>(axis)}});
  }

  TensorId transposed(TensorId matrix) {
    const Tensor source = made_.graph().tensor(matrix);
    const TensorId result = made_.add_tensor(
        {.name = source.name + ".transposed", .shape = {source.shape[1], source.shape[0]}});
    append(ops::Transpose, source.name, {matrix}, result, {{"perm", Integers{1, 0}}});
    return result;
  }

  TensorId part(TensorId weight, std::string_view suffix, std::size_t axis, std::int64_t from,
                std::int64_t size) {
    const Tensor& whole = network_.tensor(weight);
    Integers shape = whole.shape;
    shape[axis] = size;
    const TensorId id = made_.add_tensor({.name = whole.name + std::string(suffix),
                                          .shape = std::move(shape),
                                          .type = whole.type,
                                          .kind = TensorKind::parameter});
    parts_.push_back({made_.graph().tensor(id).name, whole.name, whole.shape, axis, from});
    return id;
  }

  const Graph& network_;
  const SparseOptions& options_;
  Patterns patterns_;
  std::unordered_set<std::uint32_t> done_;
  std::map<TensorId, Cut> cuts_; ///< of weights that are still whole
  GraphRewriter made_;
  std::vector<TensorId> trained_;
  std::vector<WeightPart> parts_;
};

/// Vectors that are added: to the result of a product, in a normalisation, or by an Add.
void add_biases(const Graph& graph, std::vector<TensorId>& trained) {
  std::unordered_set<std::uint32_t> seen;
  const auto take = [&](const Operator& op, std::size_t input) {
    if (input >= op.inputs.size() || !op.inputs[input])
      return;
    const Tensor& tensor = graph.tensor(*op.inputs[input]);
    const bool vector = tensor.kind == TensorKind::parameter && tensor.shape.size() <= 1;
    if (vector && is_floating(tensor.type) && seen.insert(op.inputs[input]->value).second)
      trained.push_back(*op.inputs[input]);
  };
  for (const Operator& op : graph.operators()) {
    if (op.op_type == ops::Conv || op.op_type == ops::ConvTranspose || op.op_type == ops::Gemm ||
        op.op_type.ends_with("Normalization"))
      take(op, 2);
    if (op.op_type == ops::Add) {
      take(op, 0);
      take(op, 1);
    }
  }
}

} // namespace

AdaptedNetwork split_channels(const Graph& network, const SparseOptions& options) {
  AdaptedNetwork made = ChannelSplitter(network, options).run();
  if (options.biases)
    add_biases(made.graph, made.adapters);
  return made;
}

} // namespace monet
