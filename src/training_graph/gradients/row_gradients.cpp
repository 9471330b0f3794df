// Finds tables with sparse gradients and merges their parts, for the update.
#include "base/shared/text.hpp"
#include "training_graph/gradients/differentiate.hpp"
#include "workload/shared/operators.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

namespace monet {

namespace {

bool looks_up(const Operator& op, TensorId table, std::size_t rank) {
  return op.op_type == ops::Gather && op.domain.empty() && op.inputs.size() > 1 &&
         op.inputs[0] == table && op.inputs[1] != table &&
         normal_axis(op.attributes.integer("axis", 0), rank) == 0;
}

/// Why the gradient of a parameter is dense; empty = it need not be.
std::string why_dense(const Graph& graph, TensorId id) {
  const Tensor& tensor = graph.tensor(id);
  if (tensor.shape.empty())
    return fmt::format("'{}' is a scalar", tensor.name);
  for (const OpId reader : tensor.consumers) {
    const Operator& op = graph.op(reader);
    if (!looks_up(op, id, tensor.shape.size()))
      return fmt::format("'{}' is read by '{}' ({}), whose gradient is dense", tensor.name, op.name,
                         op.op_type);
  }
  return {};
}

TensorId concatenate(StepBuilder& builder, const std::string& name,
                     const std::vector<TensorId>& parts) {
  if (parts.size() == 1)
    return parts.front();
  Integers shape = builder.shape(parts.front());
  shape[0] = 0;
  std::vector<std::optional<TensorId>> inputs;
  for (const TensorId part : parts) {
    shape[0] += builder.shape(part)[0];
    inputs.emplace_back(part);
  }
  const TensorId joined = builder.add_tensor(
      name, std::move(shape), builder.graph().tensor(parts.front()).type, TensorKind::gradient);
  builder.add_operator({.name = name + ".Concat",
                        .op_type = ops::Concat,
                        .inputs = std::move(inputs),
                        .outputs = {joined},
                        .attributes = {{"axis", std::int64_t{0}}}});
  return joined;
}

} // namespace

std::vector<bool> tables_of_rows(const Graph& forward, const GradientNeeds& needs,
                                 const std::vector<std::string>& patterns) {
  std::vector<bool> tables(forward.tensors().size(), false);
  ProblemList problems;
  for (const std::string& pattern : patterns) {
    bool any = false;
    std::string why = "no trained parameter is called so";
    bool named = false;
    for (std::size_t i = 0; i < tables.size(); ++i) {
      const Tensor& tensor = forward.tensors()[i];
      if (tensor.kind != TensorKind::parameter || !needs.wanted(TensorId(i)) ||
          !glob_match(pattern, tensor.name))
        continue;
      const std::string dense = why_dense(forward, TensorId(i));
      if (dense.empty())
        tables[i] = any = true;
      else if (!std::exchange(named, true))
        why = dense;
    }
    if (!any)
      problems.add({forward.origin, 0, 0, ""},
                   fmt::format("no embedding has a sparse gradient by the pattern '{}' of "
                               "'sparse_gradients'",
                               pattern),
                   why);
  }
  problems.throw_if_any();
  return tables;
}

RowGradient coalesce(StepBuilder& builder, TensorId table, const std::vector<RowGradient>& parts) {
  const Tensor weight = builder.graph().tensor(table);
  const std::string name = weight.name + ".grad";
  std::vector<TensorId> values;
  std::vector<TensorId> indices;
  for (const RowGradient& part : parts) {
    values.push_back(part.values);
    indices.push_back(part.rows);
  }
  const TensorId all = concatenate(builder, name + ".all", values);
  const TensorId of_all = concatenate(builder, name + ".all_rows", indices);
  const Integers shape = builder.shape(all);
  const auto integers = [&](std::string_view what, TensorKind kind) {
    return builder.add_tensor(fmt::format("{}.{}", name, what), {shape[0]}, ElementType::int64,
                              kind);
  };
  const TensorId rows = integers("rows", TensorKind::parameter_gradient);
  const TensorId places = integers("places", TensorKind::gradient);
  builder.add_operator({.name = name + ".DistinctIndices",
                        .op_type = ops::DistinctIndices,
                        .domain = kMonetDomain,
                        .inputs = {of_all},
                        .outputs = {rows, places},
                        .attributes = {{"size", weight.shape[0]}}});
  const TensorId sums =
      builder.add_tensor(name, shape, builder.precision().weight_gradient_type(weight.type),
                         TensorKind::parameter_gradient);
  builder.add_operator({.name = name + ".coalesce",
                        .op_type = ops::GatherGrad,
                        .domain = kMonetDomain,
                        .inputs = {all, places},
                        .outputs = {sums},
                        .attributes = {{"axis", std::int64_t{0}}}});
  return {sums, rows};
}

} // namespace monet
