#include "monet/core_cost/streamed_cost.hpp"

#include "candidate.hpp"
#include "order_beginning.hpp"
#include "order_rank.hpp"
#include "set_order.hpp"
#include "spatial_generator.hpp"
#include "temporal_order.hpp"

#include "monet/base/errors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

namespace monet {

namespace {

using namespace core_cost_detail;

constexpr int kLpfLimit = 6;

std::int64_t widest_port(const Core& offchip) {
  internal_check(offchip.memories.size() == 1, "the off-chip core has one memory");
  std::int64_t widest = 0;
  for (const MemoryPort& port : offchip.memories.front().ports)
    widest = std::max(widest, port.bandwidth_max);
  return widest;
}

/// The off-chip memory as it serves some operands of a core. It serves the array dims of the same
/// names as in its own file: on an array dim that it does not know there are several of it, as in
/// the reference.
Memory offchip_level(const Core& core, const Core& offchip,
                     const std::vector<MemoryOperand>& operands) {
  Memory memory = offchip.memories.front();
  const auto kept = [&](MemoryOperand operand) {
    return std::find(operands.begin(), operands.end(), operand) != operands.end();
  };
  memory.operands = operands;
  for (MemoryPort& port : memory.ports)
    std::erase_if(port.allocation, [&](const PortUse& use) { return !kept(use.operand); });
  const std::vector<bool> own = memory.serves;
  memory.serves.assign(core.array.size(), false);
  for (std::size_t d = 0; d < core.array.size(); ++d) {
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

/// Reads towards the core and writes from it at the operand's topmost memory, while they pass.
StreamedRate rate_at_top(const Hierarchy& hierarchy, const Candidate& candidate,
                         std::size_t operand) {
  const auto& top = candidate.exact[operand].levels[hierarchy.levels[operand].size() - 1];
  const auto rate = [&](Direction direction) {
    const Movement& m = top[index_of(direction)];
    return m.count == 0 || m.window == 0 ? 0 : m.bits_per_cycle() * (m.period / m.window);
  };
  return {rate(Direction::tl), rate(Direction::fl)};
}

/// All orders of the temporal loops of one unrolling, and the best so far of all unrollings.
class OrderWalk {
public:
  /// `available`: bits per cycle of the off-chip memory.
  OrderWalk(const StreamedProblem& asked, const NestModel& model, const Hierarchy& hierarchy,
            std::int64_t available)
      : asked_(asked), model_(model), hierarchy_(hierarchy), available_(available) {}

  void walk(const ArrayUnrolling& unrolling);

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

  double merit(const Candidate& candidate) const;
  void visit(const SpatialModel& spatial, const LoopKinds& kinds,
             const std::vector<std::uint8_t>& order);

  const StreamedProblem& asked_;
  const NestModel& model_;
  const Hierarchy& hierarchy_;
  std::int64_t available_;
  Candidate candidate_;
  std::optional<Best> best_;
  SpatialModel best_spatial_;
  std::optional<AllocationFailure> failure_;
};

double OrderWalk::merit(const Candidate& candidate) const {
  const double latency = std::trunc(candidate.latency.total());
  if (asked_.streamed.empty())
    return latency;
  // As on the links: rounded up after stretching to the tile's own latency. Outputs count both
  // ways; with that the choice equals the reference's wherever it is known.
  const double busy = candidate.latency.ideal_temporal / candidate.latency.total();
  double used = 0;
  for (const std::size_t i : asked_.streamed) {
    const StreamedRate both = rate_at_top(hierarchy_, candidate, i);
    const bool output = asked_.problem.operands[i].mode != AccessMode::read;
    const std::int64_t bits = output ? std::max(both.read, both.write) : both.read;
    used += (output ? 2 : 1) * std::ceil(static_cast<double>(bits) * busy);
  }
  used *= static_cast<double>(asked_.parallel);
  return std::ceil(used / static_cast<double>(available_)) * latency;
}

void OrderWalk::visit(const SpatialModel& spatial, const LoopKinds& kinds,
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
  const double value = merit(candidate_);
  const bool better =
      !best_ || value < best_->merit ||
      (value == best_->merit && best_->of_this_unrolling && enumerated_before(order, best_->kinds));
  if (!better)
    return;
  if (!best_ || !best_->of_this_unrolling)
    best_spatial_ = spatial;
  best_ = Best{value, true, order, candidate_};
}

void OrderWalk::walk(const ArrayUnrolling& unrolling) {
  const SpatialModel spatial = make_spatial_model(model_, hierarchy_, unrolling);
  const LoopKinds kinds = make_kinds(model_, temporal_factors(spatial.temporal, kLpfLimit));
  if (best_)
    best_->of_this_unrolling = false;
  std::vector<std::uint8_t> order;
  for (std::size_t k = 0; k < kinds.loop.size(); ++k)
    order.insert(order.end(), static_cast<std::size_t>(kinds.count[k]),
                 static_cast<std::uint8_t>(k));
  do {
    visit(spatial, kinds, order);
  } while (std::next_permutation(order.begin(), order.end()));
}

/// Latency with slower multipliers: everything that is counted in cycles of the loops stretches.
double stretched_latency(const NestModel& model, const Hierarchy& hierarchy,
                         const SpatialModel& spatial, const Candidate& candidate,
                         std::int64_t factor) {
  if (factor == 1)
    return candidate.latency.total();
  DataMovement movement = spatial.same ? candidate.exact : candidate.truncated;
  for (std::size_t i = 0; i < model.operands.size(); ++i) {
    for (std::int64_t& cycles : movement[i].cycles)
      cycles *= factor;
    for (auto& level : movement[i].levels) {
      for (Movement& m : level) {
        m.period *= factor;
        m.window *= factor;
      }
    }
  }
  return mapping_latency(model, hierarchy, movement, candidate.double_buffered).total();
}

[[noreturn]] void nothing_fits(const CoreProblem& problem, const Core& core,
                               const Hierarchy& hierarchy,
                               const std::optional<AllocationFailure>& why) {
  internal_check(why.has_value(), "an order that does not fit says why");
  const Node& node = hierarchy.nodes[why->node];
  throw InfeasibleError(fmt::format(
      "core '{}': {} {} at least {:.0f} bits of memory '{}', which holds {:.0f}", core.name,
      operand_name(problem, why->operand), why->joint ? "and others together need" : "needs",
      why->bits, node.memory->name, node.size_bits));
}

StreamedCost describe(const StreamedProblem& asked, const NestModel& model,
                      const Hierarchy& hierarchy, const OrderWalk& search) {
  const Candidate& best = search.best();
  StreamedCost cost;
  cost.latency =
      stretched_latency(model, hierarchy, search.spatial(), best, asked.cycles_per_operation);
  cost.ideal_temporal =
      best.latency.ideal_temporal * static_cast<double>(asked.cycles_per_operation);
  cost.onchip_pj = best.energy.total();
  cost.rates.resize(asked.problem.operands.size());
  const double busy = cost.ideal_temporal / cost.latency;
  const auto scaled = [&](std::int64_t bits) {
    return static_cast<std::int64_t>(std::ceil(static_cast<double>(bits) * busy));
  };
  for (std::size_t i = 0; i < asked.problem.operands.size(); ++i) {
    if (std::find(asked.streamed.begin(), asked.streamed.end(), i) == asked.streamed.end())
      continue;
    const std::size_t top = hierarchy.levels[i].size() - 1;
    const double energy =
        level_energy(hierarchy, search.spatial().exact, best.exact, i, top, nullptr);
    cost.offchip_pj += energy;
    cost.onchip_pj -= energy;
    const StreamedRate rate = rate_at_top(hierarchy, best, i);
    cost.rates[i] = {scaled(rate.read), scaled(rate.write)};
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
    names.emplace_back(memory_operand_name(operand));
  std::vector<MemoryOperand> ordered;
  for (const std::size_t i : set_order(names, NameKind::memory_operand))
    ordered.push_back(operands[i]);
  return ordered;
}

StreamedCost streamed_cost(const StreamedProblem& asked, const Core& core, const Core& offchip) {
  CoreCostOptions options;
  options.model = ModelChoices::zigzag_3_8();
  options.spatial = asked.spatial;
  const Core extended = with_offchip(asked, core, offchip);
  const NestModel model = make_nest_model(asked.problem, options.model);
  const Hierarchy hierarchy = make_hierarchy(asked.problem, model, extended);
  OrderWalk search(asked, model, hierarchy, widest_port(offchip));
  const auto& named = core.dataflow.empty() ? options.spatial : core.dataflow;
  for (const ArrayUnrolling& unrolling : zigzag_unrollings(model, hierarchy, named, options))
    search.walk(unrolling);
  if (!search.found())
    nothing_fits(asked.problem, core, hierarchy, search.failure());
  return describe(asked, model, hierarchy, search);
}

} // namespace monet
