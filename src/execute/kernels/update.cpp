// Optimiser updates: the formulas of workload/update_formula.hpp, element by element.
#include "execute/kernels/kernel.hpp"

#include "monet/base/errors.hpp"
#include "monet/workload/operators.hpp"
#include "monet/workload/update_formula.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace monet {

namespace {

template <class Real>
class FormulaRun {
public:
  /// Of an operator with so many inputs and outputs.
  FormulaRun(const UpdateFormula& formula, std::size_t inputs, std::size_t outputs)
      : formula_(formula), results_(formula.instructions.size()), inputs_(inputs),
        outputs_(outputs) {
    for (const ScalarInstruction& instruction : formula.instructions) {
      check(instruction.a);
      check(instruction.b);
    }
    internal_check(formula.kept.size() >= outputs && formula.outputs.size() >= outputs,
                   "a formula has fewer results than its operator outputs");
    std::ranges::for_each(formula.kept, [&](const UpdateValue& value) { check(value); });
    std::ranges::for_each(formula.outputs, [&](const UpdateValue& value) { check(value); });
  }

  /// Values of all outputs for one element.
  void operator()(std::span<const Real> in, std::span<Real> out) {
    if (in.size() != inputs_ || out.size() != outputs_)
      internal_check(false, "a formula is for another operator");
    if (inputs_ > kUpdateSkip && in[kUpdateSkip] != Real{0}) {
      write(formula_.kept, in, out);
      return;
    }
    Real* result = results_.data();
    for (const ScalarInstruction& instruction : formula_.instructions) {
      if (!instruction.uniform || first_)
        *result = apply(instruction.op, value(instruction.a, in), value(instruction.b, in));
      ++result;
    }
    first_ = false;
    write(formula_.outputs, in, out);
  }

private:
  void check(const UpdateValue& of) const {
    internal_check(of.kind == UpdateValue::Kind::number ||
                       of.index < (of.kind == UpdateValue::Kind::input ? inputs_ : results_.size()),
                   "a formula reads what is not there");
  }
  void write(const std::vector<UpdateValue>& values, std::span<const Real> in,
             std::span<Real> out) const {
    const UpdateValue* of = values.data();
    for (Real& result : out)
      result = value(*of++, in);
  }
  /// By pointers: indices are checked once, see above.
  Real value(const UpdateValue& of, std::span<const Real> in) const {
    switch (of.kind) {
    case UpdateValue::Kind::number:
      return static_cast<Real>(of.number);
    case UpdateValue::Kind::input:
      return in.data()[of.index];
    case UpdateValue::Kind::result:
      return results_.data()[of.index];
    }
    return Real{0};
  }

  const UpdateFormula& formula_;
  std::vector<Real> results_;
  std::size_t inputs_;
  std::size_t outputs_;
  bool first_ = true; ///< uniform operations are done once
};

/// r = a op b, for every element of a block.
template <class Real>
void apply_each(ScalarOp op, const Real* a, const Real* b, std::span<Real> r) {
  const auto each = [&](auto function) {
    for (std::size_t i = 0; i < r.size(); ++i)
      r.data()[i] = function(a[i], b[i]);
  };
  switch (op) { // those that vector units have
  case ScalarOp::add:
    return each([](Real x, Real y) { return x + y; });
  case ScalarOp::subtract:
    return each([](Real x, Real y) { return x - y; });
  case ScalarOp::multiply:
    return each([](Real x, Real y) { return x * y; });
  case ScalarOp::divide:
    return each([](Real x, Real y) { return x / y; });
  case ScalarOp::square_root:
    return each([](Real x, Real) { return std::sqrt(x); });
  default:
    return each([&](Real x, Real y) { return apply(op, x, y); });
  }
}

/// The same as FormulaRun, operation by operation over blocks of elements.
template <class Real>
class FormulaBlocks {
public:
  FormulaBlocks(const UpdateFormula& formula, std::size_t inputs, std::size_t outputs)
      : formula_(formula), inputs_(inputs), outputs_(outputs),
        results_(formula.instructions.size(), Values(kIterationBlock)) {
    const FormulaRun<Real> checked(formula, inputs, outputs);
  }

  void operator()(const std::vector<const Real*>& from, const std::vector<Real*>& to,
                  std::size_t count) {
    if (from.size() != inputs_ || to.size() != outputs_)
      internal_check(false, "a formula is for another operator");
    if (inputs_ > kUpdateSkip && from[kUpdateSkip][0] != Real{0}) {
      write(formula_.kept, from, to, count);
      return;
    }
    for (std::size_t i = 0; i < results_.size(); ++i) {
      const ScalarInstruction& instruction = formula_.instructions[i];
      if (!instruction.uniform || first_) // no later block is longer than the first
        apply_each(instruction.op, values(instruction.a, from, 0), values(instruction.b, from, 1),
                   std::span(results_[i]).first(count));
    }
    first_ = false;
    write(formula_.outputs, from, to, count);
  }

private:
  using Values = std::vector<Real>;

  void write(const std::vector<UpdateValue>& of, const std::vector<const Real*>& from,
             const std::vector<Real*>& to, std::size_t count) {
    for (std::size_t i = 0; i < to.size(); ++i)
      std::copy_n(values(of[i], from, 0), count, to[i]);
  }
  /// A block of them; of numbers in a place of the operand's own.
  const Real* values(const UpdateValue& of, const std::vector<const Real*>& from,
                     std::size_t operand) {
    switch (of.kind) {
    case UpdateValue::Kind::number:
      std::ranges::fill(numbers_[operand], static_cast<Real>(of.number));
      return numbers_[operand].data();
    case UpdateValue::Kind::input:
      return from[of.index];
    case UpdateValue::Kind::result:
      return results_[of.index].data();
    }
    return nullptr;
  }

  const UpdateFormula& formula_;
  std::size_t inputs_;
  std::size_t outputs_;
  std::vector<Values> results_; ///< of every operation, for a block
  std::array<std::array<Real, kIterationBlock>, 2> numbers_{};
  bool first_ = true; ///< uniform operations are done once
};

constexpr auto kUpdate = []<class Real>(KernelContext<Real>& context) {
  const Operator& op = context.op();
  const UpdateFormula formula = update_formula(context.graph(), op);
  context.for_each_block(FormulaBlocks<Real>(formula, op.inputs.size(), op.outputs.size()));
};

/// What the outputs overwrite: elements that are not written stay as they are.
template <class Real>
void keep_overwritten(KernelContext<Real>& context) {
  for (std::size_t i = 0; i < context.op().outputs.size(); ++i) {
    if (const auto before = context.graph().tensor(*context.op().outputs[i]).alias_of)
      context.output(i) = context.tensor(*before);
  }
}

/// f(from, to) for every element of every row: its number among the rows and in the table. Rows
/// outside the table are left out.
template <class Real, class F>
void for_each_in_rows(const KernelContext<Real>& context, std::size_t rows_input,
                      const std::vector<std::int64_t>& table, F f) {
  const std::vector<std::int64_t>& rows = context.integers(rows_input);
  std::size_t width = 1;
  for (std::size_t a = 1; a < table.size(); ++a)
    width *= static_cast<std::size_t>(table[a]);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (rows[r] < 0 || rows[r] >= table[0])
      continue;
    for (std::size_t i = 0; i < width; ++i)
      f(r * width + i, static_cast<std::size_t>(rows[r]) * width + i);
  }
}

constexpr auto kRowUpdate = []<class Real>(KernelContext<Real>& context) {
  const Operator& op = context.op();
  const UpdateFormula formula = update_formula(context.graph(), op);
  FormulaRun<Real> run(formula, op.inputs.size(), op.outputs.size());
  keep_overwritten(context);
  std::vector<Real> in(op.inputs.size(), Real{0});
  std::vector<Real> out(op.outputs.size());
  std::vector<std::size_t> tables;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const bool table = i == kUpdateWeight || i > kUpdateRows;
    if (!context.has_input(i) || i == kUpdateRows)
      continue;
    if (table)
      tables.push_back(i);
    else if (i != kUpdateGradient)
      in[i] = static_cast<Real>(context.scalar(i, 0.0));
  }
  for_each_in_rows(context, kUpdateRows, context.output_shape(0),
                   [&](std::size_t from, std::size_t to) {
                     in[kUpdateGradient] = context.input(kUpdateGradient)[from];
                     for (const std::size_t i : tables)
                       in[i] = context.input(i)[to];
                     run(in, out);
                     for (std::size_t i = 0; i < out.size(); ++i)
                       context.output(i)[to] = out[i];
                   });
};

constexpr auto kTakeRows = []<class Real>(KernelContext<Real>& context) {
  for_each_in_rows(context, 1, context.input_shape(0), [&](std::size_t to, std::size_t from) {
    context.output(0)[to] = context.input(0)[from];
  });
};
constexpr auto kPutRows = []<class Real>(KernelContext<Real>& context) {
  keep_overwritten(context);
  for_each_in_rows(context, 1, context.output_shape(0), [&](std::size_t from, std::size_t to) {
    context.output(0)[to] = context.input(0)[from];
  });
};

constexpr auto kDistinctIndices = []<class Real>(KernelContext<Real>& context) {
  const std::int64_t size = context.attributes().integer("size", 0);
  std::vector<std::int64_t> indices = context.integers(0);
  for (std::int64_t& index : indices) { // `size` itself is no index, but one that is left out
    if (index < -size || index > size)
      throw InputError(location_of(context.graph(), context.op()),
                       fmt::format("index {} is outside an axis of {} elements", index, size));
    index += index < 0 ? size : 0;
  }
  std::vector<std::int64_t> distinct = indices;
  std::ranges::sort(distinct);
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  for (std::size_t i = 0; i < indices.size(); ++i) {
    context.output_integers(0)[i] = i < distinct.size() ? distinct[i] : size;
    context.output_integers(1)[i] =
        std::ranges::lower_bound(distinct, indices[i]) - distinct.begin();
  }
};

constexpr auto kNonFinite = []<class Real>(KernelContext<Real>& context) {
  bool found = false;
  context.template for_each_iteration<1>(
      [&](auto v, auto) { found = found || !std::isfinite(v[0]); });
  context.output(0)[0] = static_cast<Real>(found);
};

/// The scale falls at once when a gradient was not finite and grows after `growth_interval` steps
/// in which all were.
constexpr auto kLossScaleUpdate = []<class Real>(KernelContext<Real>& context) {
  const Attributes& attributes = context.attributes();
  Real scale = context.input(0)[0];
  Real steps = context.input(1)[0];
  if (context.input(2)[0] != Real{0}) {
    scale *= static_cast<Real>(attributes.number("backoff", 0.5));
    steps = 0;
  } else if (++steps >= static_cast<Real>(attributes.number("growth_interval", 2000.0))) {
    const Real grown = scale * static_cast<Real>(attributes.number("factor", 2.0));
    scale = std::isfinite(grown) ? grown : scale;
    steps = 0;
  }
  context.output(0)[0] = scale;
  context.output(1)[0] = steps;
};

} // namespace

std::vector<KernelEntry> update_kernels() {
  std::vector<KernelEntry> entries{kernel(kMonetDomain, "NonFinite", kNonFinite),
                                   kernel(kMonetDomain, "LossScaleUpdate", kLossScaleUpdate),
                                   kernel(kMonetDomain, "DistinctIndices", kDistinctIndices),
                                   kernel(kMonetDomain, "TakeRows", kTakeRows),
                                   kernel(kMonetDomain, "PutRows", kPutRows)};
  for (const std::string_view op_type : formula_operators()) {
    const bool rows = updates_rows({.op_type = std::string(op_type), .domain = "ai.monet"});
    entries.push_back(rows ? kernel(kMonetDomain, op_type, kRowUpdate)
                           : kernel(kMonetDomain, op_type, kUpdate));
  }
  return entries;
}

} // namespace monet
