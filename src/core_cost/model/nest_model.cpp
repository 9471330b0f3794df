// Classifies loops by operand and counts touched elements; the basis of the array model.
#include "core_cost/model/nest_model.hpp"

#include "base/shared/checked.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

namespace monet::core_cost_detail {

namespace {

/// Distinct values of s1*x + s2*y, x < a, y < b, for coprime s1 and s2: all pairs but those that
/// equal the pair (x - s2, y + s1). ZigZag lacks the second maximum: where a < s2 it counts the
/// span with its gaps.
std::int64_t distinct_pair(std::int64_t s1, std::int64_t a, std::int64_t s2, std::int64_t b,
                           bool count_gaps) {
  const std::int64_t equal = count_gaps ? a - s2 : std::max<std::int64_t>(0, a - s2);
  return a * b - std::max<std::int64_t>(0, b - s1) * equal;
}

SharedAxis make_axis(const AxisExpr& expr, std::int64_t extent, const ModelChoices& choices) {
  SharedAxis axis;
  axis.terms = expr.terms.size();
  axis.count_gaps = !choices.gaps_not_fetched && axis.terms == 2; // ZigZag knows no other axes
  axis.extent = std::max<std::int64_t>(1, extent);
  std::int64_t step = std::abs(expr.terms[0].coefficient);
  for (std::size_t t = 1; t < axis.terms; ++t) {
    const std::int64_t stride = std::abs(expr.terms[t].coefficient);
    const std::int64_t divisor = std::max<std::int64_t>(1, std::gcd(step, stride));
    axis.steps[t] = {step / divisor, stride / divisor};
    step = divisor;
  }
  return axis;
}

void add_axis(OperandModel& model, const AxisExpr& expr, std::int64_t extent,
              const ModelChoices& choices) {
  if (expr.data_dependent) {
    model.fixed *= static_cast<double>(extent);
    return;
  }
  if (expr.terms.empty())
    return;
  if (expr.terms.size() == 1) {
    Relevance& relevance = model.relevance[expr.terms[0].dim];
    if (relevance == Relevance::irrelevant) {
      relevance = Relevance::relevant;
      model.relevant[model.relevant_count++] = static_cast<std::uint8_t>(expr.terms[0].dim);
    }
    return; // a loop on two axes (a diagonal) counts once
  }
  if (expr.terms.size() > kMaxTerms || model.axes == kMaxAxes) {
    throw InfeasibleError(
        fmt::format("an operand has an axis of more than {} loops, or more than {} axes of "
                    "several loops",
                    kMaxTerms, kMaxAxes));
  }
  for (std::size_t t = 0; t < expr.terms.size(); ++t) {
    const std::uint32_t dim = expr.terms[t].dim;
    if (model.relevance[dim] == Relevance::partial)
      continue;
    model.relevance[dim] = Relevance::partial;
    model.axis_of[dim] = static_cast<std::uint8_t>(model.axes);
    model.term_of[dim] = static_cast<std::uint8_t>(t);
  }
  model.axis[model.axes++] = make_axis(expr, extent, choices);
}

OperandModel make_operand(const ProblemOperand& operand, const ModelChoices& choices) {
  OperandModel model;
  model.output = operand.mode != AccessMode::read;
  model.offchip = operand.offchip;
  model.memory = operand.memory;
  model.bits = operand.bits;
  model.partial_bits = model.output ? operand.partial_bits : operand.bits;
  if (operand.opaque) {
    for (const std::int64_t extent : operand.extents)
      model.fixed *= static_cast<double>(extent);
    return model;
  }
  internal_check(operand.axes.size() == operand.extents.size(), "one extent per axis");
  for (std::size_t i = 0; i < operand.axes.size(); ++i)
    add_axis(model, operand.axes[i], operand.extents[i], choices);
  return model;
}

/// Only the first input of a memory operand uses the registers: further ones would take room from
/// it.
void find_inputs_aside(NestModel& model) {
  const OperandModel& output = model.operands[model.output];
  for (std::size_t i = 0; i < model.operands.size(); ++i) {
    OperandModel& o = model.operands[i];
    for (std::size_t j = 0; j < i && !o.output; ++j)
      o.aside = o.aside || (!model.operands[j].output && model.operands[j].memory == o.memory);
    o.addend = o.aside;
    for (std::size_t d = 0; d < model.dims.size(); ++d) {
      const bool sums = output.relevance[d] == Relevance::irrelevant && model.dims[d].size > 1;
      if (sums && o.relevance[d] != Relevance::irrelevant)
        o.addend = false;
    }
  }
}

} // namespace

double SharedAxis::count(const double* counts) const {
  auto distinct = static_cast<std::int64_t>(counts[0]);
  for (std::size_t t = 1; t < terms; ++t) {
    const auto [before, stride] = steps[t];
    const auto next = static_cast<std::int64_t>(counts[t]);
    distinct = distinct_pair(before, distinct, stride, next, count_gaps);
  }
  return static_cast<double>(std::min(distinct, extent));
}

std::int64_t iterations_of(const CoreProblem& problem) {
  std::int64_t product = 1;
  for (const LoopDim& dim : problem.dims)
    product = checked_multiply(product, dim.size);
  return product;
}

NestModel make_nest_model(const CoreProblem& problem, const ModelChoices& choices) {
  if (problem.dims.size() > kMaxDims || problem.operands.size() > kMaxOperands) {
    throw InfeasibleError(
        fmt::format("{} loops and {} operands on an array core; at most {} and {} are supported",
                    problem.dims.size(), problem.operands.size(), kMaxDims, kMaxOperands));
  }
  NestModel model{.choices = choices, .dims = problem.dims, .across_blocks = problem.across_blocks};
  std::size_t outputs = 0;
  for (const ProblemOperand& operand : problem.operands) {
    if (operand.mode != AccessMode::read) {
      model.output = model.operands.size();
      ++outputs;
    }
    model.operands.push_back(make_operand(operand, choices));
  }
  internal_check(outputs == 1, "a multiply-accumulate nest has one output");
  find_inputs_aside(model);
  for (const LoopDim& dim : problem.dims)
    internal_check(dim.size >= 1, "loops have at least one iteration");
  model.iterations = iterations_of(problem);
  if (model.iterations > kMaxIterations) {
    throw InfeasibleError(fmt::format("{} iterations in one tile; at most {} are supported",
                                      model.iterations, kMaxIterations));
  }
  return model;
}

std::size_t NestModel::dim_named(std::string_view name) const {
  return static_cast<std::size_t>(std::ranges::find(dims, name, &LoopDim::name) - dims.begin());
}

Footprint::Footprint(const OperandModel& operand) : operand_(&operand), relevant_(operand.fixed) {
  for (std::size_t i = 0; i < operand.axes; ++i) {
    for (std::size_t t = 0; t < operand.axis[i].terms; ++t)
      counts_[i][t] = 1;
  }
}

void Footprint::count() const {
  shared_ = 1;
  for (std::size_t i = 0; i < operand_->axes; ++i)
    shared_ *= operand_->axis[i].count(counts_[i].data());
  counted_ = true;
}

std::string operand_name(const CoreProblem& problem, std::size_t operand) {
  return fmt::format("operand {} ({})", operand, name_of(problem.operands[operand].memory));
}

std::int64_t region_bits(const ProblemOperand& operand) {
  return checked_multiply(checked_product(operand.extents), operand.bits);
}

} // namespace monet::core_cost_detail
