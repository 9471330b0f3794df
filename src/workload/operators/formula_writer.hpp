// Embedded notation for update formulas: update_formula.cpp states them as arithmetic expressions.
#pragma once

#include "workload/operators/nest_builder.hpp"
#include "workload/shared/update_formula.hpp"

namespace monet {

class FormulaWriter;

/// Value of a formula under construction; arithmetic on terms appends instructions. A number has a
/// null writer.
struct Term {
  FormulaWriter* writer = nullptr;
  UpdateValue value;

  Term(FormulaWriter* owner, const UpdateValue& of) : writer(owner), value(of) {}
  Term(double number) : value{UpdateValue::Kind::number, number, 0} {}
};
Term operator+(Term a, Term b);
Term operator-(Term a, Term b);
Term operator*(Term a, Term b);
Term operator/(Term a, Term b);
Term square_root(Term a);
Term sign(Term a);
Term power(Term a, Term b);
Term maximum(Term a, Term b);
Term minimum(Term a, Term b);

/// Inputs of an operator as terms, its attributes, and its outputs.
class FormulaWriter {
public:
  FormulaWriter(const Graph& graph, const Operator& op, std::size_t first_state)
      : graph_(&graph), op_(&op), first_state_(first_state) {}

  bool has(std::size_t i) const { return has_input(*op_, i); }
  /// Input with one element per iteration.
  Term input(std::size_t i) { return read(i, false); }
  /// Input shared by all elements.
  Term scalar(std::size_t i) { return read(i, true); }
  Term state(std::size_t i) { return input(first_state_ + i); }
  double attribute(std::string_view name, double fallback = 0.0) const {
    return op_->attributes.number(name, fallback);
  }
  bool flag(std::string_view name) const { return op_->attributes.integer(name, 0) != 0; }

  /// Whether the operator has a master copy; the weight itself is then only written.
  bool has_master() const { return flag("master_weights"); }
  Term weight() { return input(has_master() ? op_->inputs.size() - 1 : kUpdateWeight); }
  Term learning_rate() { return scalar(kUpdateLearningRate); }
  Term step() { return scalar(kUpdateStep); }
  /// Gradient, scaled and clipped by value, without weight decay.
  Term gradient();

  Term append(ScalarOp op, Term a, Term b);
  void output(std::size_t i, Term term, Term kept);
  /// Writes the weight and its master copy, if present.
  void output_weight(Term term);
  void output_state(std::size_t i, Term term) { output(1 + i, term, state(i)); }
  UpdateFormula finish();

private:
  Term read(std::size_t i, bool uniform);
  bool is_uniform(const UpdateValue& value) const;

  const Graph* graph_;
  const Operator* op_;
  std::size_t first_state_;
  UpdateFormula formula_;
  std::vector<std::size_t> uniform_inputs_;
};

} // namespace monet
