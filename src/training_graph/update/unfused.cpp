// A fused update as the chain of ONNX operators that its formula lists. Costs and numbers are those
// of the chain: every operator reads and writes whole tensors.
#include "training_graph/update/optimizer.hpp"
#include "workload/shared/op_types.hpp"
#include "workload/shared/update_formula.hpp"

#include <fmt/core.h>

#include <array>

namespace monet {

namespace {

constexpr std::array<std::string_view, 9> kOnnxOperators{
    // in the order of ScalarOp
    ops::Add, ops::Sub, ops::Mul, ops::Div, ops::Min, ops::Max, ops::Pow, ops::Sqrt, ops::Sign};

Integers broadcast(const Integers& a, const Integers& b) {
  Integers shape = a.size() >= b.size() ? a : b;
  const Integers& shorter = a.size() >= b.size() ? b : a;
  const std::size_t skipped = shape.size() - shorter.size();
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    if (shape[skipped + i] == 1)
      shape[skipped + i] = shorter[i];
  }
  return shape;
}

Operator operator_of(const NewOperator& op) {
  return {.name = op.name,
          .op_type = std::string(op.op_type),
          .domain = std::string(op.domain),
          .attributes = op.attributes,
          .inputs = op.inputs,
          .outputs = op.outputs};
}

/// fp32 where no weight is read.
ElementType weight_type(const Graph& graph, const NewOperator& op) {
  for (const TensorId id : present(op.inputs)) {
    const Tensor& tensor = graph.tensor(id);
    if (tensor.kind == TensorKind::parameter && is_floating(tensor.type))
      return tensor.type;
  }
  return ElementType::fp32;
}

/// Rows of weight and states, in separate tensors while the chain computes.
class Tables {
public:
  Tables(StepBuilder& builder, std::optional<TensorId> rows) : builder_(builder), rows_(rows) {}

  /// The operator on the rows alone.
  void take(NewOperator& op) {
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      const bool table = i == kUpdateWeight || i > kUpdateRows;
      if (!table || !op.inputs[i])
        continue;
      const TensorId taken = rows_of(op, *op.inputs[i]);
      op.inputs[i] = append_on_rows(ops::TakeRows, op.name, op.inputs[i], taken);
    }
    tables_ = op.outputs;
    for (auto& output : op.outputs)
      output = rows_of(op, *output);
  }

  void put(const NewOperator& op) {
    for (std::size_t i = 0; i < tables_.size(); ++i)
      append_on_rows(ops::PutRows, op.name, op.outputs[i], *tables_[i]);
  }

private:
  TensorId append_on_rows(OpType op_type, const std::string& name, std::optional<TensorId> from,
                          TensorId to) {
    return append_update(builder_, {.name = name,
                                    .op_type = op_type,
                                    .domain = kMonetDomain,
                                    .inputs = {from, rows_},
                                    .outputs = {to}});
  }

  TensorId rows_of(const NewOperator& op, TensorId table) {
    const Tensor source = builder_.graph().tensor(table);
    return builder_.add_tensor(source.name + ".taken", builder_.shape(*op.inputs[kUpdateGradient]),
                               source.type, TensorKind::gradient);
  }

  StepBuilder& builder_;
  std::optional<TensorId> rows_;
  std::vector<std::optional<TensorId>> tables_;
};

class Chain {
public:
  Chain(StepBuilder& builder, std::map<std::string, TensorId>& uniform, NewOperator fused,
        ElementType type)
      : builder_(builder), uniform_(uniform), fused_(std::move(fused)), type_(type) {
    formula_ = update_formula(builder_.graph(), operator_of(fused_));
  }

  void emit() {
    written_.assign(fused_.outputs.size(), false);
    for (std::size_t i = 0; i < formula_.instructions.size(); ++i)
      results_.push_back(result(i));
    for (std::size_t i = 0; i < fused_.outputs.size(); ++i) {
      if (!written_[i])
        write(i);
    }
  }

private:
  bool skips() const {
    return fused_.inputs.size() > kUpdateSkip && fused_.inputs[kUpdateSkip].has_value();
  }
  ElementType type_of(TensorId id) const { return builder_.graph().tensor(id).type; }

  TensorId append(OpType op_type, std::vector<std::optional<TensorId>> inputs, TensorId output) {
    return append_update(builder_, {.name = fused_.name,
                                    .op_type = op_type,
                                    .inputs = std::move(inputs),
                                    .outputs = {output}});
  }

  TensorId temporary(Integers shape, ElementType type) {
    return builder_.add_tensor(fused_.name + ".value", std::move(shape), type,
                               TensorKind::gradient);
  }

  /// Attribute `to` of ONNX is a number of its type list; shapes and costs do not depend on it.
  TensorId cast(TensorId from, TensorId to) { return append(ops::Cast, {from}, to); }

  TensorId operand(const UpdateValue& value) {
    if (value.kind == UpdateValue::Kind::number)
      return builder_.scalar(value.number, type_);
    if (value.kind == UpdateValue::Kind::result)
      return results_[value.index];
    const TensorId input = *fused_.inputs[value.index];
    if (type_of(input) == type_)
      return input;
    const auto known = casts_.find(input);
    if (known != casts_.end())
      return known->second;
    const TensorId as_type = cast(input, temporary(builder_.shape(input), type_));
    casts_.emplace(input, as_type);
    return as_type;
  }

  bool in_place(std::size_t output) const {
    return builder_.graph().tensor(*fused_.outputs[output]).alias_of.has_value();
  }

  /// An output that is this result and can be written at once; one in place where there is any.
  std::optional<std::size_t> direct_output(std::size_t instruction) const {
    std::optional<std::size_t> found;
    for (std::size_t i = 0; i < formula_.outputs.size(); ++i) {
      const UpdateValue& value = formula_.outputs[i];
      const bool same = value.kind == UpdateValue::Kind::result && value.index == instruction;
      if (same && !skips() && type_of(*fused_.outputs[i]) == type_ && (!found || in_place(i)))
        found = i;
    }
    return found;
  }

  TensorId result(std::size_t i) {
    const ScalarInstruction& instruction = formula_.instructions[i];
    std::vector<std::optional<TensorId>> inputs{operand(instruction.a)};
    const bool unary = instruction.op == ScalarOp::square_root || instruction.op == ScalarOp::sign;
    if (!unary)
      inputs.emplace_back(operand(instruction.b));
    Integers shape = builder_.shape(*inputs[0]);
    if (!unary)
      shape = broadcast(shape, builder_.shape(*inputs[1]));
    const OpType op_type = kOnnxOperators.at(static_cast<std::size_t>(instruction.op));
    if (instruction.uniform) { // shared by all parameters
      std::string key = fmt::format("{} {}", op_type, inputs[0]->value);
      if (!unary)
        key += fmt::format(" {}", inputs[1]->value);
      const auto known = uniform_.find(key);
      if (known != uniform_.end())
        return known->second;
      const TensorId made = append(op_type, std::move(inputs), temporary(std::move(shape), type_));
      uniform_.emplace(std::move(key), made);
      return made;
    }
    const auto output = direct_output(i);
    if (output)
      written_[*output] = true;
    const TensorId to = output ? *fused_.outputs[*output] : temporary(std::move(shape), type_);
    return append(op_type, std::move(inputs), to);
  }

  void write(std::size_t i) {
    TensorId value = operand(formula_.outputs[i]);
    const TensorId output = *fused_.outputs[i];
    const bool same_type = type_of(output) == type_;
    if (skips()) {
      const TensorId to = same_type ? output : temporary(builder_.shape(output), type_);
      value = append(ops::Where, {condition(), operand(formula_.kept[i]), value}, to);
      if (same_type)
        return;
    }
    if (!same_type)
      cast(value, output);
    else if (in_place(i)) // a view would leave the old numbers where they are
      append_update(builder_,
                    {.name = fused_.name,
                     .op_type = ops::Copy,
                     .domain = kMonetDomain,
                     .inputs = {value},
                     .outputs = {output},
                     .attributes = {{"view", std::string(ops::Reshape)}}}); // to the same shape
    else
      append(ops::Identity, {value}, output);
  }

  TensorId condition() {
    const TensorId flag = *fused_.inputs[kUpdateSkip];
    const std::string key = fmt::format("skip {}", flag.value);
    const auto known = uniform_.find(key);
    if (known != uniform_.end())
      return known->second;
    const TensorId made = cast(flag, temporary({}, ElementType::boolean));
    uniform_.emplace(key, made);
    return made;
  }

  StepBuilder& builder_;
  std::map<std::string, TensorId>& uniform_;
  NewOperator fused_;
  ElementType type_; ///< of the arithmetic
  UpdateFormula formula_;
  std::vector<TensorId> results_;
  std::vector<bool> written_;
  std::map<TensorId, TensorId> casts_;
};

} // namespace

void emit_unfused(StepBuilder& builder, std::map<std::string, TensorId>& uniform, NewOperator op) {
  const ElementType type = builder.precision().state_type(weight_type(builder.graph(), op));
  const bool rows = op.inputs.size() > kUpdateRows && updates_rows(operator_of(op));
  Tables tables(builder, rows ? op.inputs[kUpdateRows] : std::nullopt);
  if (rows)
    tables.take(op);
  Chain(builder, uniform, op, type).emit();
  tables.put(op);
}

} // namespace monet
