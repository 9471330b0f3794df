// Latency of a mapping with stalls on shared ports, computed from the data movement; candidate.cpp
// calls it.
#include "core_cost/model/energy.hpp"
#include "core_cost/model/loading.hpp"

#include <algorithm>
#include <span>

namespace monet::core_cost_detail {

namespace {

/// One periodic use of a port: `real` cycles of work that should fit in `allowed` cycles of every
/// period.
struct PortUseTime {
  std::int64_t real;
  std::int64_t allowed;
  std::int64_t period;
  std::int64_t count;
  std::int64_t steady; ///< uses while computing: the first one comes before
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
std::int64_t union_of_windows(std::span<PortUseTime> uses) {
  for (const PortUseTime& use : uses) {
    if (use.period == use.allowed)
      return use.period * use.count;
  }
  sort_few(uses, [](const PortUseTime& a, const PortUseTime& b) { return a.period > b.period; });
  // One use per period: the one with the longest window covers the others.
  std::size_t kept = 0;
  const std::int64_t count = uses[0].count;
  for (std::size_t i = 1; i < uses.size(); ++i) {
    if (uses[i].period == uses[kept].period) {
      uses[kept].allowed = std::max(uses[kept].allowed, uses[i].allowed);
    } else {
      uses[++kept] = uses[i];
    }
  }
  return covered(uses.data(), uses.data() + kept + 1, uses[0].period) * count;
}

std::int64_t port_stall(std::span<PortUseTime> uses) {
  if (uses.empty())
    return 0;
  std::int64_t late = 0;
  std::int64_t slack = 0;
  std::int64_t windows = 0;
  std::int64_t widest = 0; // the union is no less than the windows of any one use
  for (const PortUseTime& use : uses) {
    const std::int64_t stall = (use.real - use.allowed) * use.steady;
    late += std::max<std::int64_t>(0, stall);
    slack += std::min<std::int64_t>(0, stall);
    windows += use.allowed * use.steady;
    widest = std::max(widest, use.allowed * use.count);
  }
  if (uses.size() == 1)
    return late + slack;
  if (slack + windows <= widest)
    return late;
  return late + std::max<std::int64_t>(0, slack + windows - union_of_windows(uses));
}

std::int64_t stall_cycles(const NestModel& model, const Hierarchy& hierarchy,
                          const DataMovement& movement, const DoubleBuffered& double_buffered) {
  std::int64_t worst = 0;
  std::int64_t sum = 0;
  std::array<PortUseTime, kMaxActivities> uses;
  for (const Port& port : hierarchy.ports) {
    if (port.in_unit)
      continue;
    std::size_t n = 0;
    for (const PortActivity& a : port.activities) {
      const Movement& m = movement[a.operand].levels[a.level][index_of(a.direction)];
      if (m.count == 0 || n == kMaxActivities)
        continue;
      const bool relaxed = double_buffered[a.operand][is_low(a.direction) ? a.level : a.level + 1];
      uses[n++] = {port.width.passes(m.amount * m.bits),
                   (relaxed ? m.period : m.window) * hierarchy.wave_cycles,
                   m.period * hierarchy.wave_cycles, m.count, std::min(m.count - 1, m.transfers)};
    }
    const std::int64_t stall = std::max<std::int64_t>(0, port_stall({uses.data(), n}));
    worst = std::max(worst, stall);
    sum += stall;
  }
  return model.choices.port_stalls_add ? sum : worst;
}

} // namespace

DoubleBuffered find_double_buffers(const NestModel& model, const Hierarchy& hierarchy,
                                   const DataMovement& movement) {
  DoubleBuffered flags{};
  std::array<double, kMaxOperands * kMaxLevels> filled{}; // share of each node's capacity in use
  std::array<std::array<double, kMaxLevels>, kMaxOperands> share;
  for (std::size_t operand = 0; operand < model.operands.size(); ++operand) {
    for (std::size_t l = 0; l < hierarchy.levels[operand].size(); ++l) {
      const std::size_t node = hierarchy.levels[operand][l].node;
      share[operand][l] = static_cast<double>(movement[operand].effective_bits[l + 1]) /
                          hierarchy.nodes[node].size_bits;
      filled[node] += share[operand][l];
    }
  }
  for (std::size_t operand = 0; operand < model.operands.size(); ++operand) {
    for (std::size_t l = 0; l < hierarchy.levels[operand].size(); ++l) {
      double& used = filled[hierarchy.levels[operand][l].node];
      if (used <= 0.5) {
        flags[operand][l + 1] = true;
      } else if (share[operand][l] <= 1 - used) {
        flags[operand][l + 1] = true;
        used += share[operand][l];
      }
    }
  }
  return flags;
}

LatencyParts mapping_latency(const NestModel& model, const Hierarchy& hierarchy,
                             const DataMovement& movement, const DoubleBuffered& double_buffered,
                             double issued) {
  LatencyParts parts;
  const std::size_t levels = hierarchy.levels[model.output].size();
  parts.ideal_temporal =
      static_cast<double>(movement[model.output].cycles[levels] * hierarchy.wave_cycles);
  parts.instructions = std::max(0.0, issued - parts.ideal_temporal);
  parts.stall =
      std::max(0.0, static_cast<double>(stall_cycles(model, hierarchy, movement, double_buffered)) -
                        parts.instructions);
  const Loading loading = loading_cycles(model, hierarchy, movement,
                                         parts.ideal_temporal + parts.instructions + parts.stall);
  parts.onload = loading.before;
  parts.offload = loading.after;
  return parts;
}

} // namespace monet::core_cost_detail
