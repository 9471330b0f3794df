// Loading and unloading cycles of a mapping, and the part that computing hides; latency.cpp adds
// them.
#include "core_cost/model/loading.hpp"

#include <algorithm>
#include <cmath>

namespace monet::core_cost_detail {

namespace {

/// Cycles to load (inputs) or drain (output) per operand, level and direction.
using Loads = std::array<std::array<std::array<double, kDirections>, kMaxLevels>, kMaxOperands>;

using Rates = std::array<std::int64_t, kMaxOperands>;

/// `hidden`: see hidden_rates(); may be null.
void find_loads(const NestModel& model, const Hierarchy& hierarchy, const DataMovement& movement,
                double busy_cycles, Loads& loads, Rates* hidden) {
  for (std::size_t operand = 0; operand < model.operands.size(); ++operand) {
    for (std::size_t l = 0; l < hierarchy.levels[operand].size(); ++l)
      loads[operand][l].fill(0);
  }
  std::array<SingleTransfer, kMaxActivities> single;
  for (const Port& port : hierarchy.ports) {
    if (port.in_unit)
      continue;
    std::size_t n = 0;
    std::int64_t steady = 0; // bits per cycle of transfers that recur
    for (const PortActivity& a : port.activities) {
      if (a.reads_back)
        continue;
      const Movement& m = movement[a.operand].levels[a.level][index_of(a.direction)];
      if (m.count == 0)
        continue;
      const std::int64_t real = port.width.passes(m.amount * m.bits);
      if (m.count > 1 || n == kMaxActivities) {
        loads[a.operand][a.level][index_of(a.direction)] = static_cast<double>(real);
        steady += ceil_div(m.bits_per_cycle(), hierarchy.wave_cycles);
      } else {
        const std::int64_t least = port.width.passes(movement[a.operand].held_bits[1]);
        SingleTransfer& t = single[n++];
        t.operand = a.operand;
        t.level = a.level;
        t.direction = index_of(a.direction);
        t.cycles = static_cast<double>(real);
        t.least = least;
        t.whole = t.cycles;
      }
    }
    if (n == 0)
      continue;
    const double spare = static_cast<double>(port.bandwidth_max - steady) /
                         static_cast<double>(port.bandwidth_max) * busy_cycles;
    const std::span<SingleTransfer> all{single.data(), n};
    if (model.choices.loads_keep_minimum) {
      hide_in_spare_cycles(all, std::max(0.0, spare));
    } else {
      hide_as_zigzag(all, std::max(0.0, spare));
    }
    for (std::size_t i = 0; i < n; ++i) {
      const SingleTransfer& t = single[i];
      loads[t.operand][t.level][t.direction] = t.cycles;
      if (hidden != nullptr && t.level + 1 == hierarchy.levels[t.operand].size()) {
        const double bits =
            (t.whole - t.cycles) / busy_cycles * static_cast<double>(port.bandwidth_max);
        (*hidden)[t.operand] = static_cast<std::int64_t>(std::ceil(bits));
      }
    }
  }
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

InputLoad input_load(const NestModel& model, const Hierarchy& hierarchy, const Loads& loads,
                     std::size_t operand) {
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
      result.half = model.choices.half_shared_loads_add ? result.half + cycles : cycles;
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
      inputs[n++] = input_load(model, hierarchy, loads, i);
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

void hide_as_zigzag(std::span<SingleTransfer> transfers, double surplus) {
  sort_few(transfers,
           [](const SingleTransfer& a, const SingleTransfer& b) { return a.cycles > b.cycles; });
  for (std::size_t i = 0; i < transfers.size(); ++i) {
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

void hide_in_spare_cycles(std::span<SingleTransfer> transfers, double surplus) {
  const auto floor_of = [](const SingleTransfer& t) {
    return std::min(t.cycles, static_cast<double>(t.least));
  };
  // Lower a common ceiling from the longest transfer down, from one height at which a transfer
  // joins or reaches its floor to the next.
  double ceiling = 0;
  for (const SingleTransfer& t : transfers)
    ceiling = std::max(ceiling, t.cycles);
  while (surplus > 0) {
    std::size_t moving = 0;
    double next = 0;
    for (const SingleTransfer& t : transfers) {
      if (t.cycles >= ceiling && floor_of(t) < ceiling) {
        ++moving;
        next = std::max(next, floor_of(t));
      } else if (t.cycles < ceiling) {
        next = std::max(next, t.cycles);
      }
    }
    const double step = ceiling - next;
    if (step <= 0)
      break;
    if (surplus < step * static_cast<double>(moving)) {
      ceiling -= surplus / static_cast<double>(moving);
      break;
    }
    surplus -= step * static_cast<double>(moving);
    ceiling = next;
  }
  for (SingleTransfer& t : transfers)
    t.cycles = std::clamp(ceiling, floor_of(t), t.cycles);
}

Loading loading_cycles(const NestModel& model, const Hierarchy& hierarchy,
                       const DataMovement& movement, double busy_cycles) {
  Loads loads;
  find_loads(model, hierarchy, movement, busy_cycles, loads, nullptr);
  return {onload_cycles(model, hierarchy, loads), offload_cycles(model, hierarchy, loads)};
}

std::array<std::int64_t, kMaxOperands> hidden_rates(const NestModel& model,
                                                    const Hierarchy& hierarchy,
                                                    const DataMovement& movement,
                                                    double busy_cycles) {
  Loads loads;
  Rates hidden{};
  find_loads(model, hierarchy, movement, busy_cycles, loads, &hidden);
  return hidden;
}

} // namespace monet::core_cost_detail
