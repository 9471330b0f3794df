#include "core_cost/scatter/input_gradient.hpp"

#include "core_cost/model/nest_model.hpp"
#include "core_cost/scatter/apart.hpp"
#include "core_cost/scatter/compound.hpp"
#include "core_cost/search/mapping_search.hpp"

#include "monet/base/checked.hpp"
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

/// Multiples of `step` in [begin, begin + size).
std::int64_t multiples(std::int64_t begin, std::int64_t size, std::int64_t step) {
  return ceil_div(begin + size, step) - ceil_div(begin, step);
}

/// Everything that the loops range over flows by, also what no tap brings into the result.
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

/// A dY that stays is expanded in its memory: somebody has to write the zeros there, before the
/// first MAC.
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
  cost.latency = {static_cast<std::int64_t>(cost.parts.total())};
}

/// What the zeros add to a mapping of the gather.
CoreCost with_zeros(const Forms& f, const CoreProblem& gather, CoreCost cost) {
  const std::int64_t all = checked_product(gather.operands[f.transposed.gradient].extents);
  const std::int64_t real = real_elements(f, gather);
  if (f.problem.operands[f.transposed.gradient].offchip) {
    // Zeros are made on the chip; of what a mapping fetches they are the same share as of all.
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

/// The core with as much of its outermost memories as one sub-convolution may use: the rest of what
/// stays lies there all the time.
Core beside_the_rest(const Forms& f, const CoreProblem& sub) {
  Core core = f.core;
  for (Memory& memory : core.memories) {
    std::int64_t rest = 0;
    for (std::size_t i = 0; i < sub.operands.size(); ++i) {
      const ProblemOperand& whole = f.problem.operands[i];
      if (!whole.offchip && core.top(whole.memory) == &memory)
        rest = checked_add(rest, region_bits(whole) - region_bits(sub.operands[i]));
    }
    const std::int64_t taken = ceil_div(rest, instances(f.core, memory));
    if (taken >= memory.size.value && taken > 0) {
      throw InfeasibleError(
          fmt::format("core '{}': operands take {} bits, but memory '{}' holds {}", core.name,
                      taken, memory.name, memory.size.value));
    }
    memory.size.value -= std::max<std::int64_t>(0, taken);
  }
  return core;
}

void add_levels(const CoreCost& part, std::int64_t times, CoreCost& sum) {
  const bool first = sum.levels.empty();
  for (std::size_t l = 0; l < part.levels.size(); ++l) {
    const LevelEnergy& level = part.levels[l];
    if (first)
      sum.levels.push_back({level.memory, level.operand, {}, {}});
    internal_check(l < sum.levels.size() && sum.levels[l].operand == level.operand,
                   "sub-convolutions use the same memories");
    sum.levels[l].energy += Picojoules{level.energy.value * static_cast<double>(times)};
    for (std::size_t d = 0; d < level.accesses.size(); ++d)
      sum.levels[l].accesses[d] += level.accesses[d] * times;
  }
}

/// Adds a sub-convolution that runs `times` times, one after another.
void add(const CoreCost& part, std::int64_t times, CoreCost& sum) {
  const auto n = static_cast<double>(times);
  const double before = sum.parts.ideal_temporal;
  sum.parts.ideal_temporal += part.parts.ideal_temporal * n;
  sum.parts.stall += part.parts.stall * n;
  sum.parts.onload += part.parts.onload * n;
  sum.parts.offload += part.parts.offload * n;
  sum.spatial_utilisation = (sum.spatial_utilisation * before +
                             part.spatial_utilisation * part.parts.ideal_temporal * n) /
                            sum.parts.ideal_temporal;
  sum.ideal += Cycles{part.ideal.value * times};
  sum.compute_energy += Picojoules{part.compute_energy.value * n};
  sum.memory_energy += Picojoules{part.memory_energy.value * n};
  add_levels(part, times, sum);
  sum.offchip.resize(part.offchip.size());
  sum.resident.resize(part.resident.size());
  for (std::size_t i = 0; i < part.offchip.size(); ++i) {
    sum.offchip[i].read += Bits{part.offchip[i].read.value * times};
    sum.offchip[i].write += Bits{part.offchip[i].write.value * times};
    sum.resident[i] = std::max(sum.resident[i], part.resident[i]);
  }
  sum.effort.space += part.effort.space;
  sum.effort.visited += part.effort.visited;
  sum.effort.pruned += part.effort.pruned;
  sum.effort.exact = sum.effort.exact && part.effort.exact;
  sum.latency_bound += part.latency_bound * n;
  sum.energy_bound += part.energy_bound * n;
}

/// Where a sub-convolution lies in dX or dY does not change its cost.
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
  std::int64_t largest = 0;
  for (const Repeated& part : parts) {
    const CoreCost cost = f.solve(part.problem, beside_the_rest(f, part.problem), f.options);
    add(cost, part.times, sum);
    const std::int64_t macs = iterations_of(part.problem);
    sum.macs_executed = checked_add(sum.macs_executed, checked_multiply(macs, part.times));
    if (macs > largest) {
      largest = macs;
      sum.spatial = cost.spatial;
      sum.temporal = cost.temporal;
    }
  }
  sum.latency = {static_cast<std::int64_t>(sum.parts.total())};
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

/// The objective of a mapping that keeps every lane busy and moves nothing: no mapping is better.
std::pair<double, double> least_merit(const Forms& f, std::int64_t macs) {
  const auto n = static_cast<double>(macs);
  const double lanes = static_cast<double>(std::max<std::int64_t>(1, f.core.lanes()));
  return merit(f.options.objective, n / lanes, n * f.core.mac_energy_pj);
}

std::pair<double, double> merit_of(const Forms& f, const CoreCost& cost) {
  const Priced p = priced(cost, f.options.offchip);
  return merit(f.options.objective, p.latency, p.energy);
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

std::vector<CoreCost> front_of_form(const Forms& f, InputGradient form) {
  std::vector<CoreCost> costs;
  if (form == InputGradient::decomposed) {
    for (const Objective objective : {Objective::latency, Objective::energy, Objective::edp}) {
      CoreCostOptions options = f.options;
      options.objective = objective;
      costs.push_back(cost_decomposed({f.problem, f.transposed, f.core, options, f.solve}));
    }
    return costs;
  }
  const bool zeros = form == InputGradient::zero_inserted;
  const CoreProblem problem = zeros ? zero_inserted(f.problem, f.transposed) : f.problem;
  for (CoreCost& cost : search_front(problem, f.core, f.options)) {
    cost.macs_executed = iterations_of(problem);
    cost.variant = "scatter";
    costs.push_back(zeros ? with_zeros(f, problem, std::move(cost)) : std::move(cost));
  }
  return costs;
}

/// An order that the user fixed speaks of the loops as they are.
bool keeps_form(const CoreCostOptions& options) {
  return options.input_gradient == InputGradient::scatter || !options.temporal_order.empty();
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

CoreCost best_form(const CoreProblem& problem, const Transposed& transposed, const Core& core,
                   const CoreCostOptions& options, const Solver& solve) {
  // The forms are solved as they are, so that a cache knows them whoever asks.
  CoreCostOptions as_is = options;
  as_is.input_gradient = InputGradient::scatter;
  const Forms f{problem, transposed, core, as_is, solve};
  if (options.input_gradient != InputGradient::best)
    return cost_form(f, options.input_gradient);
  std::optional<CoreCost> best;
  std::exception_ptr first_failure;
  const auto consider = [&](InputGradient form) {
    try {
      CoreCost cost = cost_form(f, form);
      if (!best || merit_of(f, cost) < merit_of(f, *best))
        best = std::move(cost);
    } catch (const InfeasibleError&) {
      if (!first_failure)
        first_failure = std::current_exception();
    }
  };
  consider(InputGradient::scatter);
  consider(InputGradient::decomposed);
  // Most often its zeros alone cost more than what was found.
  if (transposed.strided &&
      (!best ||
       least_merit(f, iterations_of(zero_inserted(problem, transposed))) < merit_of(f, *best)))
    consider(InputGradient::zero_inserted);
  if (!best)
    std::rethrow_exception(first_failure);
  return *best;
}

std::vector<CoreCost> mappings(const CoreProblem& problem, const Core& core,
                               const CoreCostOptions& options) {
  if (problem.compute != ComputeKind::mac)
    return {vector_cost(problem, core)};
  if (!problem.products.empty()) { // the best of each product, not all their combinations
    std::vector<CoreCost> costs;
    for (const Objective objective : {Objective::latency, Objective::energy, Objective::edp}) {
      CoreCostOptions wanted = options;
      wanted.objective = objective;
      costs.push_back(core_cost(problem, core, wanted));
    }
    return costs;
  }
  const std::optional<Transposed> transposed = find_transposed(problem);
  if (!transposed) {
    std::vector<CoreCost> costs = search_front(problem, core, options);
    for (CoreCost& cost : costs)
      cost.macs_executed = iterations_of(problem);
    return costs;
  }
  CoreCostOptions as_is = options;
  as_is.input_gradient = InputGradient::scatter;
  const Solver solve = [](const CoreProblem& part, const Core& on, const CoreCostOptions& how) {
    return core_cost(part, on, how);
  };
  const Forms f{problem, *transposed, core, as_is, solve};
  const InputGradient wanted =
      keeps_form(options) ? InputGradient::scatter : options.input_gradient;
  std::vector<CoreCost> costs;
  std::exception_ptr failure;
  for (const InputGradient form :
       {InputGradient::scatter, InputGradient::decomposed, InputGradient::zero_inserted}) {
    const bool same = form == InputGradient::zero_inserted && !transposed->strided;
    if (wanted == InputGradient::best ? same : form != wanted)
      continue;
    try {
      for (CoreCost& cost : front_of_form(f, form))
        costs.push_back(std::move(cost));
    } catch (const InfeasibleError&) {
      if (!failure)
        failure = std::current_exception();
    }
  }
  if (costs.empty())
    std::rethrow_exception(failure);
  return costs;
}

CoreCost core_cost_with(const CoreProblem& problem, const Core& core,
                        const CoreCostOptions& options, const Solver& solve) {
  if (problem.compute != ComputeKind::mac)
    return vector_cost(problem, core);
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
