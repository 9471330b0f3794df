#include "latency.hpp"

#include <algorithm>
#include <cmath>

namespace monet::core_cost_detail {

namespace {

constexpr std::size_t kMaxActivities =
    24; ///< on one port: 4 operands, 4 directions, and room for two levels

/// One periodic use of a port: `real` cycles of work that should fit in `allowed` cycles of every
/// period.
struct PortUseTime {
  std::int64_t real = 0;
  std::int64_t allowed = 0;
  std::int64_t period = 0;
  std::int64_t count = 0;
};

bool is_low(Direction d) {
  return d == Direction::tl || d == Direction::fl;
}

/// Cycles of [0, length) that are inside the first `allowed` cycles of a period of any use in
/// [first, last). Periods are products of prefixes of one loop order, so each divides the next
/// larger one; uses are sorted by falling period.
std::int64_t covered(const PortUseTime* first, const PortUseTime* last, std::int64_t length) {
  if (first == last || length <= 0)
    return 0;
  const auto within = [&](std::int64_t part) { // part <= period
    const std::int64_t own = std::min(part, first->allowed);
    return own + covered(first + 1, last, part) - covered(first + 1, last, own);
  };
  const std::int64_t whole = length / first->period;
  const std::int64_t rest = length % first->period;
  return (whole > 0 ? whole * within(first->period) : 0) + within(rest);
}

/// Cycles in which the port may be used by anybody, over the whole run.
std::int64_t union_of_windows(std::array<PortUseTime, kMaxActivities>& uses, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    if (uses[i].period == uses[i].allowed)
      return uses[i].period * uses[i].count;
  }
  std::stable_sort(uses.begin(), uses.begin() + static_cast<std::ptrdiff_t>(n),
                   [](const PortUseTime& a, const PortUseTime& b) { return a.period > b.period; });
  // One use per period: the one with the longest window covers the others.
  std::size_t kept = 0;
  const std::int64_t count = uses[0].count;
  for (std::size_t i = 1; i < n; ++i) {
    if (uses[i].period == uses[kept].period) {
      uses[kept].allowed = std::max(uses[kept].allowed, uses[i].allowed);
    } else {
      uses[++kept] = uses[i];
    }
  }
  return covered(uses.data(), uses.data() + kept + 1, uses[0].period) * count;
}

std::int64_t port_stall(std::array<PortUseTime, kMaxActivities>& uses, std::size_t n) {
  if (n == 0)
    return 0;
  std::int64_t late = 0;
  std::int64_t slack = 0;
  std::int64_t windows = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t stall = (uses[i].real - uses[i].allowed) * (uses[i].count - 1);
    (stall > 0 ? late : slack) += stall;
    windows += uses[i].allowed * (uses[i].count - 1);
  }
  if (n == 1)
    return late + slack;
  return late + std::max<std::int64_t>(0, slack + windows - union_of_windows(uses, n));
}

std::int64_t worst_stall(const Hierarchy& hierarchy, const DataMovement& movement,
                         const DoubleBuffered& double_buffered) {
  std::int64_t worst = 0;
  std::array<PortUseTime, kMaxActivities> uses;
  for (const Port& port : hierarchy.ports) {
    std::size_t n = 0;
    for (const PortActivity& a : port.activities) {
      const Movement& m = movement[a.operand].levels[a.level][index_of(a.direction)];
      if (m.count == 0 || n == kMaxActivities)
        continue;
      const bool relaxed = double_buffered[a.operand][is_low(a.direction) ? a.level : a.level + 1];
      uses[n++] = {ceil_div(m.amount * m.bits, port.bandwidth_max), relaxed ? m.period : m.window,
                   m.period, m.count};
    }
    worst = std::max(worst, port_stall(uses, n));
  }
  return worst;
}

/// A transfer that happens once, before or after everything else on its port.
struct SingleTransfer {
  std::size_t operand = 0;
  std::size_t level = 0;
  std::size_t direction = 0;
  double cycles = 0;
  std::int64_t least = 0; ///< part that cannot overlap with computing
};

/// Hides single transfers behind `surplus` cycles of spare bandwidth: longest first, levelled down
/// together, each step limited by the not yet hidden part of the one reached.
void reduce_balanced(std::array<SingleTransfer, kMaxActivities>& transfers, std::size_t n,
                     double surplus) {
  std::stable_sort(
      transfers.begin(), transfers.begin() + static_cast<std::ptrdiff_t>(n),
      [](const SingleTransfer& a, const SingleTransfer& b) { return a.cycles > b.cycles; });
  for (std::size_t i = 0; i < n; ++i) {
    const double reduction = transfers[i].cycles - static_cast<double>(transfers[i].least);
    const double together = reduction * static_cast<double>(i + 1);
    if (surplus < together) {
      for (std::size_t j = 0; j <= i; ++j)
        transfers[j].cycles -= surplus / static_cast<double>(i + 1);
      return;
    }
    for (std::size_t j = 0; j <= i; ++j)
      transfers[j].cycles -= reduction;
    surplus -= together;
  }
}

/// Cycles to load (inputs) or drain (output) per operand, level and direction.
using Loads = std::array<std::array<std::array<double, kDirections>, kMaxLevels>, kMaxOperands>;

Loads find_loads(const NestModel& model, const Hierarchy& hierarchy, const DataMovement& movement,
                 double busy_cycles) {
  Loads loads{};
  std::array<SingleTransfer, kMaxActivities> single;
  for (const Port& port : hierarchy.ports) {
    std::size_t n = 0;
    std::int64_t steady = 0; // bits per cycle of transfers that recur
    for (const PortActivity& a : port.activities) {
      const bool output = model.operands[a.operand].output;
      if (output && (a.direction == Direction::tl || a.direction == Direction::fh))
        continue;
      const Movement& m = movement[a.operand].levels[a.level][index_of(a.direction)];
      if (m.count == 0)
        continue;
      const std::int64_t real = ceil_div(m.amount * m.bits, port.bandwidth_max);
      if (m.count > 1 || n == kMaxActivities) {
        loads[a.operand][a.level][index_of(a.direction)] = static_cast<double>(real);
        steady += m.bits_per_cycle;
      } else {
        const std::int64_t least = ceil_div(movement[a.operand].held_bits[1], port.bandwidth_max);
        single[n++] = {a.operand, a.level, index_of(a.direction), static_cast<double>(real), least};
      }
    }
    if (n == 0)
      continue;
    const double spare = static_cast<double>(port.bandwidth_max - steady) /
                         static_cast<double>(port.bandwidth_max) * busy_cycles;
    reduce_balanced(single, n, std::max(0.0, spare));
    for (std::size_t i = 0; i < n; ++i) {
      loads[single[i].operand][single[i].level][single[i].direction] = single[i].cycles;
    }
  }
  return loads;
}

bool port_shared(const Hierarchy& hierarchy, std::size_t operand, std::size_t level,
                 Direction direction) {
  const std::int32_t port = hierarchy.levels[operand][level].port[index_of(direction)];
  return port >= 0 && hierarchy.ports[static_cast<std::size_t>(port)].shared_by_inputs;
}

struct InputLoad {
  double shared = 0; ///< on ports that also serve the other input
  double half = 0;   ///< one end shared
  double individual = 0;
};

InputLoad input_load(const Hierarchy& hierarchy, const Loads& loads, std::size_t operand) {
  InputLoad result;
  for (std::size_t m = 0; m + 1 < hierarchy.levels[operand].size(); ++m) {
    if (hierarchy.is_offchip(operand, m + 1))
      break; // fetching is the scheduler's business
    const double cycles = std::max(loads[operand][m][index_of(Direction::fh)],
                                   loads[operand][m + 1][index_of(Direction::tl)]);
    const bool low = port_shared(hierarchy, operand, m, Direction::fh);
    const bool high = port_shared(hierarchy, operand, m + 1, Direction::tl);
    if (low && high) {
      result.shared += cycles;
    } else if (low || high) {
      result.half = cycles; // the last one wins, as in ZigZag
    } else {
      result.individual += cycles;
    }
  }
  return result;
}

double onload_cycles(const NestModel& model, const Hierarchy& hierarchy, const Loads& loads) {
  std::array<InputLoad, kMaxOperands> inputs;
  std::size_t n = 0;
  for (std::size_t i = 0; i < model.operands.size(); ++i) {
    if (!model.operands[i].output)
      inputs[n++] = input_load(hierarchy, loads, i);
  }
  if (n == 0)
    return 0;
  const InputLoad& a = inputs[0];
  double cycles = a.individual;
  if (n > 1) {
    const InputLoad& b = inputs[1];
    cycles = std::min(a.shared + std::max(b.shared + b.half + b.individual, a.half + a.individual),
                      b.shared + std::max(a.shared + a.half + a.individual, b.half + b.individual));
  }
  for (std::size_t i = 2; i < n; ++i)
    cycles += inputs[i].shared + inputs[i].half + inputs[i].individual;
  return cycles;
}

double offload_cycles(const NestModel& model, const Hierarchy& hierarchy, const Loads& loads) {
  double cycles = 0;
  for (std::size_t m = 0; m + 1 < hierarchy.levels[model.output].size(); ++m) {
    if (hierarchy.is_offchip(model.output, m + 1))
      break;
    cycles += std::max(loads[model.output][m][index_of(Direction::th)],
                       loads[model.output][m + 1][index_of(Direction::fl)]);
  }
  return cycles;
}

} // namespace

DoubleBuffered find_double_buffers(const NestModel& model, const Hierarchy& hierarchy,
                                   const DataMovement& movement) {
  DoubleBuffered flags{};
  std::array<double, kMaxOperands * kMaxLevels> filled{}; // share of each node's capacity in use
  const auto share = [&](std::size_t operand, std::size_t level) {
    const Node& node = hierarchy.nodes[hierarchy.levels[operand][level].node];
    return static_cast<double>(movement[operand].effective_bits[level + 1]) / node.size_bits;
  };
  for (std::size_t operand = 0; operand < model.operands.size(); ++operand) {
    for (std::size_t l = 0; l < hierarchy.levels[operand].size(); ++l) {
      filled[hierarchy.levels[operand][l].node] += share(operand, l);
    }
  }
  for (std::size_t operand = 0; operand < model.operands.size(); ++operand) {
    for (std::size_t l = 0; l < hierarchy.levels[operand].size(); ++l) {
      double& used = filled[hierarchy.levels[operand][l].node];
      if (used <= 0.5) {
        flags[operand][l + 1] = true;
      } else if (const double own = share(operand, l); own <= 1 - used) {
        flags[operand][l + 1] = true;
        used += own;
      }
    }
  }
  return flags;
}

LatencyParts mapping_latency(const NestModel& model, const Hierarchy& hierarchy,
                             const DataMovement& movement, const DoubleBuffered& double_buffered) {
  LatencyParts parts;
  const std::size_t levels = hierarchy.levels[model.output].size();
  parts.ideal_temporal = static_cast<double>(movement[model.output].cycles[levels]);
  parts.stall = static_cast<double>(worst_stall(hierarchy, movement, double_buffered));
  const Loads loads = find_loads(model, hierarchy, movement, parts.ideal_temporal + parts.stall);
  parts.onload = onload_cycles(model, hierarchy, loads);
  parts.offload = offload_cycles(model, hierarchy, loads);
  return parts;
}

} // namespace monet::core_cost_detail
