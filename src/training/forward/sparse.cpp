// Sparse update (Lin et al. 2022, "On-device training under 256 KB memory"): biases, and the first
// output channels of chosen weights. Such a weight becomes two parameters, joined before the
// product that reads it, and the gradient of the trained one alone is computed
// (gradients/linear.cpp).
#include "training/build/rebuild.hpp"
#include "training/forward/forward.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
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
  if (op.op_type == "Conv")
    return 0;
  if (op.op_type == "Gemm")
    return op.attributes.integer("transB", 0) != 0 ? 0 : 1;
  if (op.op_type == "MatMul" && weight.shape.size() == 2)
    return 1;
  return std::nullopt;
}

/// A matrix that products read transposed, as linear layers are exported, and nobody else reads.
bool is_transposed_weight(const Graph& network, const Operator& op) {
  if (!op.domain.empty() || op.op_type != "Transpose" || !op.inputs[0] || !op.outputs[0])
    return false;
  const Tensor& weight = network.tensor(*op.inputs[0]);
  if (weight.kind != TensorKind::parameter || !is_floating(weight.type) ||
      weight.shape.size() != 2 || weight.consumers.size() != 1)
    return false;
  const auto& readers = network.tensor(*op.outputs[0]).consumers;
  return op.attributes.integers("perm", {1, 0}) == std::vector<std::int64_t>{1, 0} &&
         !readers.empty() && std::all_of(readers.begin(), readers.end(), [&](OpId id) {
           const Operator& reader = network.op(id);
           return reader.domain.empty() && reader.op_type == "MatMul" &&
                  reader.inputs[1] == op.outputs[0] && reader.inputs[0] != op.outputs[0];
         });
}

class ChannelSplitter {
public:
  ChannelSplitter(const Graph& network, const SparseOptions& options)
      : network_(network), options_(options), patterns_(patterns_of(options)), made_(network) {}

  AdaptedNetwork run() {
    for (std::size_t i = 0; i < network_.operators().size(); ++i) {
      const Operator& op = network_.operators()[i];
      if (is_transposed_weight(network_, op) && choose(op, *op.inputs[0], 0))
        continue; // its parts are transposed instead
      if (const auto axis = channel_axis(network_, op))
        choose(op, *op.inputs[1], *axis);
      made_.copy(OpId(i));
    }
    ProblemList problems;
    patterns_.report(
        network_, "no weight of a MatMul, Gemm or Conv matches the pattern '{}' of a sparse update",
        problems);
    problems.throw_if_any();
    return {made_.release(), std::move(trained_)};
  }

private:
  static std::vector<std::string> patterns_of(const SparseOptions& options) {
    std::vector<std::string> patterns;
    for (const auto& channels : options.channels)
      patterns.push_back(channels.match);
    return patterns;
  }

  /// True when the weight was split.
  bool choose(const Operator& op, TensorId weight, std::size_t axis) {
    // The first pattern that matches, and the first product that reads it.
    const auto pattern = patterns_.first_match(network_.tensor(weight).name);
    return pattern && done_.insert(weight.value).second &&
           split(op, weight, axis, options_.channels[*pattern].share);
  }

  /// At least one channel; whole groups of a convolution.
  bool split(const Operator& op, TensorId weight, std::size_t axis, double share) {
    const std::int64_t all = network_.tensor(weight).shape[axis];
    const std::int64_t groups = op.op_type == "Conv" ? op.attributes.integer("group", 1) : 1;
    const std::int64_t step = groups > 1 ? std::max<std::int64_t>(1, all / groups) : 1;
    const auto wanted = static_cast<std::int64_t>(std::ceil(share * static_cast<double>(all)));
    const std::int64_t taken =
        std::min(all, ceil_div(std::max<std::int64_t>(1, wanted), step) * step);
    if (taken == all) {
      trained_.push_back(weight);
      return false;
    }
    const TensorId first = part(weight, ".trained", axis, taken);
    const TensorId rest = part(weight, ".frozen", axis, all - taken);
    trained_.push_back(first);
    made_.graph().tensor(weight).kind = TensorKind::activation;
    if (op.op_type == "Transpose")
      join(transposed(first), transposed(rest), *op.outputs[0], 1);
    else
      join(first, rest, weight, axis);
    return true;
  }

  void append(std::string_view op_type, const std::string& name,
              std::vector<std::optional<TensorId>> inputs, TensorId output, Attributes attributes) {
    made_.add_operator({.name = fmt::format("{}.{}", name, op_type),
                        .op_type = std::string(op_type),
                        .attributes = std::move(attributes),
                        .inputs = std::move(inputs),
                        .outputs = {output}});
  }

  void join(TensorId first, TensorId rest, TensorId whole, std::size_t axis) {
    append("Concat", network_.tensor(whole).name, {first, rest}, whole,
           {{"axis", static_cast<std::int64_t>(axis)}});
  }

  TensorId transposed(TensorId matrix) {
    const Tensor source = made_.graph().tensor(matrix);
    const TensorId result = made_.add_tensor(
        {.name = source.name + ".transposed", .shape = {source.shape[1], source.shape[0]}});
    append("Transpose", source.name, {matrix}, result, {{"perm", std::vector<std::int64_t>{1, 0}}});
    return result;
  }

  TensorId part(TensorId weight, std::string_view suffix, std::size_t axis, std::int64_t size) {
    std::vector<std::int64_t> shape = network_.tensor(weight).shape;
    shape[axis] = size;
    return made_.add_tensor({.name = network_.tensor(weight).name + std::string(suffix),
                             .shape = std::move(shape),
                             .kind = TensorKind::parameter});
  }

  const Graph& network_;
  const SparseOptions& options_;
  Patterns patterns_;
  std::unordered_set<std::uint32_t> done_;
  GraphRewriter made_;
  std::vector<TensorId> trained_;
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
    if (op.op_type == "Conv" || op.op_type == "ConvTranspose" || op.op_type == "Gemm" ||
        op.op_type.ends_with("Normalization"))
      take(op, 2);
    if (op.op_type == "Add") {
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
