// Data movement of an allocation per operand, level and direction; energy and latency follow from
// it.
#include "core_cost/model/data_movement.hpp"

namespace monet::core_cost_detail {

namespace {

constexpr double kNoReduction = 1 + 1e-9;

/// To the nearest whole number, half to even. As std::nearbyint, without a call.
double rounded(double value) {
  constexpr double kWhole = 4503599627370496; // 2^52: from here on all doubles are whole
  return value < kWhole ? (value + kWhole) - kWhole : value;
}

/// One operand of one order: its loops and where they are cut.
struct Nest {
  const NestModel& model;
  const OperandModel& operand;
  const OperandUnrolling& unrolled;
  const TemporalOrder& order;
  const std::array<std::uint8_t, kMaxLevels>& cut;
  std::size_t levels;

  /// Loops inside boundary `m`, which is below memory level m.
  std::size_t end(std::size_t m) const { return m == 0 ? 0 : cut[m - 1]; }
  Relevance relevance(std::size_t i) const { return operand.relevance[order.loops[i].dim]; }
};

/// Output only. [l]: iterations from arch level l outwards that add to the same elements, overlap
/// included.
using Reduction = std::array<double, kMaxLevels + 1>;

void multiply_reduction(const Nest& nest, const Loop& loop, double& irrelevant,
                        Footprint& footprint) {
  switch (nest.operand.relevance[loop.dim]) {
  case Relevance::irrelevant:
    irrelevant *= loop.size;
    return;
  case Relevance::relevant:
    return;
  case Relevance::partial:
    footprint.multiply(loop);
    return;
  }
}

void find_reduction(const Nest& nest, Reduction& reduction) {
  Footprint footprint(nest.operand);
  const bool scattered = nest.operand.axes > 0;
  double overlap = 1;
  for (std::size_t l = 0; l <= nest.levels; ++l) {
    double irrelevant = 1;
    for (std::size_t i = l == 0 ? 0 : nest.end(l - 1); i < nest.end(l); ++i)
      multiply_reduction(nest, nest.order.loops[i], irrelevant, footprint);
    for (const Loop& loop : nest.unrolled.lists[l])
      multiply_reduction(nest, loop, irrelevant, footprint);
    reduction[l] = irrelevant;
    if (scattered) {
      reduction[l] = irrelevant * footprint.overlap() / overlap;
      overlap = footprint.overlap();
    }
  }
  for (std::size_t l = nest.levels; l-- > 0;)
    reduction[l] *= reduction[l + 1];
}

/// Output only. [m]: runs of the loops inside boundary m that are the first on their elements, so
/// that there are no partial sums yet. Runs that overlap others (scatter) count by their new part,
/// and the sum is rounded down.
using FirstRuns = std::array<std::int64_t, kMaxLevels + 1>;

void find_first_runs_of_scatter(const Nest& nest, FirstRuns& first) {
  Footprint inside(nest.operand);
  std::size_t begin = 0;
  for (std::size_t m = 0; m <= nest.levels; ++m) {
    const std::size_t end = nest.end(m);
    for (std::size_t i = begin; i < end; ++i)
      inside.multiply(nest.order.loops[i]);
    for (const Loop& loop : nest.unrolled.lists[m])
      inside.multiply(loop);
    Footprint all = inside;
    for (std::size_t i = end; i < nest.order.loops.size(); ++i)
      all.multiply(nest.order.loops[i]);
    first[m] = static_cast<std::int64_t>(all.elements() / inside.elements() + kRounding);
    begin = end;
  }
}

void find_first_runs(const Nest& nest, FirstRuns& first) {
  if (nest.operand.axes > 0) {
    find_first_runs_of_scatter(nest, first);
    return;
  }
  std::int64_t runs = 1; // product of the loops outside that touch the output
  std::size_t i = nest.order.loops.size();
  for (std::size_t m = nest.levels + 1; m-- > 0;) {
    for (; i > nest.end(m); --i) {
      if (nest.relevance(i - 1) == Relevance::relevant)
        runs *= static_cast<std::int64_t>(nest.order.loops[i - 1].size);
    }
    first[m] = runs;
  }
}

/// Cycles for which the multipliers use the same elements of an input: the innermost loops that do
/// not touch it. For an addend, on average: it is read again only where other sums start.
std::int64_t stationary_cycles(const Nest& nest) {
  std::size_t i = 0;
  while (i < nest.cut[0] && nest.relevance(i) == Relevance::irrelevant)
    ++i;
  std::int64_t cycles = nest.order.inside[i];
  const OperandModel& output = nest.model.operands[nest.model.output];
  for (; nest.operand.addend && i < nest.order.loops.size(); ++i) {
    if (output.relevance[nest.order.loops[i].dim] == Relevance::irrelevant)
      cycles *= static_cast<std::int64_t>(nest.order.loops[i].size);
  }
  return cycles;
}

/// Contents of every level and how long they stay.
void hold(const Nest& nest, const Reduction* reduction, OperandMovement& out) {
  const OperandModel& o = nest.operand;
  Footprint footprint(o);
  const auto bits_at = [&](std::size_t m) {
    const bool partial =
        reduction != nullptr && m < nest.levels && (*reduction)[m + 1] > kNoReduction;
    return partial ? o.partial_bits : o.bits;
  };
  out.elements[0] = static_cast<std::int64_t>(rounded(footprint.elements()));
  out.held_bits[0] = out.elements[0] * bits_at(0);
  out.effective_bits[0] = out.held_bits[0];
  out.cycles[0] = reduction != nullptr ? 1 : stationary_cycles(nest);
  for (std::size_t l = 0; l < nest.levels; ++l) {
    const std::size_t end = nest.end(l + 1);
    std::int64_t outer_relevant = 1; // outermost loops of the level that touch the operand
    for (std::size_t i = nest.end(l); i < end; ++i) {
      const Loop& loop = nest.order.loops[i];
      footprint.multiply(loop);
      outer_relevant = nest.relevance(i) == Relevance::relevant
                           ? outer_relevant * static_cast<std::int64_t>(loop.size)
                           : 1;
    }
    for (const Loop& loop : nest.unrolled.lists[l])
      footprint.multiply(loop);
    out.elements[l + 1] = static_cast<std::int64_t>(rounded(footprint.elements()));
    out.held_bits[l + 1] = out.elements[l + 1] * bits_at(l + 1);
    out.effective_bits[l + 1] =
        outer_relevant == 1 ? out.held_bits[l + 1] : out.held_bits[l + 1] / outer_relevant;
    out.cycles[l + 1] = nest.order.inside[end];
  }
}

/// When something crosses boundary m: the same above and below it.
struct Times {
  std::int64_t period;
  std::int64_t count;
  std::int64_t window;
};

Times times_at(const Nest& nest, const OperandMovement& held, std::size_t m) {
  const std::int64_t period = held.cycles[m];
  if (m == 0)
    return {period, nest.order.inside[nest.order.loops.size()] / period, period};
  const std::size_t end = nest.end(m);
  std::size_t i = end; // outermost loops of the level below that do not touch the operand
  while (i > nest.end(m - 1) && nest.relevance(i - 1) == Relevance::irrelevant)
    --i;
  return {period, nest.order.outside[end], nest.order.inside[i]};
}

// Field by field: a structure put together elsewhere and copied has to wait for its parts.
void set(Movement& movement, std::int64_t amount, std::int64_t bits, const Times& times,
         std::int64_t transfers) {
  movement.amount = amount;
  movement.bits = bits;
  movement.period = times.period;
  movement.count = times.count;
  movement.transfers = transfers;
  movement.window = times.window;
}

void move_input(const Nest& nest, OperandMovement& out) {
  hold(nest, nullptr, out);
  const std::int64_t bits = nest.operand.bits;
  for (std::size_t m = 0; m < nest.levels; ++m) {
    const Times times = times_at(nest, out, m);
    auto& level = out.levels[m];
    if (m > 0)
      set(out.levels[m - 1][index_of(Direction::fh)], out.elements[m], bits, times, times.count);
    set(level[index_of(Direction::tl)], out.elements[m] * nest.unrolled.boost[m], bits, times,
        times.count);
    level[index_of(Direction::fl)] = {};
    level[index_of(Direction::th)] = {};
  }
  out.levels[nest.levels - 1][index_of(Direction::fh)] = {};
}

void move_output(const Nest& nest, OperandMovement& out) {
  const OperandModel& o = nest.operand;
  Reduction reduction;
  find_reduction(nest, reduction);
  hold(nest, &reduction, out);
  FirstRuns first{};
  if (nest.model.choices.first_partial_sums_free)
    find_first_runs(nest, first);
  const auto size = static_cast<double>(out.elements[nest.levels]);
  // The overlap of scattered outputs is a quotient of counts; without axes to share it is exact.
  const double rounding = o.axes > 0 ? kRounding * size : 0;
  for (std::size_t m = 0; m < nest.levels; ++m) {
    const bool sums = static_cast<std::int64_t>(size * (reduction[m + 1] - 1) + rounding) != 0;
    const std::int64_t bits = sums ? o.partial_bits : o.bits;
    const Times times = times_at(nest, out, m);
    const std::int64_t back = sums ? times.count - first[m] : 0;
    const auto both_ways = [&](Movement& up, Movement& down, std::int64_t amount) {
      set(up, amount, bits, times, times.count);
      if (back > 0) {
        set(down, amount, bits, times, back);
      } else {
        down = {};
      }
    };
    auto& level = out.levels[m];
    both_ways(level[index_of(Direction::fl)], level[index_of(Direction::tl)],
              out.elements[m] * nest.unrolled.boost[m]);
    if (m > 0) {
      auto& below = out.levels[m - 1];
      both_ways(below[index_of(Direction::th)], below[index_of(Direction::fh)], out.elements[m]);
    }
  }
  out.levels[nest.levels - 1][index_of(Direction::th)] = {};
  out.levels[nest.levels - 1][index_of(Direction::fh)] = {};
}

} // namespace

TemporalOrder::TemporalOrder(std::span<const Loop> all) : loops(all) {
  inside[0] = 1;
  for (std::size_t i = 0; i < loops.size(); ++i)
    inside[i + 1] = inside[i] * static_cast<std::int64_t>(loops[i].size);
  outside[loops.size()] = 1;
  for (std::size_t i = loops.size(); i-- > 0;)
    outside[i] = outside[i + 1] * static_cast<std::int64_t>(loops[i].size);
}

void merge_stationary(const NestModel& model, const Hierarchy& hierarchy,
                      std::span<const Loop> order, Allocation& allocation) {
  for (std::size_t operand = 0; operand < model.operands.size(); ++operand) {
    const OperandModel& o = model.operands[operand];
    for (std::size_t l = 0; l + 1 < hierarchy.levels[operand].size(); ++l) {
      std::uint8_t& cut = allocation.cut[operand][l];
      while (cut < order.size() && o.relevance[order[cut].dim] == Relevance::irrelevant)
        ++cut;
    }
  }
}

void move_data(const NestModel& model, const Hierarchy& hierarchy, const SpatialForm& spatial,
               const TemporalOrder& order, const Allocation& allocation, DataMovement& movement) {
  for (std::size_t i = 0; i < model.operands.size(); ++i) {
    const Nest nest{model, model.operands[i], spatial.operands[i],
                    order, allocation.cut[i], hierarchy.levels[i].size()};
    if (nest.operand.output) {
      move_output(nest, movement[i]);
    } else {
      move_input(nest, movement[i]);
    }
  }
}

} // namespace monet::core_cost_detail
