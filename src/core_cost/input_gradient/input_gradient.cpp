// Costs scattering products (input gradients) in each form and chooses the best; core_cost() and
// the cost cache call core_cost_with().
#include "core_cost/input_gradient/input_gradient.hpp"

#include "base/shared/checked.hpp"
#include "core_cost/input_gradient/combine.hpp"
#include "core_cost/input_gradient/separate.hpp"
#include "core_cost/model/nest_model.hpp"
#include "core_cost/search/mapping_search.hpp"
#include "hardware/shared/array_modes.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace monet::core_cost_detail {

namespace {

struct Forms {
  const CoreProblem& problem;
  const Transposed& transposed;
  const Core& core;
  const CoreCostOptions& options;
  const Solver& solve;
};

/// Number of multiples of `step` in [begin, begin + size).
std::int64_t multiples(std::int64_t begin, std::int64_t size, std::int64_t step) {
  return ceil_div(begin + size, step) - ceil_div(begin, step);
}

/// Charges streamed operands with all elements in the range of the loops, including unused ones.
void read_all(const Forms& f, CoreCost& cost) {
  for (std::size_t i = 0; i < cost.offchip.size(); ++i) {
    const ProblemOperand& whole = f.problem.operands[i];
    if (whole.offchip && whole.mode == AccessMode::read)
      cost.offchip[i].read = std::max(cost.offchip[i].read, Bits{region_bits(whole)});
  }
}

// ---------------------------------------------------------------- zero-inserted

/// Elements of the expanded dY that are not inserted zeros.
std::int64_t real_elements(const Forms& f, const CoreProblem& gather) {
  const ProblemOperand& expanded = gather.operands[f.transposed.gradient];
  std::int64_t real = checked_product(expanded.extents);
  for (const TransposedAxis& axis : f.transposed.axes) {
    const std::int64_t size = expanded.extents[axis.gradient_axis];
    const std::int64_t begin = axis.begin - axis.offset - expanded.axes[axis.gradient_axis].offset;
    real = real / size * multiples(begin, size, axis.stride);
  }
  return real;
}

/// Charges writing zeros: a kept dY is expanded in its memory before the first MAC.
void charge_zeros(const Forms& f, std::int64_t zeros, CoreCost& cost) {
  const ProblemOperand& gradient = f.problem.operands[f.transposed.gradient];
  const Memory* top = f.core.top(gradient.memory);
  const MemoryPort* port = top ? port_of(*top, gradient.memory, Direction::fh) : nullptr;
  if (port == nullptr || zeros == 0)
    return;
  const std::int64_t words = ceil_div(checked_multiply(zeros, gradient.bits), port->bandwidth_max);
  for (LevelEnergy& level : cost.levels) {
    if (level.operand != f.transposed.gradient || level.memory != top->name)
      continue;
    const Picojoules energy{static_cast<double>(words) * top->write_energy_pj};
    level.accesses[static_cast<std::size_t>(Direction::fh)] += words;
    level.energy += energy;
    cost.memory_energy += energy;
    break;
  }
  cost.parts.onload += static_cast<double>(ceil_div(words, instances(f.core, *top)));
  cost.latency = cost.parts.whole();
}

/// Cost of the gather's mapping with the zeros included.
CoreCost with_zeros(const Forms& f, const CoreProblem& gather, CoreCost cost) {
  const std::int64_t all = checked_product(gather.operands[f.transposed.gradient].extents);
  const std::int64_t real = real_elements(f, gather);
  if (f.problem.operands[f.transposed.gradient].offchip) {
    // Zeros are made on the chip; their share of the fetched elements equals their share of all
    // elements.
    std::int64_t& read = cost.offchip[f.transposed.gradient].read.value;
    read = static_cast<std::int64_t>(std::ceil(
        static_cast<double>(read) * static_cast<double>(real) / static_cast<double>(all)));
  } else {
    charge_zeros(f, all - real, cost);
  }
  read_all(f, cost);
  std::int64_t& written = cost.offchip[f.transposed.output].write.value;
  if (f.problem.operands[f.transposed.output].offchip)
    written = std::max(written, region_bits(f.problem.operands[f.transposed.output]));
  cost.macs_executed = iterations_of(gather);
  cost.variant = f.transposed.strided ? "zero-inserted" : "gather";
  return cost;
}

// ---------------------------------------------------------------- decomposed

/// Core with the outermost memories available to one sub-convolution; the other kept data stay
/// there all the time.
Core beside_the_rest(const Forms& f, const CoreProblem& sub) {
  return with_less_memory(
      f.core, f.problem.operands,
      [&](std::size_t i) {
        const ProblemOperand& whole = f.problem.operands[i];
        return whole.offchip ? 0 : region_bits(whole) - region_bits(sub.operands[i]);
      },
      "operands");
}

/// The problem without offsets; the position of a sub-convolution in dX or dY does not affect its
/// cost.
CoreProblem without_offsets(CoreProblem problem) {
  for (ProblemOperand& operand : problem.operands) {
    for (AxisExpr& axis : operand.axes)
      axis.offset = 0;
  }
  return problem;
}

struct Repeated {
  CoreProblem problem;
  std::int64_t times = 0;
};

std::vector<Repeated> distinct_parts(const Forms& f) {
  std::vector<Repeated> distinct;
  for (const SubConvolution& sub : decompose(f.problem, f.transposed)) {
    CoreProblem problem = without_offsets(sub.problem);
    const auto known = std::ranges::find(distinct, problem, &Repeated::problem);
    if (known != distinct.end())
      ++known->times;
    else
      distinct.push_back({std::move(problem), 1});
  }
  return distinct;
}

CoreCost cost_decomposed(const Forms& f) {
  const std::vector<Repeated> parts = distinct_parts(f);
  if (parts.empty()) {
    throw InfeasibleError(
        fmt::format("core '{}': more than {} sub-convolutions", f.core.name, kMaxSubConvolutions));
  }
  CoreCost sum;
  sum.offchip.resize(f.problem.operands.size());
  sum.resident.resize(f.problem.operands.size());
  std::int64_t largest = 0;
  for (const Repeated& part : parts) {
    const CoreCost cost = f.solve(part.problem, beside_the_rest(f, part.problem), f.options);
    add_cost(cost, part.times, {}, sum);
    if (cost.macs_executed > largest) {
      largest = cost.macs_executed;
      sum.spatial = cost.spatial;
      sum.temporal = cost.temporal;
      if (cost.imc) {
        sum.imc->work.rows = cost.imc->work.rows;
        sum.imc->work.columns = cost.imc->work.columns;
      }
    }
  }
  sum.latency = sum.parts.whole();
  for (std::size_t i = 0; i < sum.resident.size(); ++i) {
    const ProblemOperand& whole = f.problem.operands[i];
    const Bits stored{region_bits(whole)};
    if (!whole.offchip)
      sum.resident[i] = std::max(sum.resident[i], stored);
    else if (whole.mode != AccessMode::read) // elements that no tap meets are zeros
      sum.offchip[i].write = std::max(sum.offchip[i].write, stored);
  }
  read_all(f, sum);
  sum.variant = f.transposed.strided ? "decomposed" : "gather";
  return sum;
}

// ---------------------------------------------------------------- choosing

/// Lower bound on the merit: a mapping that keeps every lane busy and moves nothing.
std::pair<double, double> min_merit(const Forms& f, std::int64_t macs) {
  const auto n = static_cast<double>(macs);
  const double lanes = static_cast<double>(std::max<std::int64_t>(1, f.core.lanes()));
  const auto cycles = static_cast<double>(cycles_per_product(f.core));
  return merit(f.options.objective, n * cycles / lanes, n * f.core.mac_energy_pj);
}

CoreCost cost_form(const Forms& f, InputGradient form) {
  switch (form) {
  case InputGradient::best:
  case InputGradient::scatter:
    return f.solve(f.problem, f.core, f.options);
  case InputGradient::decomposed:
    return cost_decomposed(f);
  case InputGradient::zero_inserted: {
    const CoreProblem gather = zero_inserted(f.problem, f.transposed);
    return with_zeros(f, gather, f.solve(gather, f.core, f.options));
  }
  }
  throw InternalError("unknown form");
}

/// Whether the problem keeps its form: requested, or the user fixed an order of its loops.
bool keeps_form(const CoreCostOptions& options) {
  return options.input_gradient == InputGradient::scatter || !options.temporal_order.empty();
}

/// Cost of the scattering problem in the requested form, or in the best one. Throws InfeasibleError
/// if no form fits.
CoreCost best_form(const CoreProblem& problem, const Transposed& transposed, const Core& core,
                   const CoreCostOptions& options, const Solver& solve) {
  // The forms are solved without further rewriting, so that a cache can share them.
  CoreCostOptions as_is = options;
  as_is.input_gradient = InputGradient::scatter;
  const Forms f{problem, transposed, core, as_is, solve};
  if (options.input_gradient != InputGradient::best)
    return cost_form(f, options.input_gradient);
  BestCost best(as_is);
  const auto consider = [&](InputGradient form) {
    best.attempt([&] { return cost_form(f, form); });
  };
  consider(InputGradient::scatter);
  consider(InputGradient::decomposed);
  // Its zeros alone usually cost more than the best form so far.
  if (transposed.strided &&
      (!best.merit() ||
       min_merit(f, iterations_of(zero_inserted(problem, transposed))) < *best.merit()))
    consider(InputGradient::zero_inserted);
  return best.take();
}

} // namespace

Priced priced(const CoreCost& cost, const OffchipRate& rate) {
  OffchipTraffic all;
  for (const OffchipTraffic& traffic : cost.offchip) {
    all.read += traffic.read;
    all.write += traffic.write;
  }
  return {std::max(cost.parts.total(), rate.cycles(all)),
          cost.energy().value + rate.energy_pj(all)};
}

CoreCost core_cost_with(const CoreProblem& problem, const Core& core,
                        const CoreCostOptions& options, const Solver& solve) {
  if (problem.compute != ComputeKind::mac)
    return vector_cost(problem, core, options.model);
  if (const auto compound = find_compound(problem))
    return share_out(problem, *compound, solve(compound->problem, core, options));
  if (!problem.products.empty())
    return cost_together(problem, core, options, solve);
  const std::optional<Transposed> transposed = find_transposed(problem);
  if (transposed && !keeps_form(options))
    return best_form(problem, *transposed, core, options, solve);
  CoreCost cost = search_mapping(problem, core, options);
  cost.macs_executed = iterations_of(problem);
  if (transposed)
    cost.variant = "scatter";
  return cost;
}

} // namespace monet::core_cost_detail
