// StepBuilder: adds tensors and operators of a step with names, types and loop nests.
#include "training_graph/build/step_builder.hpp"

#include "training_graph/build/scaled_casts.hpp"
#include "workload/shared/operators.hpp"

#include "monet/base/errors.hpp"

#include <fmt/format.h>

#include <set>
#include <utility>

namespace monet {

StepBuilder::StepBuilder(Graph graph, const Precision& precision)
    : graph_(std::move(graph)), precision_(precision) {
  for (const Tensor& tensor : graph_.tensors())
    tensor_names_.insert(tensor.name);
  for (const Operator& op : graph_.operators())
    op_names_.insert(op.name);
}

void StepBuilder::rename_tensor(TensorId id, const std::string& name) {
  std::string& old = graph().tensor(id).name;
  if (!tensor_names_.insert(name).second)
    return;
  tensor_names_.erase(old);
  old = name;
}

void StepBuilder::give_way(TensorId id) {
  const std::string name = graph_.tensor(id).name;
  graph_.tensor(id).name = unique(tensor_names_, name + "_part");
  tensor_names_.erase(name);
}

std::string StepBuilder::unique(std::unordered_set<std::string>& taken, std::string name) {
  if (taken.insert(name).second)
    return name;
  // Names asked for thousands of times (the gradients of a weight that every step of a recurrence
  // reads) do not count from 2 each time.
  int& last = last_number_.try_emplace(name, 1).first->second;
  std::string candidate;
  do {
    candidate = fmt::format("{}.{}", name, ++last);
  } while (!taken.insert(candidate).second);
  return candidate;
}

TensorId StepBuilder::add_tensor(std::string name, Integers shape, ElementType type,
                                 TensorKind kind) {
  return graph_.add_tensor({.name = unique(tensor_names_, std::move(name)),
                            .shape = std::move(shape),
                            .type = type,
                            .kind = kind});
}

OpId StepBuilder::add_operator(NewOperator wanted) {
  Operator op;
  op.name = unique(op_names_, std::move(wanted.name));
  op.op_type = wanted.op_type;
  op.domain = wanted.domain;
  op.attributes = std::move(wanted.attributes);
  op.inputs = std::move(wanted.inputs);
  op.outputs = std::move(wanted.outputs);
  op.phase = wanted.phase;
  op.gradient_of = wanted.gradient_of;
  op.forward_op = wanted.forward_op;
  if (!row_of(op).view && op.phase == Phase::backward)
    cast_operands(op);
  const OpId id = graph_.add_operator(std::move(op));
  build_nest(graph_, id);
  return id;
}

void StepBuilder::cast_operands(Operator& op) {
  const auto type_of = [&](TensorId id) { return graph_.tensor(id).type; };
  std::optional<ElementType> any;
  bool mixed = false;
  for (const auto& input : op.inputs) {
    if (!input || !is_floating(type_of(*input)))
      continue;
    mixed = mixed || (any && !multiplies_with(type_of(*input), *any));
    any = type_of(*input);
  }
  if (!mixed)
    return;
  // Added or masking operands keep their type, like the statistics of an attention.
  const LoopNest nest = row_of(op).nest(graph_, op);
  std::set<TensorId> factors;
  std::optional<ElementType> widest;
  for (const std::size_t i : multiplied_operands(nest)) {
    const TensorId factor = nest.operands[i].tensor;
    factors.insert(factor);
    if (!widest || bits_of(type_of(factor)) > bits_of(*widest))
      widest = type_of(factor);
  }
  for (auto& input : op.inputs) {
    if (input && factors.contains(*input) && !multiplies_with(type_of(*input), *widest))
      input = cast(*input, *widest, op);
  }
}

ElementType StepBuilder::gradient_type(TensorId of) const {
  return precision_.gradient_type(graph_.tensor(before_scaling(graph_, of)).type);
}

TensorId StepBuilder::cast(TensorId tensor, ElementType type, const Operator& reader) {
  const auto known = casts_.find({tensor, type});
  if (known != casts_.end())
    return known->second;
  const Tensor source = graph_.tensor(tensor);
  const TensorId result = add_tensor(fmt::format("{}.{}", source.name, name_of(type)), source.shape,
                                     type, TensorKind::gradient);
  add_operator({.name = fmt::format("{}.{}.Cast", source.name, name_of(type)),
                .op_type = ops::Cast,
                .inputs = {tensor},
                .outputs = {result},
                .phase = reader.phase,
                .forward_op = reader.forward_op});
  casts_.emplace(std::pair(tensor, type), result);
  return result;
}

TensorId StepBuilder::integers(const Integers& values) {
  if (const auto found = integers_.find(values); found != integers_.end())
    return found->second;
  const TensorId id = add_tensor(fmt::format("ints_{}", fmt::join(values, "_")),
                                 {static_cast<std::int64_t>(values.size())}, ElementType::int64,
                                 TensorKind::constant);
  graph_.tensor(id).values = values;
  integers_.emplace(values, id);
  return id;
}

TensorId StepBuilder::scalar(double value, ElementType type) {
  const auto key = std::make_pair(value, type);
  if (const auto found = scalars_.find(key); found != scalars_.end())
    return found->second;
  const TensorId id =
      add_tensor(fmt::format("{}_{}", name_of(type), value), {}, type, TensorKind::constant);
  graph_.tensor(id).values = std::vector<double>{value};
  scalars_.emplace(key, id);
  return id;
}

TensorId StepBuilder::give_shape(OpType op_type, std::string_view suffix, TensorId tensor,
                                 const Integers& shape, NewOperator like) {
  if (this->shape(tensor) == shape)
    return tensor;
  const Tensor& source = graph_.tensor(tensor);
  const TensorId result =
      add_tensor(source.name + std::string(suffix), shape, source.type, source.kind);
  like.op_type = op_type;
  like.domain = "";
  like.inputs = {tensor, integers(shape)};
  like.outputs = {result};
  add_operator(std::move(like));
  return result;
}

TensorId StepBuilder::reshape(TensorId tensor, const Integers& shape, NewOperator like) {
  return give_shape(ops::Reshape, ".reshaped", tensor, shape, std::move(like));
}

TensorId StepBuilder::expand(TensorId tensor, const Integers& shape, NewOperator like) {
  return give_shape(ops::Expand, ".expanded", tensor, shape, std::move(like));
}

std::optional<double> known_number(const Graph& graph, const Operator& op, std::size_t input) {
  if (input >= op.inputs.size() || !op.inputs[input] || !graph.tensor(*op.inputs[input]).values)
    return std::nullopt;
  return std::visit(
      [](const auto& list) {
        return list.size() == 1 ? std::optional(static_cast<double>(list.front())) : std::nullopt;
      },
      *graph.tensor(*op.inputs[input]).values);
}

double dropout_ratio(const Graph& graph, const Operator& op) {
  return known_number(graph, op, 1).value_or(op.attributes.number("ratio", 0.5));
}

std::size_t normal_axis(std::int64_t axis, std::size_t rank) {
  const auto signed_rank = static_cast<std::int64_t>(rank);
  internal_check(axis >= -signed_rank && axis < signed_rank, "axis out of range");
  return static_cast<std::size_t>(axis < 0 ? axis + signed_rank : axis);
}

} // namespace monet
