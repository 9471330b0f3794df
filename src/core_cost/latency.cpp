#include "latency.hpp"

#include "loading.hpp"

#include <algorithm>
#include <cmath>

namespace monet::core_cost_detail {

namespace {

/// One periodic use of a port: `real` cycles of work that should fit in `allowed` cycles of every
/// period.
struct PortUseTime {
  std::int64_t real = 0;
  std::int64_t allowed = 0;
  std::int64_t period = 0;
  std::int64_t count = 0;
  std::int64_t steady = 0; ///< uses while computing: the first one comes before
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
    const std::int64_t stall = (uses[i].real - uses[i].allowed) * uses[i].steady;
    (stall > 0 ? late : slack) += stall;
    windows += uses[i].allowed * uses[i].steady;
  }
  if (n == 1)
    return late + slack;
  return late + std::max<std::int64_t>(0, slack + windows - union_of_windows(uses, n));
}

std::int64_t stall_cycles(const NestModel& model, const Hierarchy& hierarchy,
                          const DataMovement& movement, const DoubleBuffered& double_buffered) {
  std::int64_t worst = 0;
  std::int64_t sum = 0;
  std::array<PortUseTime, kMaxActivities> uses;
  for (const Port& port : hierarchy.ports) {
    std::size_t n = 0;
    for (const PortActivity& a : port.activities) {
      const Movement& m = movement[a.operand].levels[a.level][index_of(a.direction)];
      if (m.count == 0 || n == kMaxActivities)
        continue;
      const bool relaxed = double_buffered[a.operand][is_low(a.direction) ? a.level : a.level + 1];
      uses[n++] = {ceil_div(m.amount * m.bits, port.bandwidth_max), relaxed ? m.period : m.window,
                   m.period, m.count, std::min(m.count - 1, m.transfers)};
    }
    const std::int64_t stall = std::max<std::int64_t>(0, port_stall(uses, n));
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
  parts.stall = static_cast<double>(stall_cycles(model, hierarchy, movement, double_buffered));
  const Loading loading =
      loading_cycles(model, hierarchy, movement, parts.ideal_temporal + parts.stall);
  parts.onload = loading.before;
  parts.offload = loading.after;
  return parts;
}

} // namespace monet::core_cost_detail
