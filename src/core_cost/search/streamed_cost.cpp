// Cost of a tile with streamed operands as the reference (Stream) computes it; the schedule uses it
// in that mode.
#include "core_cost/shared/streamed_cost.hpp"

#include "core_cost/model/candidate.hpp"
#include "core_cost/model/loading.hpp"
#include "core_cost/model/set_order.hpp"
#include "core_cost/search/order_beginning.hpp"
#include "core_cost/search/order_rank.hpp"
#include "core_cost/search/temporal_order.hpp"
#include "core_cost/zigzag/spatial_generator.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/stop.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

namespace monet {

namespace {

using namespace core_cost_detail;

constexpr int kLpfLimit = 6;

/// The off-chip memory as it serves some operands of a core. It serves the array dims of the same
/// names as in its own file: on an array dim that it does not know there are several of it, as in
/// the reference.
Memory offchip_level(const Core& core, const Core& offchip,
                     const std::vector<MemoryOperand>& operands) {
  Memory memory = offchip.memories.front();
  const auto kept = [&](MemoryOperand operand) {
    return std::ranges::find(operands, operand) != operands.end();
  };
  memory.operands = operands;
  for (MemoryPort& port : memory.ports)
    std::erase_if(port.allocation, [&](const PortUse& use) { return !kept(use.operand); });
  const std::vector<bool> own = memory.serves;
  memory.serves.assign(core.array.size(), false);
  for (std::size_t d = 0; d < core.array.size(); ++d) {
    memory.serves[d] = core.array[d].sums;
    for (std::size_t e = 0; e < offchip.array.size() && e < own.size(); ++e) {
      if (offchip.array[e].name == core.array[d].name)
        memory.serves[d] = own[e];
    }
  }
  return memory;
}

Core with_offchip(const StreamedProblem& asked, const Core& core, const Core& offchip) {
  Core extended = core;
  std::vector<MemoryOperand> operands;
  for (const std::size_t i : asked.streamed)
    operands.push_back(asked.problem.operands[i].memory);
  if (!operands.empty())
    extended.memories.push_back(offchip_level(core, offchip, operands));
  return extended;
}

/// Bits per cycle at an operand's topmost memory.
struct TopBandwidth {
  std::int64_t read = 0;   ///< towards the core, while data pass
  std::int64_t write = 0;  ///< from the core
  std::int64_t hidden = 0; ///< for loading and unloading that hide behind computing
};

std::vector<TopBandwidth> rates_at_top(const NestModel& model, const Hierarchy& hierarchy,
                                       const SpatialModel& spatial, const Candidate& candidate) {
  const DataMovement& movement = spatial.same ? candidate.exact : candidate.truncated;
  const auto hidden = hidden_rates(model, hierarchy, movement,
                                   candidate.latency.ideal_temporal + candidate.latency.stall);
  std::vector<TopBandwidth> rates(model.operands.size());
  for (std::size_t i = 0; i < rates.size(); ++i) {
    const auto& top = movement[i].levels[hierarchy.levels[i].size() - 1];
    const auto rate = [&](Direction direction) {
      const Movement& m = top[index_of(direction)];
      return m.count == 0 || m.window == 0 ? 0 : m.bits_per_cycle() * (m.period / m.window);
    };
    rates[i] = {rate(Direction::tl), rate(Direction::fl), hidden[i]};
  }
  return rates;
}

/// Topmost memory that tiles side by side share.
struct SharedTop {
  std::vector<std::size_t> operands;    ///< operands that use it
  std::optional<std::size_t> broadcast; ///< operand of which one read serves all tiles
  std::int64_t available = 1;           ///< bits per cycle
};

/// Finds the shared memory as the reference does: it regards the operands with the most memory
/// levels as streamed. They are sorted in the order in which ZigZag walks the set of operands that
/// the core serves; the memory is that of the first.
SharedTop shared_top(const StreamedProblem& asked, const Hierarchy& hierarchy, const Core& core) {
  std::vector<MemoryOperand> served;
  for (const Memory& memory : core.memories) {
    for (const MemoryOperand operand : memory.operands) {
      if (std::ranges::find(served, operand) == served.end())
        served.push_back(operand);
    }
  }
  const auto& operands = asked.problem.operands;
  std::size_t most = 0;
  for (std::size_t i = 0; i < operands.size(); ++i)
    most = std::max(most, hierarchy.levels[i].size());
  SharedTop shared;
  for (const MemoryOperand memory : zigzag_set_order(served)) {
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (operands[i].memory == memory && hierarchy.levels[i].size() == most)
        shared.operands.push_back(i);
    }
  }
  internal_check(!shared.operands.empty(), "an operand has the most memory levels");
  for (const std::size_t i : shared.operands) {
    if (shared.operands.size() > 1 && !shared.broadcast && operands[i].mode == AccessMode::read)
      shared.broadcast = i;
  }
  const Node& top = hierarchy.nodes[hierarchy.levels[shared.operands.front()].back().node];
  for (const MemoryPort& port : top.memory->ports)
    shared.available = std::max(shared.available, port.bandwidth_max);
  return shared;
}

/// All orders of the temporal loops of one unrolling, and the best so far of all unrollings.
class OrderWalk {
public:
  OrderWalk(const StreamedProblem& asked, const NestModel& model, const Hierarchy& hierarchy,
            SharedTop shared)
      : asked_(asked), model_(model), hierarchy_(hierarchy), shared_(std::move(shared)) {}

  void walk(const ArrayUnrolling& unrolling) {
    const SpatialModel spatial = make_spatial_model(model_, hierarchy_, unrolling);
    const LoopKinds kinds = make_kinds(model_, temporal_factors(spatial.temporal, kLpfLimit));
    if (best_)
      best_->of_this_unrolling = false;
    std::vector<std::uint8_t> order;
    for (std::size_t k = 0; k < kinds.loop.size(); ++k)
      order.insert(order.end(), static_cast<std::size_t>(kinds.count[k]),
                   static_cast<std::uint8_t>(k));
    do {
      check_stop();
      visit(spatial, kinds, order);
    } while (std::next_permutation(order.begin(), order.end()));
  }

  bool found() const { return best_.has_value(); }
  const SpatialModel& spatial() const { return best_spatial_; }
  const Candidate& best() const { return best_->candidate; }
  const std::optional<AllocationFailure>& failure() const { return failure_; }

private:
  struct Best {
    double merit = 0;
    bool of_this_unrolling = false;
    std::vector<std::uint8_t> kinds;
    Candidate candidate;
  };

  double merit(const SpatialModel& spatial, const Candidate& candidate) const {
    const double latency = std::trunc(candidate.latency.total());
    if (asked_.streamed.empty())
      return latency;
    const auto rates = rates_at_top(model_, hierarchy_, spatial, candidate);
    std::int64_t used = 0;
    for (const std::size_t i : shared_.operands) {
      const TopBandwidth& rate = rates[i];
      const bool once = i == shared_.broadcast;
      used += (once ? 1 : asked_.parallel) * (rate.read + rate.write + rate.hidden);
    }
    return static_cast<double>((used + shared_.available - 1) / shared_.available) * latency;
  }

  void visit(const SpatialModel& spatial, const LoopKinds& kinds,
             const std::vector<std::uint8_t>& order) {
    candidate_.size = order.size();
    for (std::size_t i = 0; i < order.size(); ++i)
      candidate_.loops[i] = kinds.loop[order[i]];
    AllocationFailure why;
    if (!evaluate(model_, hierarchy_, spatial, candidate_, &why)) {
      if (!failure_ || why.bits < failure_->bits)
        failure_ = why;
      return;
    }
    const double value = merit(spatial, candidate_);
    const bool better = !best_ || value < best_->merit ||
                        (value == best_->merit && best_->of_this_unrolling &&
                         enumerated_before(order, best_->kinds));
    if (!better)
      return;
    if (!best_ || !best_->of_this_unrolling)
      best_spatial_ = spatial;
    best_ = Best{value, true, order, candidate_};
  }

  const StreamedProblem& asked_;
  const NestModel& model_;
  const Hierarchy& hierarchy_;
  SharedTop shared_;
  Candidate candidate_;
  std::optional<Best> best_;
  SpatialModel best_spatial_;
  std::optional<AllocationFailure> failure_;
};

/// Data movement with slower multipliers: everything that is counted in cycles of the loops
/// stretches.
DataMovement stretched(const NestModel& model, const Hierarchy& hierarchy,
                       const SpatialModel& spatial, const Candidate& candidate,
                       std::int64_t factor) {
  DataMovement movement = spatial.same ? candidate.exact : candidate.truncated;
  for (std::size_t i = 0; i < model.operands.size(); ++i) {
    for (std::size_t l = 0; l <= hierarchy.levels[i].size(); ++l)
      movement[i].cycles[l] *= factor;
    for (std::size_t l = 0; l < hierarchy.levels[i].size(); ++l) {
      for (Movement& m : movement[i].levels[l]) {
        m.period *= factor;
        m.window *= factor;
      }
    }
  }
  return movement;
}

/// Data rates on the links of the off-chip memory while the tile runs. Loading that is hidden
/// behind computing counts as reading, unless the memory also receives the outputs. In that case
/// the reference assigns it to a direction that no link has.
std::vector<StreamedRate> link_rates(const StreamedProblem& asked,
                                     const std::vector<TopBandwidth>& while_passing,
                                     const std::array<std::int64_t, kMaxOperands>& hidden,
                                     double busy) {
  const auto& operands = asked.problem.operands;
  const auto is_output = [&](std::size_t i) { return operands[i].mode != AccessMode::read; };
  const bool outputs = std::ranges::any_of(asked.streamed, is_output);
  const auto scaled = [&](std::int64_t bits, double share) {
    return static_cast<std::int64_t>(std::ceil(static_cast<double>(bits) * share));
  };
  const double share = busy / static_cast<double>(asked.cycles_per_operation);
  std::vector<StreamedRate> rates(operands.size());
  for (const std::size_t i : asked.streamed) {
    rates[i] = {scaled(while_passing[i].read, share), scaled(while_passing[i].write, share)};
    if (!outputs)
      rates[i].read += scaled(hidden[i], busy);
  }
  return rates;
}

[[noreturn]] void no_order_fits(const CoreProblem& problem, const Core& core,
                                const Hierarchy& hierarchy,
                                const std::optional<AllocationFailure>& why) {
  internal_check(why.has_value(), "an order that does not fit says why");
  const Node& node = hierarchy.nodes[why->node];
  throw InfeasibleError(fmt::format(
      "core '{}': {} {} at least {:.0f} bits of memory '{}', which holds {:.0f}", core.name,
      operand_name(problem, why->operand), why->joint ? "and others together need" : "needs",
      why->bits, node.memory->name, node.size_bits));
}

StreamedCost streamed_cost_of(const StreamedProblem& asked, const NestModel& model,
                              const Hierarchy& hierarchy, const OrderWalk& search) {
  const Candidate& best = search.best();
  const DataMovement movement =
      stretched(model, hierarchy, search.spatial(), best, asked.cycles_per_operation);
  const LatencyParts latency = mapping_latency(model, hierarchy, movement, best.double_buffered);
  StreamedCost cost;
  cost.latency = latency.total();
  cost.ideal_temporal = latency.ideal_temporal;
  cost.onchip_pj = best.energy.total();
  cost.rates =
      link_rates(asked, rates_at_top(model, hierarchy, search.spatial(), best),
                 hidden_rates(model, hierarchy, movement, latency.ideal_temporal + latency.stall),
                 cost.ideal_temporal / cost.latency);
  for (const std::size_t i : asked.streamed) {
    const std::size_t top = hierarchy.levels[i].size() - 1;
    const double energy =
        level_energy(hierarchy, search.spatial().exact, best.exact, i, top, nullptr);
    cost.offchip_pj += energy;
    cost.onchip_pj -= energy;
  }
  for (const auto& on_dim : search.spatial().exact.loops) {
    cost.spatial.unrolled.emplace_back();
    for (const Loop& loop : on_dim)
      cost.spatial.unrolled.back().push_back({loop.dim, loop.size});
  }
  for (const Loop& loop : best.order())
    cost.order.push_back({loop.dim, loop.size});
  return cost;
}

} // namespace

std::vector<MemoryOperand> zigzag_set_order(const std::vector<MemoryOperand>& operands) {
  std::vector<std::string> names;
  for (const MemoryOperand operand : operands)
    names.emplace_back(name_of(operand));
  std::vector<MemoryOperand> ordered;
  for (const std::size_t i : set_order(names, NameKind::memory_operand))
    ordered.push_back(operands[i]);
  return ordered;
}

StreamedCost streamed_cost(const StreamedProblem& asked, const Core& core, const Core& offchip) {
  if (core.imc != nullptr)
    throw InfeasibleError(fmt::format("core '{}' computes in memory, which the reference has no "
                                      "costs of tiles for",
                                      core.name));
  CoreCostOptions options{.model = ModelChoices::zigzag_3_8(), .spatial = asked.spatial};
  const Core extended = with_offchip(asked, core, offchip);
  const NestModel model = make_nest_model(asked.problem, options.model);
  const Hierarchy hierarchy = make_hierarchy(asked.problem, model, extended);
  OrderWalk search(asked, model, hierarchy, shared_top(asked, hierarchy, core));
  const auto& named = core.dataflow.empty() ? options.spatial : core.dataflow;
  for (const ArrayUnrolling& unrolling : zigzag_unrollings(model, hierarchy, named, options))
    search.walk(unrolling);
  if (!search.found())
    no_order_fits(asked.problem, core, hierarchy, search.failure());
  return streamed_cost_of(asked, model, hierarchy, search);
}

} // namespace monet
