#include "data_movement.hpp"

#include <cmath>

namespace monet::core_cost_detail {

namespace {

/// Loops of one level of an operand as [begin, end) of the order.
struct Range {
  std::size_t begin;
  std::size_t end;
};
Range range_of(const Allocation& allocation, std::size_t operand, std::size_t level) {
  const auto& cut = allocation.cut[operand];
  return {level == 0 ? std::size_t{0} : cut[level - 1], cut[level]};
}

/// Product of the outermost run of loops of one relevance in a level.
std::int64_t outer_run(const OperandModel& operand, std::span<const Loop> order, Range range,
                       Relevance wanted) {
  double product = 1;
  for (std::size_t i = range.end; i-- > range.begin && operand.relevance[order[i].dim] == wanted;) {
    product *= order[i].size;
  }
  return static_cast<std::int64_t>(product);
}

/// Output only. reduction[l]: iterations from arch level l outwards that add to the same elements,
/// overlap included.
using Reduction = std::array<double, kMaxLevels + 3>;

Reduction output_reduction(const NestModel& model, const OperandUnrolling& spatial,
                           const TemporalOrder& order, const Allocation& allocation,
                           std::size_t operand, std::size_t levels) {
  const OperandModel& o = model.operands[operand];
  Reduction reduction;
  reduction.fill(1);
  Footprint footprint(o);
  double overlap = 1;
  for (std::size_t l = 0; l <= levels; ++l) {
    double irrelevant = 1;
    const auto add = [&](const Loop& loop) {
      if (o.relevance[loop.dim] == Relevance::irrelevant) {
        irrelevant *= loop.size;
      } else if (o.relevance[loop.dim] == Relevance::partial) {
        footprint.multiply(loop);
      }
    };
    if (l > 0) {
      const Range range = range_of(allocation, operand, l - 1);
      for (std::size_t i = range.begin; i < range.end; ++i)
        add(order.loops[i]);
    }
    for (const Loop& loop : spatial.lists[l])
      add(loop);
    reduction[l] = irrelevant * footprint.overlap() / overlap;
    overlap = footprint.overlap();
  }
  for (std::size_t l = levels; l-- > 0;)
    reduction[l] *= reduction[l + 1];
  return reduction;
}

constexpr double kNoReduction = 1 + 1e-9;
constexpr double kRounding = 1e-9;

/// Output only. [m]: runs of the loops inside boundary m that are the first on their elements, so
/// that there are no partial sums yet. Runs that overlap others (scatter) count by their new part,
/// and the sum is rounded down.
using FirstRuns = std::array<std::int64_t, kMaxLevels + 1>;

FirstRuns first_runs(const OperandModel& o, const OperandUnrolling& spatial,
                     const TemporalOrder& order, const Allocation& allocation, std::size_t operand,
                     std::size_t levels) {
  FirstRuns first{};
  Footprint inside(o);
  std::size_t begin = 0;
  for (std::size_t m = 0; m <= levels; ++m) {
    const std::size_t end = m == 0 ? 0 : allocation.cut[operand][m - 1];
    for (std::size_t i = begin; i < end; ++i)
      inside.multiply(order.loops[i]);
    for (const Loop& loop : spatial.lists[m])
      inside.multiply(loop);
    Footprint all = inside;
    for (std::size_t i = end; i < order.loops.size(); ++i)
      all.multiply(order.loops[i]);
    first[m] = static_cast<std::int64_t>(all.elements() / inside.elements() + kRounding);
    begin = end;
  }
  return first;
}

/// Cycles for which the multipliers use the same elements of an input: the innermost loops that do
/// not touch it. For an addend, on average: it is read again only where other sums start.
std::int64_t stationary_cycles(const NestModel& model, const TemporalOrder& order, Range inner,
                               const OperandModel& o) {
  std::size_t i = inner.begin;
  while (i < inner.end && o.relevance[order.loops[i].dim] == Relevance::irrelevant)
    ++i;
  std::int64_t cycles = order.prefix[i];
  const OperandModel& output = model.operands[model.output];
  for (; o.addend && i < order.loops.size(); ++i) {
    if (output.relevance[order.loops[i].dim] == Relevance::irrelevant)
      cycles *= static_cast<std::int64_t>(order.loops[i].size);
  }
  return cycles;
}

/// Contents of every level and how long they stay.
void hold(const NestModel& model, const OperandUnrolling& spatial, const TemporalOrder& order,
          const Allocation& allocation, std::size_t operand, std::size_t levels,
          OperandMovement& out, const Reduction* reduction) {
  const OperandModel& o = model.operands[operand];
  Footprint footprint(o);
  const auto bits_at = [&](std::size_t index) {
    const bool partial =
        reduction != nullptr && index < levels && (*reduction)[index + 1] > kNoReduction;
    return partial ? o.partial_bits : o.bits;
  };
  out.elements[0] = static_cast<std::int64_t>(std::nearbyint(footprint.elements()));
  out.held_bits[0] = out.elements[0] * bits_at(0);
  out.effective_bits[0] = out.held_bits[0];
  out.cycles[0] = 1;
  if (reduction == nullptr) {
    out.cycles[0] = stationary_cycles(model, order, range_of(allocation, operand, 0), o);
  }
  for (std::size_t l = 0; l < levels; ++l) {
    const Range range = range_of(allocation, operand, l);
    for (std::size_t i = range.begin; i < range.end; ++i)
      footprint.multiply(order.loops[i]);
    for (const Loop& loop : spatial.lists[l])
      footprint.multiply(loop);
    out.elements[l + 1] = static_cast<std::int64_t>(std::nearbyint(footprint.elements()));
    out.held_bits[l + 1] = out.elements[l + 1] * bits_at(l + 1);
    out.effective_bits[l + 1] =
        out.held_bits[l + 1] / outer_run(o, order.loops, range, Relevance::relevant);
    out.cycles[l + 1] = order.prefix[range.end];
  }
}

/// What comes back of the partial sums that were sent out; nothing when all runs are first ones.
Movement read_back(Movement sent, std::int64_t first_runs) {
  sent.transfers = sent.count - first_runs;
  return sent.transfers > 0 ? sent : Movement{};
}

/// The transfer of the data at array index `index`, widened by `boost` where several instances
/// below are fed.
Movement transfer(const OperandMovement& held, std::size_t index, std::int64_t boost,
                  std::int64_t bits, std::int64_t total, std::int64_t stationary) {
  Movement m;
  m.amount = held.elements[index] * boost;
  m.bits = bits;
  m.period = held.cycles[index];
  m.count = total / m.period;
  m.transfers = m.count;
  m.window = m.period / stationary;
  m.bits_per_cycle = m.amount * bits / m.period;
  return m;
}

} // namespace

TemporalOrder make_temporal_order(std::span<const Loop> loops) {
  TemporalOrder order;
  order.loops = loops;
  order.prefix[0] = 1;
  for (std::size_t i = 0; i < loops.size(); ++i) {
    order.prefix[i + 1] = order.prefix[i] * static_cast<std::int64_t>(loops[i].size);
  }
  return order;
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
  for (std::size_t operand = 0; operand < model.operands.size(); ++operand) {
    const OperandModel& o = model.operands[operand];
    const std::size_t levels = hierarchy.levels[operand].size();
    const OperandUnrolling& unrolled = spatial.operands[operand];
    OperandMovement& out = movement[operand];
    Reduction reduction;
    FirstRuns first{};
    if (o.output) {
      reduction = output_reduction(model, unrolled, order, allocation, operand, levels);
      if (model.choices.first_partial_sums_free)
        first = first_runs(o, unrolled, order, allocation, operand, levels);
    }
    hold(model, unrolled, order, allocation, operand, levels, out, o.output ? &reduction : nullptr);
    const std::int64_t total = out.cycles[levels];
    const auto size = static_cast<double>(out.elements[levels]);
    // The overlap of scattered outputs is a quotient of counts; without axes to share it is exact.
    const double rounding = o.axes > 0 ? kRounding * size : 0;
    const auto reduces = [&](std::size_t l) {
      return l <= levels && static_cast<std::int64_t>(size * (reduction[l] - 1) + rounding) != 0;
    };
    std::int64_t stationary = 1; // outermost irrelevant run of the level below
    for (std::size_t m = 0; m < levels; ++m) {
      const std::int64_t above =
          outer_run(o, order.loops, range_of(allocation, operand, m), Relevance::irrelevant);
      const bool top = m + 1 == levels;
      auto& level = out.levels[m];
      level = {};
      const std::int64_t boost = unrolled.boost[m];
      if (!o.output) {
        level[index_of(Direction::tl)] = transfer(out, m, boost, o.bits, total, stationary);
        if (!top)
          level[index_of(Direction::fh)] = transfer(out, m + 1, 1, o.bits, total, above);
      } else {
        const std::int64_t low_bits = reduces(m + 1) ? o.partial_bits : o.bits;
        level[index_of(Direction::fl)] = transfer(out, m, boost, low_bits, total, stationary);
        if (reduces(m + 1))
          level[index_of(Direction::tl)] = read_back(level[index_of(Direction::fl)], first[m]);
        if (!top) {
          const std::int64_t high_bits = reduces(m + 2) ? o.partial_bits : o.bits;
          level[index_of(Direction::th)] = transfer(out, m + 1, 1, high_bits, total, above);
          if (reduces(m + 2))
            level[index_of(Direction::fh)] =
                read_back(level[index_of(Direction::th)], first[m + 1]);
        }
      }
      stationary = above;
    }
  }
}

} // namespace monet::core_cost_detail
