// Low-rank adapters (Hu et al. 2021, "LoRA"; convolutions as in Hugging Face's PEFT): the input
// goes through A, down to the rank, then through B, up to the width of the output; alpha/rank times
// that is added. A has the geometry of the operator, B is a product of single positions.
#include "training_graph/build/rebuild.hpp"
#include "training_graph/forward/forward.hpp"
#include "workload/shared/op_types.hpp"
#include "workload/shared/views.hpp"

#include <fmt/core.h>

namespace monet {

namespace {

using Shape = Integers;

class AdapterWriter {
public:
  AdapterWriter(const Graph& network, const LoraOptions& options)
      : network_(network), options_(options), targets_(options.targets), made_(network) {}

  AdaptedNetwork run() {
    for (std::size_t i = 0; i < network_.operators().size(); ++i) {
      if (const auto input = adapted_input(network_.operators()[i]))
        add_adapted(OpId(i), *input);
      else
        made_.copy(OpId(i));
    }
    ProblemList problems;
    targets_.report(network_, "no weight of a MatMul, Gemm or Conv matches the LoRA target '{}'",
                    problems);
    problems.throw_if_any();
    return {made_.release(), std::move(adapters_)};
  }

private:
  const Tensor& weight_of(const Operator& op, std::size_t input) const {
    return network_.tensor(storage_root(network_, *op.inputs[input]));
  }

  /// Which input of the operator is a weight to be adapted.
  std::optional<std::size_t> adapted_input(const Operator& op) {
    const bool product = op.op_type == ops::MatMul || op.op_type == ops::Gemm;
    if (!op.domain.empty() || !(product || op.op_type == ops::Conv))
      return std::nullopt;
    for (const std::size_t i : {1U, 0U}) {
      if (i == 0 && op.op_type != ops::MatMul)
        continue;
      const Tensor& weight = weight_of(op, i);
      if (weight.kind != TensorKind::parameter || !is_floating(weight.type))
        continue;
      if (product && network_.tensor(*op.inputs[i]).shape.size() != 2)
        continue;
      if (!product && network_.tensor(*op.inputs[0]).shape.size() < 3)
        continue;
      if (targets_.match(weight.name))
        return i;
    }
    return std::nullopt;
  }

  TensorId add_tensor(const std::string& name, Shape shape, TensorKind kind) {
    return made_.add_tensor({.name = name, .shape = std::move(shape), .type = type_, .kind = kind});
  }
  TensorId adapter(std::string_view which, Shape shape) {
    const TensorId id = add_tensor(fmt::format("{}.lora_{}", prefix_, which), std::move(shape),
                                   TensorKind::parameter);
    adapters_.push_back(id);
    return id;
  }
  TensorId append(OpType op_type, std::vector<std::optional<TensorId>> inputs, TensorId output,
                  Attributes attributes = {}) {
    made_.add_operator({.name = fmt::format("{}.lora.{}", prefix_, op_type),
                        .op_type = std::string(op_type),
                        .attributes = std::move(attributes),
                        .inputs = std::move(inputs),
                        .outputs = {output}});
    return output;
  }
  TensorId value(std::string_view name, Shape shape) {
    return add_tensor(fmt::format("{}.lora.{}", prefix_, name), std::move(shape),
                      TensorKind::activation);
  }

  /// Writes the operator to a new tensor, and its sum with the adapter to the old one.
  void add_adapted(OpId id, std::size_t input) {
    Operator op = network_.op(id);
    prefix_ = weight_of(op, input).name;
    type_ = weight_of(op, input).type;
    const TensorId result = *op.outputs[0];
    const Shape shape = network_.tensor(result).shape;
    const TensorId base = value("base", shape);
    op.outputs[0] = base;
    for (Access& access : op.nest.operands) {
      if (access.mode != AccessMode::read && access.tensor == result)
        access.tensor = base;
    }
    const Operator like = op;
    made_.copy(id, std::move(op));
    TensorId change = like.op_type == ops::Conv   ? convolution(like, shape)
                      : like.op_type == ops::Gemm ? gemm(like, shape)
                                                  : matmul(like, input, shape);
    const double factor = options_.alpha / static_cast<double>(options_.rank);
    if (factor != 1.0) {
      const TensorId scale = add_tensor(prefix_ + ".lora.factor", {}, TensorKind::constant);
      made_.graph().tensor(scale).values = std::vector<double>{factor};
      change = append(ops::Mul, {change, scale}, value("scaled", shape));
    }
    append(ops::Add, {base, change}, result);
  }

  /// [.., K] x [K, N], or [M, K] x [.., K, N] with the weight on the left.
  TensorId matmul(const Operator& op, std::size_t input, const Shape& shape) {
    const Shape weight = network_.tensor(*op.inputs[input]).shape;
    const TensorId x = *op.inputs[1 - input];
    Shape narrow = shape;
    if (input == 1) {
      narrow.back() = options_.rank;
      const TensorId down =
          append(ops::MatMul, {x, adapter("A", {weight[0], options_.rank})}, value("down", narrow));
      return append(ops::MatMul, {down, adapter("B", {options_.rank, weight[1]})},
                    value("up", shape));
    }
    // A vector on the right has no axis of columns.
    const std::size_t rows =
        network_.tensor(x).shape.size() == 1 ? shape.size() - 1 : shape.size() - 2;
    narrow[rows] = options_.rank;
    const TensorId down =
        append(ops::MatMul, {adapter("A", {options_.rank, weight[1]}), x}, value("down", narrow));
    return append(ops::MatMul, {adapter("B", {weight[0], options_.rank}), down},
                  value("up", shape));
  }

  /// Adapters as PyTorch's Linear has its weight: [out, in].
  TensorId gemm(const Operator& op, const Shape& shape) {
    const Shape weight = network_.tensor(*op.inputs[1]).shape;
    const bool transposed = op.attributes.integer("transB", 0) != 0;
    const std::int64_t in = weight[transposed ? 1 : 0];
    const std::int64_t out = weight[transposed ? 0 : 1];
    const TensorId down =
        append(ops::Gemm, {op.inputs[0], adapter("A", {options_.rank, in})},
               value("down", {shape[0], options_.rank}),
               {{"transA", op.attributes.integer("transA", 0)}, {"transB", std::int64_t{1}}});
    return append(ops::Gemm, {down, adapter("B", {out, options_.rank})}, value("up", shape),
                  {{"transB", std::int64_t{1}}});
  }

  /// The rank is that of each group, so that the change has the shape of the weight.
  TensorId convolution(const Operator& op, const Shape& shape) {
    const Shape weight = network_.tensor(*op.inputs[1]).shape;
    const std::int64_t groups = op.attributes.integer("group", 1);
    Shape down_weight = weight;
    down_weight[0] = groups * options_.rank;
    Shape up_weight(weight.size(), 1);
    up_weight[0] = weight[0];
    up_weight[1] = options_.rank;
    Shape narrow = shape;
    narrow[1] = groups * options_.rank;
    const TensorId down = append(ops::Conv, {op.inputs[0], adapter("A", std::move(down_weight))},
                                 value("down", std::move(narrow)), op.attributes);
    return append(ops::Conv, {down, adapter("B", std::move(up_weight))}, value("up", shape),
                  {{"group", groups}, {"kernel_shape", Shape(weight.size() - 2, 1)}});
  }

  const Graph& network_;
  const LoraOptions& options_;
  Patterns targets_;
  std::string prefix_;                   ///< name of the weight at hand
  ElementType type_ = ElementType::fp32; ///< and its type
  GraphRewriter made_;
  std::vector<TensorId> adapters_;
};

} // namespace

AdaptedNetwork add_adapters(const Graph& network, const LoraOptions& options) {
  return AdapterWriter(network, options).run();
}

} // namespace monet
