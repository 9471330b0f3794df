// Optimiser updates: the formulas of workload/update_formula.hpp, element by element.
#include "execute/kernels/walk.hpp"
#include "workload/shared/operators.hpp"
#include "workload/shared/update_formula.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace monet {

namespace {

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

/// A formula, operation by operation over blocks of elements.
template <class Real>
class FormulaBlocks {
public:
  /// `inputs` and `outputs` are the operator's numbers of operands.
  FormulaBlocks(const UpdateFormula& formula, std::size_t inputs, std::size_t outputs)
      : formula_(formula), inputs_(inputs), outputs_(outputs),
        results_(formula.instructions.size(), Values(kIterationBlock)) {
    for (const ScalarInstruction& instruction : formula.instructions) {
      check(instruction.a);
      check(instruction.b);
    }
    internal_check(formula.kept.size() >= outputs && formula.outputs.size() >= outputs,
                   "a formula has fewer results than its operator outputs");
    for (const auto* values : {&formula.kept, &formula.outputs}) {
      for (const UpdateValue& value : *values)
        check(value);
    }
  }

  void operator()(const IterationBlock<Real>& block) {
    if (block.in.size() != inputs_ || block.out.size() != outputs_)
      internal_check(false, "a formula is for another operator");
    if (inputs_ > kUpdateSkip && block.in[kUpdateSkip][0] != Real{0}) {
      write(formula_.kept, block);
      return;
    }
    for (std::size_t i = 0; i < results_.size(); ++i) {
      const ScalarInstruction& instruction = formula_.instructions[i];
      if (!instruction.uniform || first_) // no later block is longer than the first
        apply_each(instruction.op, values(instruction.a, block.in, 0),
                   values(instruction.b, block.in, 1), std::span(results_[i]).first(block.count));
    }
    first_ = false;
    write(formula_.outputs, block);
  }

private:
  using Values = std::vector<Real>;

  void check(const UpdateValue& of) const {
    internal_check(of.kind == UpdateValue::Kind::number ||
                       of.index < (of.kind == UpdateValue::Kind::input ? inputs_ : results_.size()),
                   "a formula reads what is not there");
  }
  void write(const std::vector<UpdateValue>& of, const IterationBlock<Real>& block) {
    for (std::size_t i = 0; i < block.out.size(); ++i)
      std::copy_n(values(of[i], block.in, 0), block.count, block.out[i]);
  }
  /// A block of them; of numbers in a place of the operand's own.
  const Real* values(const UpdateValue& of, std::span<const Real* const> from,
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

/// Copies the overwritten tensors to the outputs: elements that are not written keep their values.
template <class Real>
void keep_overwritten(KernelContext<Real>& context) {
  for (std::size_t i = 0; i < context.op().outputs.size(); ++i) {
    if (const auto before = context.graph().tensor(*context.op().outputs[i]).alias_of)
      context.output(i) = context.tensor(*before);
  }
}

/// f(from, to, width) for every row: where its elements begin among the rows and in the table. Rows
/// outside the table are left out.
void for_each_row(const OperatorContext& context, std::size_t rows_input, const Integers& table,
                  FunctionRef<std::int64_t, std::int64_t, std::size_t> f) {
  const Integers& rows = context.integers(rows_input);
  std::int64_t width = 1;
  for (std::size_t a = 1; a < table.size(); ++a)
    width *= table[a];
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (rows[r] >= 0 && rows[r] < table[0])
      f(static_cast<std::int64_t>(r) * width, rows[r] * width, static_cast<std::size_t>(width));
  }
}

constexpr auto kRowUpdate = []<class Real>(KernelContext<Real>& context) {
  const Operator& op = context.op();
  const UpdateFormula formula = update_formula(context.graph(), op);
  FormulaBlocks<Real> run(formula, op.inputs.size(), op.outputs.size());
  keep_overwritten(context);
  std::vector<std::vector<Real>> scalars(op.inputs.size());
  std::vector<const Real*> in(op.inputs.size());
  std::vector<Real*> out(op.outputs.size());
  for (std::size_t i = 0; i < in.size(); ++i) {
    scalars[i].resize(kIterationBlock);
    in[i] = scalars[i].data();
    if (context.has_input(i) && i > kUpdateGradient && i < kUpdateRows)
      std::ranges::fill(scalars[i], static_cast<Real>(context.scalar(i, 0.0)));
  }
  for_each_row(context, kUpdateRows, context.output_shape(0),
               [&](std::int64_t from, std::int64_t to, std::size_t width) {
                 for (std::size_t done = 0; done < width; done += kIterationBlock) {
                   const auto more = static_cast<std::int64_t>(done);
                   for (std::size_t i = 0; i < in.size(); ++i) {
                     if (context.has_input(i) && (i == kUpdateWeight || i > kUpdateRows))
                       in[i] = context.input(i).data() + to + more;
                   }
                   in[kUpdateGradient] = context.input(kUpdateGradient).data() + from + more;
                   for (std::size_t i = 0; i < out.size(); ++i)
                     out[i] = context.output(i).data() + to + more;
                   run({in, out, std::min(kIterationBlock, width - done)});
                 }
               });
};

constexpr auto kTakeRows = [](OperatorContext& context) {
  const ElementMover move(context, 0, 0);
  for_each_row(context, 1, context.input_shape(0),
               [&](std::int64_t to, std::int64_t from, std::size_t width) {
                 move.run(from, 1, static_cast<std::size_t>(to), width);
               });
};
constexpr auto kPutRows = []<class Real>(KernelContext<Real>& context) {
  keep_overwritten(context);
  const ElementMover move(context, 0, 0);
  for_each_row(context, 1, context.output_shape(0),
               [&](std::int64_t from, std::int64_t to, std::size_t width) {
                 move.run(from, 1, static_cast<std::size_t>(to), width);
               });
};

constexpr auto kDistinctIndices = [](OperatorContext& context) {
  const std::int64_t size = context.attributes().integer("size", 0);
  Integers indices = context.integers(0);
  for (std::int64_t& index : indices) { // `size` itself is no index, but one that is left out
    if (index < -size || index > size)
      throw InputError(location_of(context.graph(), context.op()),
                       fmt::format("index {} is outside an axis of {} elements", index, size));
    index += index < 0 ? size : 0;
  }
  Integers distinct = indices;
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
  context.for_each_block([&](const IterationBlock<Real>& block) {
    for (const Real x : std::span(block.in[0], block.count))
      found = found || !std::isfinite(x);
  });
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

KernelTable update_kernels() {
  static const std::vector<KernelEntry> kEntries = [] {
    std::vector<KernelEntry> entries{kernel(kMonetDomain, ops::NonFinite, kNonFinite),
                                     kernel(kMonetDomain, ops::LossScaleUpdate, kLossScaleUpdate),
                                     kernel(kMonetDomain, ops::DistinctIndices, kDistinctIndices),
                                     kernel(kMonetDomain, ops::TakeRows, kTakeRows),
                                     kernel(kMonetDomain, ops::PutRows, kPutRows)};
    for (const OpType op_type : formula_operators()) {
      const bool rows = updates_rows({.op_type = std::string(op_type), .domain = "ai.monet"});
      entries.push_back(rows ? kernel(kMonetDomain, op_type, kRowUpdate)
                             : kernel(kMonetDomain, op_type, kUpdate));
    }
    return entries;
  }();
  return kEntries;
}

} // namespace monet
