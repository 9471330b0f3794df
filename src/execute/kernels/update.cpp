// Optimiser updates: the formulas of workload/update_formula.hpp, element by element.
#include "execute/kernels/kernel.hpp"

#include "monet/workload/update_formula.hpp"

#include <cmath>

namespace monet {

namespace {

template <class Real>
class FormulaRun {
public:
  FormulaRun(const UpdateFormula& formula)
      : formula_(formula), results_(formula.instructions.size()) {}

  /// Values of all outputs for one element.
  void operator()(std::span<const Real> in, std::span<Real> out) {
    if (skips(in)) {
      for (std::size_t i = 0; i < out.size(); ++i)
        out[i] = value(formula_.kept[i], in);
      return;
    }
    for (std::size_t i = 0; i < results_.size(); ++i) {
      const ScalarInstruction& instruction = formula_.instructions[i];
      if (instruction.uniform && !first_)
        continue;
      results_[i] = apply(instruction.op, value(instruction.a, in), value(instruction.b, in));
    }
    first_ = false;
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = value(formula_.outputs[i], in);
  }

private:
  static bool skips(std::span<const Real> in) {
    return in.size() > kUpdateSkip && in[kUpdateSkip] != Real{0};
  }
  Real value(const UpdateValue& of, std::span<const Real> in) const {
    switch (of.kind) {
    case UpdateValue::Kind::number:
      return static_cast<Real>(of.number);
    case UpdateValue::Kind::input:
      return in[of.index];
    case UpdateValue::Kind::result:
      return results_[of.index];
    }
    return Real{0};
  }

  const UpdateFormula& formula_;
  std::vector<Real> results_;
  bool first_ = true; ///< uniform operations are done once
};

constexpr auto kUpdate = []<class Real>(KernelContext<Real>& context) {
  const UpdateFormula formula = update_formula(context.graph(), context.op());
  context.for_each_iteration(FormulaRun<Real>(formula));
};

constexpr auto kNonFinite = []<class Real>(KernelContext<Real>& context) {
  bool found = false;
  context.for_each_iteration(
      [&](std::span<const Real> v, std::span<Real>) { found = found || !std::isfinite(v[0]); });
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
                                   kernel(kMonetDomain, "LossScaleUpdate", kLossScaleUpdate)};
  for (const std::string_view op_type : formula_operators())
    entries.push_back(kernel(kMonetDomain, op_type, kUpdate));
  return entries;
}

} // namespace monet
