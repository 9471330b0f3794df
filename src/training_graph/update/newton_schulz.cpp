// Newton-Schulz iteration of Muon, written as operators; parameter_update.cpp calls it.
#include "training_graph/update/optimizer.hpp"
#include "workload/shared/op_types.hpp"

#include <fmt/core.h>

namespace monet {

namespace {

/// The operators of one parameter's iteration.
class NewtonSchulz {
public:
  NewtonSchulz(StepBuilder& builder, UpdateEmitter& updates, const NewtonSchulzOptions& options)
      : builder_(builder), updates_(updates), options_(options) {}

  TensorId transpose(TensorId matrix) {
    const Tensor source = builder_.graph().tensor(matrix);
    const TensorId result = builder_.add_tensor(
        source.name + ".transposed", {source.shape[1], source.shape[0]}, source.type, source.kind);
    return append_update(builder_, {.name = options_.name,
                                    .op_type = ops::Transpose,
                                    .inputs = {matrix},
                                    .outputs = {result},
                                    .attributes = {{"perm", Integers{1, 0}}}});
  }

  /// X <- a*X + (b*A + c*A*A)*X with A = X*X^T.
  TensorId iterate(TensorId x) {
    constexpr double kA = 3.4445;
    constexpr double kB = -4.7750;
    constexpr double kC = 2.0315;
    for (std::int64_t i = 0; i < options_.steps; ++i) {
      const TensorId gram = product("gram", x, transpose(x));
      const TensorId square = product("gram_squared", gram, gram);
      const TensorId sum = weighted_sum("polynomial", kB, gram, kC, square);
      x = weighted_sum("orthogonal", kA, x, 1.0, product("correction", sum, x));
    }
    return x;
  }

private:
  std::string named(std::string_view name) const {
    return fmt::format("{}.{}", options_.name, name);
  }

  TensorId product(std::string_view name, TensorId a, TensorId b) {
    const Integers shape{builder_.shape(a)[0], builder_.shape(b)[1]};
    return update_value(builder_, {.name = named(name), .op_type = ops::MatMul, .inputs = {a, b}},
                        shape, options_.type);
  }

  TensorId weighted_sum(std::string_view name, double alpha, TensorId a, double beta, TensorId b) {
    const TensorId result =
        builder_.add_tensor(named(name), builder_.shape(a), options_.type, TensorKind::gradient);
    updates_.emit({.name = named(ops::WeightedSum),
                   .op_type = ops::WeightedSum,
                   .domain = kMonetDomain,
                   .inputs = {a, b},
                   .outputs = {result},
                   .attributes = {{"alpha", alpha}, {"beta", beta}},
                   .phase = Phase::update});
    return result;
  }

  StepBuilder& builder_;
  UpdateEmitter& updates_;
  const NewtonSchulzOptions& options_;
};

} // namespace

TensorId orthogonalise(StepBuilder& builder, UpdateEmitter& updates, TensorId matrix,
                       const NewtonSchulzOptions& options) {
  NewtonSchulz of(builder, updates, options);
  const bool tall = builder.shape(matrix)[0] > builder.shape(matrix)[1];
  return tall ? of.transpose(of.iterate(of.transpose(matrix))) : of.iterate(matrix);
}

} // namespace monet
