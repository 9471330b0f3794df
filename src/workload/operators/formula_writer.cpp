// Records formulas of optimiser updates as instructions; update_formula.cpp writes formulas with
// it.
#include "workload/operators/formula_writer.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace monet {

Term FormulaWriter::read(std::size_t i, bool uniform) {
  if (!has(i))
    fail(*graph_, *op_, fmt::format("input {} is missing", i));
  if (uniform)
    uniform_inputs_.push_back(i);
  return {this, {UpdateValue::Kind::input, 0.0, i}};
}

bool FormulaWriter::is_uniform(const UpdateValue& value) const {
  if (value.kind == UpdateValue::Kind::input) {
    return std::ranges::find(uniform_inputs_, value.index) != uniform_inputs_.end();
  }
  return value.kind == UpdateValue::Kind::number || formula_.instructions[value.index].uniform;
}

/// Appends an instruction, except where a number makes it redundant: x + 0, 0 * x, 1 * x.
Term FormulaWriter::append(ScalarOp op, Term a, Term b) {
  const bool first = a.value.kind == UpdateValue::Kind::number;
  const bool second = b.value.kind == UpdateValue::Kind::number;
  const double left = a.value.number;
  const double right = b.value.number;
  switch (op) {
  case ScalarOp::add:
    if (first && left == 0.0)
      return b;
    [[fallthrough]];
  case ScalarOp::subtract:
    if (second && right == 0.0)
      return a;
    break;
  case ScalarOp::multiply:
    if (first && left == 0.0)
      return a;
    if (first && left == 1.0)
      return b;
    [[fallthrough]];
  case ScalarOp::divide:
  case ScalarOp::power:
    if (second && right == 1.0)
      return a;
    break;
  default:
    break;
  }
  formula_.instructions.push_back(
      {op, a.value, b.value, is_uniform(a.value) && is_uniform(b.value)});
  return {this, {UpdateValue::Kind::result, 0.0, formula_.instructions.size() - 1}};
}

namespace {

Term append(ScalarOp op, Term a, Term b) {
  if (a.writer == nullptr && b.writer == nullptr)
    return apply(op, a.value.number, b.value.number);
  return (a.writer != nullptr ? a : b).writer->append(op, a, b);
}

} // namespace

Term operator+(Term a, Term b) {
  return append(ScalarOp::add, a, b);
}
Term operator-(Term a, Term b) {
  return append(ScalarOp::subtract, a, b);
}
Term operator*(Term a, Term b) {
  return append(ScalarOp::multiply, a, b);
}
Term operator/(Term a, Term b) {
  return append(ScalarOp::divide, a, b);
}
Term square_root(Term a) {
  return append(ScalarOp::square_root, a, a);
}
Term sign(Term a) {
  return append(ScalarOp::sign, a, a);
}
Term power(Term a, Term b) {
  return append(ScalarOp::power, a, b);
}
Term maximum(Term a, Term b) {
  return append(ScalarOp::maximum, a, b);
}
Term minimum(Term a, Term b) {
  return append(ScalarOp::minimum, a, b);
}

Term FormulaWriter::gradient() {
  const Term plain = input(kUpdateGradient);
  const Term scaled = has(kUpdateGradientScale) ? plain * scalar(kUpdateGradientScale) : plain;
  const double limit = attribute("clip_value");
  return limit > 0.0 ? minimum(maximum(scaled, -limit), limit) : scaled;
}

void FormulaWriter::output(std::size_t i, Term term, Term kept) {
  if (formula_.outputs.size() <= i) {
    formula_.outputs.resize(i + 1);
    formula_.kept.resize(i + 1);
  }
  formula_.outputs[i] = term.value;
  formula_.kept[i] = kept.value;
}

void FormulaWriter::output_weight(Term term) {
  const Term before = weight();
  output(0, term, before);
  if (has_master())
    output(op_->outputs.size() - 1, term, before);
}

UpdateFormula FormulaWriter::finish() {
  for (std::size_t i = 0; i < op_->outputs.size(); ++i)
    static_cast<void>(output_shape(*graph_, *op_, i));
  if (formula_.outputs.size() != op_->outputs.size()) {
    fail(*graph_, *op_,
         fmt::format("has {} outputs, {} are expected", op_->outputs.size(),
                     formula_.outputs.size()));
  }
  return std::move(formula_);
}

} // namespace monet
