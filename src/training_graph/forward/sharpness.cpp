// Adds the second pass of sharpness-aware minimisation, before the update.
#include "training_graph/forward/forward.hpp"
#include "training_graph/forward/repeat_pass.hpp"
#include "workload/shared/op_types.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <map>

namespace monet {

namespace {

class Sharpener {
public:
  Sharpener(AccumulatedStep first, const Sharpness& sharpness)
      : first_(std::move(first)), sharpness_(sharpness), rewriter_(first_.graph), pass_(rewriter_) {
    // A norm that vanishes in 16 bits would send weights anywhere.
    if (bits_of(sharpness_.type) < bits_of(ElementType::fp32))
      sharpness_.type = ElementType::fp32;
  }

  AccumulatedStep run() {
    name_first();
    for (const Operator& op : source().operators())
      pass_.append(op);
    AccumulatedStep made;
    made.loss = first_.loss;
    made.kept = first_.kept;
    pass_.begin(".moved", moved_tensors(length_per_gradient()));
    for (const Operator& op : source().operators())
      pass_.append(op);
    for (const TensorId id : first_.kept) {
      if (pass_.own(id))
        made.kept.push_back(pass_.now(id));
    }
    for (const auto& [weight, gradient] : first_.gradients) {
      rewriter_.rename(pass_.now(gradient), source().tensor(gradient).name);
      made.gradients.emplace_back(weight, pass_.now(gradient));
    }
    made.graph = rewriter_.release();
    return made;
  }

private:
  const Graph& source() const { return first_.graph; }
  Graph& graph() { return rewriter_.graph(); }

  /// Gradients of the first pass end with it. The second pass has their names.
  void name_first() {
    for (std::size_t i = 0; i < source().tensors().size(); ++i) {
      if (source().tensors()[i].kind == TensorKind::parameter_gradient)
        graph().tensor(TensorId(i)).kind = TensorKind::gradient;
    }
    for (const auto& [weight, gradient] : first_.gradients)
      rewriter_.rename(gradient, source().tensor(gradient).name + ".ascent");
  }

  /// An operator in backward; like operators of updates it writes a temporary.
  TensorId value(OpType op_type, const std::string& name,
                 std::vector<std::optional<TensorId>> inputs, Integers shape, ElementType type,
                 Attributes attributes = {}) {
    const TensorId result = rewriter_.add_tensor(
        {.name = name, .shape = std::move(shape), .type = type, .kind = TensorKind::gradient});
    rewriter_.add_operator({.name = fmt::format("{}.{}", name, op_type),
                            .op_type = std::string(op_type),
                            .attributes = std::move(attributes),
                            .inputs = std::move(inputs),
                            .outputs = {result},
                            .phase = Phase::backward});
    return result;
  }

  TensorId scalar(OpType op_type, const std::string& name,
                  std::vector<std::optional<TensorId>> inputs) {
    return value(op_type, name, std::move(inputs), {}, sharpness_.type);
  }

  TensorId number(double value) {
    const TensorId id = rewriter_.add_tensor({.name = fmt::format("sam_{}", value),
                                              .type = sharpness_.type,
                                              .kind = TensorKind::constant});
    graph().tensor(id).values = std::vector<double>{value};
    return id;
  }

  /// rho / (norm + 1e-12). Scaled gradients have a scaled norm, so 1e-12 is scaled, too.
  TensorId length_per_gradient() {
    std::vector<std::optional<TensorId>> squares;
    for (const auto& [weight, gradient] : first_.gradients) {
      squares.emplace_back(value(ops::ReduceSumSquare, graph().tensor(gradient).name + ".squares",
                                 {gradient}, {}, sharpness_.type, {{"keepdims", std::int64_t{0}}}));
    }
    internal_check(!squares.empty(), "nothing has a gradient to move along");
    TensorId total = *squares.front();
    if (squares.size() > 1)
      total = scalar(ops::Sum, "ascent_squares", std::move(squares));
    const TensorId norm = scalar(ops::Sqrt, "ascent_norm", {total});
    TensorId least = number(1e-12);
    if (sharpness_.loss_scale)
      least = scalar(ops::Mul, "ascent_epsilon", {*sharpness_.loss_scale, least});
    const TensorId divisor = scalar(ops::Add, "ascent_divisor", {norm, least});
    return scalar(ops::Div, "ascent_scale", {number(sharpness_.rho), divisor});
  }

  /// Tensors that the second pass reads: moved weights, and the same inputs and labels again.
  std::map<TensorId, TensorId> moved_tensors(TensorId scale) {
    std::map<TensorId, TensorId> given;
    for (std::size_t i = 0; i < source().tensors().size(); ++i) {
      const Tensor& tensor = source().tensors()[i];
      const bool fed = tensor.kind == TensorKind::input || tensor.kind == TensorKind::label;
      if (fed && !tensor.producer) // reshaped ones are made again
        given.emplace(TensorId(i), TensorId(i));
    }
    for (const auto& [weight, gradient] : first_.gradients) {
      const Tensor& at = source().tensor(weight);
      const TensorId move = value(ops::Mul, at.name + ".move", {gradient, scale}, at.shape,
                                  source().tensor(gradient).type);
      given.insert_or_assign(
          weight, value(ops::Add, at.name + ".moved", {weight, move}, at.shape, at.type));
    }
    return given;
  }

  AccumulatedStep first_;
  Sharpness sharpness_;
  GraphRewriter rewriter_; ///< of first_
  PassRepeater pass_;
};

} // namespace

AccumulatedStep sharpen(AccumulatedStep first, const Sharpness& sharpness) {
  if (!first.row_gradients.empty()) {
    const Tensor& table = first.graph.tensor(first.row_gradients.front().first);
    throw InputError({first.graph.origin, 0, 0, ""},
                     fmt::format("'{}' has a sparse gradient, along which sharpness-aware "
                                 "minimisation does not move it",
                                 table.name));
  }
  return Sharpener(std::move(first), sharpness).run();
}

} // namespace monet
