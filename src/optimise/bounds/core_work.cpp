// Lower bounds on the cycles and energy of each operator on each type of core, and on the time of a
// step's whole work; step_bounds() uses them.
#include "optimise/bounds/core_work.hpp"

#include "hardware/shared/array_modes.hpp"
#include "hardware/shared/core_program.hpp"
#include "optimise/bounds/product_energy.hpp"
#include "optimise/bounds/step_cone.hpp"
#include "optimise/milp/milp_model.hpp"
#include "schedule/shared/bounds.hpp"
#include "tiling/shared/grid.hpp"

#include "monet/base/errors.hpp"
#include "monet/core_cost/core_cost.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string>

namespace monet {

namespace {

/// Memory operand of an element-wise access, as the schedule assigns it: outputs to O, inputs to
/// I1.
MemoryOperand memory_operand(const Access& access, const Core& core) {
  if (access.mode != AccessMode::read)
    return MemoryOperand::O;
  return core.top(MemoryOperand::I1) != nullptr ? MemoryOperand::I1 : MemoryOperand::I2;
}

/// Minimum number of elements that pass the top memory, over all tiles: every touched element, or
/// one per look-up.
double elements_passing(const Graph& graph, const Operator& op, const Access& access) {
  if (!looks_up(access))
    return static_cast<double>(
        touched_elements(access, full_tile(op.nest), graph.tensor(access.tensor).shape));
  double lookups = 1;
  for (std::size_t d = 0; d < op.nest.dims.size(); ++d)
    if (access.mode != AccessMode::read || moves_with(access, d) || !is_reduction(op.nest, d))
      lookups *= static_cast<double>(op.nest.dims[d].size);
  return lookups;
}

/// Minimum cycles and energy of the lanes and their memories for a whole operator. Sums over tiles
/// are no smaller, as tiles have disjoint iterations and touch at least their own elements.
class LaneWork {
public:
  LaneWork(const Graph& graph, const Operator& op, const Core& core)
      : graph_(graph), op_(op), core_(core), iterations_(static_cast<double>(iterations(op.nest))) {
  }

  CoreWork find() {
    CoreWork work;
    work.able = true;
    const VectorWork& each = op_.nest.work;
    const bool copies = op_.nest.compute == ComputeKind::copy;
    const double per_lane = copies
                                ? 0
                                : each.add + each.multiply + each.compare +
                                      core_.cycles_per_divide * (each.divide + each.square_root) +
                                      core_.cycles_per_transcendental * each.transcendental;
    const auto lanes = static_cast<double>(std::max<std::int64_t>(1, core_.lanes()));
    work.per_iteration = per_lane / lanes;
    work.compute_pj = copies ? 0 : iterations_ * each.total() * core_.mac_energy_pj;
    std::int64_t fill = 1;
    for (const Access& access : op_.nest.operands) {
      charge(access, copies);
      if (const Memory* top = core_.top(memory_operand(access, core_)))
        fill = std::max(fill, top->latency_cycles);
    }
    double port = 0;
    for (const auto& [name, cycles] : ports_)
      port = std::max(port, cycles);
    work.cycles = std::max(iterations_ * work.per_iteration, port) + static_cast<double>(fill);
    work.memory_pj = memory_pj_;
    work.tiled_pj = memory_pj_;
    return work;
  }

private:
  void charge(const Access& access, bool copies) {
    const MemoryOperand operand = memory_operand(access, core_);
    const std::vector<std::size_t> levels = core_.levels(operand);
    if (levels.empty())
      return;
    const auto bits = static_cast<double>(bits_of(graph_.tensor(access.tensor).type));
    const double through =
        elements_passing(graph_, op_, access) * bits * std::max(1, access.passes);
    const bool reads = access.mode != AccessMode::write;
    const bool writes = access.mode != AccessMode::read;
    // Partial sums are written once per iteration, for any number of passes.
    const double each =
        copies ? through : iterations_ * bits * (writes ? 1 : std::max(1, access.passes));
    for (std::size_t l = 0; l < levels.size(); ++l) {
      const Memory& memory = core_.memories[levels[l]];
      const bool top = l + 1 == levels.size();
      if (!top && static_cast<double>(memory.size.value) < 2 * bits)
        continue; // elements may bypass this memory
      const double below = top ? through : each;
      const double above = top ? 0 : through;
      pass(memory, operand, Direction::tl, reads ? below : 0, top);
      pass(memory, operand, Direction::fl, writes ? below : 0, top);
      pass(memory, operand, Direction::fh, reads ? above : 0, false);
      pass(memory, operand, Direction::th, writes ? above : 0, false);
    }
  }

  void pass(const Memory& memory, MemoryOperand operand, Direction direction, double bits,
            bool counts) {
    const MemoryPort* port = port_of(memory, operand, direction);
    if (port == nullptr || bits == 0)
      return;
    const double words = bits / static_cast<double>(port->bandwidth_max);
    const bool write = direction == Direction::fh || direction == Direction::fl;
    memory_pj_ += words * (write ? memory.write_energy_pj : memory.read_energy_pj);
    if (counts)
      ports_[port] +=
          words / static_cast<double>(std::max<std::int64_t>(1, instances(core_, memory)));
  }

  const Graph& graph_;
  const Operator& op_;
  const Core& core_;
  double iterations_;
  double memory_pj_ = 0;
  std::map<const MemoryPort*, double>
      ports_; // only the maximum is used, so the order is irrelevant
};

/// Maximum average number of lanes that a tile of the operator may use, for any unrolling. The
/// bandwidth of innermost memories limits loops along the array dimensions that they serve.
double usable_lanes(const TrainingGraph& step, const Operator& op, const Core& core) {
  const auto lanes = static_cast<double>(std::max<std::int64_t>(1, core.lanes()));
  const std::vector<ArrayOperand> operands = array_operands(step, op, core);
  const std::size_t loops = op.nest.dims.size();
  std::vector<std::vector<double>> caps(core.array.size(), std::vector<double>(loops));
  for (std::size_t d = 0; d < core.array.size(); ++d)
    for (std::size_t i = 0; i < loops; ++i)
      caps[d][i] = core.array[d].sums && !is_reduction(op.nest, i)
                       ? 1
                       : static_cast<double>(std::min(op.nest.dims[i].size, core.array[d].size));
  std::vector<bool> lower(operands.size(), false); // has a memory below
  for (const Memory& memory : core.memories) {
    std::vector<std::size_t> users;
    for (std::size_t k = 0; k < operands.size(); ++k) {
      const ArrayOperand& operand = operands[k];
      const bool holds =
          std::ranges::find(memory.operands, operand.memory) != memory.operands.end();
      if (!holds || (operand.aside && core.top(operand.memory) != &memory))
        continue;
      // An element that is too wide bypasses the memory, but narrower partial sums of some tiles do
      // not.
      if (operand.bits > memory.size.value)
        return lanes;
      users.push_back(k);
    }
    const bool innermost = std::ranges::none_of(users, [&](std::size_t k) { return lower[k]; });
    for (const std::size_t k : users)
      lower[k] = true;
    for (const std::size_t k : users) {
      const Direction direction = k == 0 ? Direction::fl : Direction::tl;
      std::int64_t widest = 0; // any of several ports may be the limit
      for (const MemoryPort& port : memory.ports)
        for (const PortUse& use : port.allocation)
          if (use.operand == operands[k].memory && use.direction == direction)
            widest = std::max(widest, port.bandwidth_max);
      if (!innermost || widest == 0)
        continue;
      const auto cap = static_cast<double>(std::max<std::int64_t>(1, widest / operands[k].bits));
      for (std::size_t d = 0; d < core.array.size() && d < memory.serves.size(); ++d)
        for (std::size_t i = 0; i < loops && memory.serves[d]; ++i)
          if (operands[k].moved_by[i])
            caps[d][i] = std::min(caps[d][i], cap);
    }
  }
  double by_dims = 1;
  for (std::size_t d = 0; d < core.array.size(); ++d) {
    double width = 1;
    for (const double cap : caps[d])
      width *= cap;
    by_dims *= std::min(width, static_cast<double>(core.array[d].size));
  }
  double by_loops = 1;
  for (std::size_t i = 0; i < loops; ++i) {
    double width = 1;
    for (std::size_t d = 0; d < core.array.size(); ++d)
      width *= caps[d][i];
    by_loops *= std::min(width, static_cast<double>(op.nest.dims[i].size));
  }
  return operands.empty() ? lanes : std::max(1.0, std::min({lanes, by_dims, by_loops}));
}

CoreWork product_work(const TrainingGraph& step, const Operator& op, double iterations,
                      const Core& core, ProductMemo& memo) {
  CoreWork work;
  work.able = true;
  const auto each = static_cast<double>(products(op.nest));
  work.per_iteration =
      each * static_cast<double>(cycles_per_product(core)) / usable_lanes(step, op, core);
  if (core.program != nullptr && core.program->issue)
    work.per_iteration *= core.program->issue->cycles_per_mac;
  work.cycles = iterations * work.per_iteration;
  work.compute_pj = iterations * each * core.mac_energy_pj;
  const ProductEnergy energy = min_product_energy(step, op, core, memo);
  work.memory_pj = energy.certain;
  work.tiled_pj = energy.in_all;
  work.lost_pj = energy.lost;
  return work;
}

bool reaches_offchip(const Chip& chip, CoreId core) {
  return !chip.offchip ||
         (chip.connected(*chip.offchip, core) && chip.connected(core, *chip.offchip));
}

} // namespace

std::vector<ArrayOperand> array_operands(const TrainingGraph& step, const Operator& op,
                                         const Core& core) {
  constexpr std::size_t most = 4;
  if (op.nest.products.size() > 1)
    return {};
  std::vector<ArrayOperand> operands;
  bool sums = false;
  for (std::size_t d = 0; d < op.nest.dims.size(); ++d)
    sums = sums || (op.nest.dims[d].size > 1 && is_reduction(op.nest, d));
  std::size_t reads = 0;
  for (const Access& access : op.nest.operands) {
    ArrayOperand operand;
    operand.bits = core_bits_of(step.graph.tensor(access.tensor).type);
    operand.min_bits = operand.bits;
    if (access.mode == AccessMode::read) {
      const bool weight = access.role == "W" || (access.role != "I" && reads > 0);
      const MemoryOperand wanted = weight ? MemoryOperand::I2 : MemoryOperand::I1;
      const MemoryOperand other = weight ? MemoryOperand::I1 : MemoryOperand::I2;
      operand.memory = core.top(wanted) != nullptr ? wanted : other;
      for (const ArrayOperand& before : operands)
        operand.aside = operand.aside || before.memory == operand.memory;
      ++reads;
    } else if (access.mode == AccessMode::write && operands.empty()) {
      operand.bits = sums ? std::max(operand.bits, bits_of(step.accumulate)) : operand.bits;
    } else {
      return {};
    }
    for (std::size_t d = 0; d < op.nest.dims.size(); ++d)
      operand.moved_by.push_back(moves_with(access, d) && !access.opaque);
    operands.push_back(std::move(operand));
  }
  return operands.size() <= most ? operands : std::vector<ArrayOperand>{};
}

WorkTable work_table(const TrainingGraph& step, const Chip& chip, const StepBoundOptions& options) {
  WorkTable table;
  ProductMemo memo;
  std::map<std::string, std::size_t> known;
  std::vector<std::size_t> type_of(chip.cores.size());
  for (std::size_t c = 0; c < chip.cores.size(); ++c) {
    if (chip.offchip && chip.offchip->index() == c)
      continue;
    const auto [entry, added] = known.emplace(signature(chip.cores[c]), table.types.size());
    if (added)
      table.types.push_back({CoreId(c), 0});
    type_of[c] = entry->second;
    ++table.types[entry->second].count;
  }
  const Graph& graph = step.graph;
  for (std::size_t o = 0; o < graph.operators().size(); ++o) {
    const Operator& op = graph.operators()[o];
    std::vector<bool> able(table.types.size());
    const std::vector<TensorFormat> formats = multiplied_formats(graph, op);
    const bool given = o < options.cores.size() && !options.cores[o].empty();
    for (std::size_t c = 0; c < chip.cores.size(); ++c) {
      if (chip.offchip && chip.offchip->index() == c)
        continue;
      const bool listed =
          given && std::ranges::find(options.cores[o], CoreId(c)) != options.cores[o].end();
      const bool can = reaches_offchip(chip, CoreId(c)) &&
                       can_run(chip.cores[c], op.nest.compute, op.op_type) &&
                       takes(chip.cores[c], formats);
      if (given ? listed : can)
        able[type_of[c]] = true;
    }
    if (std::ranges::find(able, true) == able.end())
      throw InfeasibleError(fmt::format("no core can run '{}' ({})", op.name, op.op_type));
    std::vector<Interval> all = full_tile(op.nest);
    if (all.empty())
      all.push_back({0, 1});
    const bool product = op.nest.compute == ComputeKind::mac;
    const auto every = static_cast<double>(iterations(op.nest));
    table.iterations.push_back(product ? landing_iterations(graph, op, all) : every);
    table.padding.push_back(every - table.iterations.back());
    auto& row = table.work.emplace_back(table.types.size());
    for (std::size_t t = 0; t < row.size(); ++t) {
      if (!able[t])
        continue;
      const Core& core = in_mode_for(chip.cores[table.types[t].example.index()], graph, op);
      row[t] = product ? product_work(step, op, table.iterations.back(), core, memo)
                       : LaneWork(graph, op, core).find();
    }
  }
  return table;
}

namespace {

/// Dual prices at the optimum of the linear program that spreads the work over types, if there is a
/// choice.
std::vector<double> best_prices(const WorkTable& table) {
  const std::size_t types = table.types.size();
  LinearProgram program;
  const std::uint32_t time = program.add_variable(0, 1e18, 1);
  for (std::size_t t = 0; t < types; ++t)
    program.add_row(std::vector<LinearTerm>{{time, table.types[t].count}}, 0, kUnbounded);
  bool choice = false;
  double scale = 0; // gives columns a similar magnitude
  for (const auto& row : table.work)
    for (const CoreWork& work : row)
      scale = std::max(scale, work.cycles);
  scale = scale > 0 ? scale : 1;
  for (const auto& row : table.work) {
    choice =
        choice || std::ranges::count_if(row, [](const CoreWork& work) { return work.able; }) > 1;
    const std::uint32_t spread = program.add_row({}, 1, 1);
    for (std::size_t t = 0; t < types; ++t)
      if (row[t].able)
        program.add_column(
            0, 1, 0,
            std::vector<LinearTerm>{{static_cast<std::uint32_t>(t), -row[t].cycles / scale},
                                    {spread, 1}});
  }
  if (!choice || program.solve({}) != LpStatus::optimal)
    return {};
  return {program.duals().begin(), program.duals().begin() + static_cast<std::ptrdiff_t>(types)};
}

} // namespace

WorkBound::WorkBound(const WorkTable& table) : table_(table) {
  const std::size_t types = table.types.size();
  for (std::size_t t = 0; t < types; ++t) {
    prices_.emplace_back(types, 0);
    prices_.back()[t] = 1 / table.types[t].count;
  }
  double cores = 0;
  for (const CoreType& type : table.types)
    cores += type.count;
  prices_.emplace_back(types, 1 / cores);
  if (std::vector<double> best = best_prices(table); !best.empty()) {
    double sum = 0;
    for (std::size_t t = 0; t < types; ++t)
      sum += (best[t] = std::max(best[t], 0.0)) * table.types[t].count;
    for (double& price : best)
      price /= sum;
    if (sum > 0)
      prices_.push_back(std::move(best));
  }
  for (const std::vector<double>& price : prices_) {
    auto& whole = least_.emplace_back();
    auto& each = min_iteration_.emplace_back();
    double sum = 0;
    for (const auto& row : table.work) {
      whole.push_back(kUnbounded);
      each.push_back(kUnbounded);
      for (std::size_t t = 0; t < types; ++t)
        if (row[t].able) {
          whole.back() = std::min(whole.back(), price[t] * row[t].cycles);
          each.back() = std::min(each.back(), price[t] * row[t].per_iteration);
        }
      sum += whole.back();
    }
    all_ = std::max(all_, sum);
  }
}

double WorkBound::of(const std::vector<double>& iterations) const {
  double most = 0;
  for (std::size_t p = 0; p < prices_.size(); ++p) {
    double sum = 0;
    for (std::size_t o = 0; o < iterations.size(); ++o)
      if (iterations[o] > 0)
        sum += iterations[o] >= table_.iterations[o] ? least_[p][o]
                                                     : iterations[o] * min_iteration_[p][o];
    most = std::max(most, sum);
  }
  return most;
}

} // namespace monet
