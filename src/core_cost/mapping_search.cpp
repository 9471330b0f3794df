#include "mapping_search.hpp"

#include "candidate.hpp"
#include "spatial_choice.hpp"
#include "temporal_order.hpp"

#include "monet/base/errors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace monet::core_cost_detail {

namespace {

constexpr std::size_t kFreeCandidates = 4;   ///< unrollings tried beside the dataflow's
constexpr std::int64_t kRankingOrders = 120; ///< orders per unrolling to find the best unrolling

struct Context {
  const CoreProblem& problem;
  const Core& core;
  const CoreCostOptions& options;
  NestModel model;
  Hierarchy hierarchy;
};

struct Score {
  double latency = 0;
  double energy = 0;
};

/// Strictly better; the first enumerated keeps its place on ties.
bool better(const Score& a, const Score& b, Objective objective) {
  switch (objective) {
  case Objective::latency:
    return a.latency < b.latency || (a.latency == b.latency && a.energy < b.energy);
  case Objective::energy:
    return a.energy < b.energy || (a.energy == b.energy && a.latency < b.latency);
  case Objective::edp:
    return a.latency * a.energy < b.latency * b.energy;
  }
  return false;
}

struct Best {
  Score score;
  SpatialModel spatial;
  std::vector<Loop> order;
};

/// Tries the orders of one unrolling. Returns whether it found something better than `best`.
bool search_orders(const Context& c, const SpatialModel& spatial, std::int64_t max_orders,
                   std::optional<Best>& best, AllocationFailure& failure, std::int64_t& evaluated) {
  OrderWalk walk(c.model, temporal_factors(c.model, spatial.temporal, c.options.lpf_limit),
                 max_orders);
  Candidate candidate;
  candidate.size = walk.size();
  bool improved = false;
  while (walk.next(candidate.loops.data())) {
    ++evaluated;
    if (!evaluate(c.model, c.hierarchy, spatial, candidate, &failure))
      continue;
    const Score score{candidate.latency.total(), candidate.energy.total()};
    if (best && !better(score, best->score, c.options.objective))
      continue;
    if (!improved) {
      improved = true;
      best.emplace();
      best->spatial = spatial;
    }
    best->score = score;
    best->order.assign(candidate.order().begin(), candidate.order().end());
  }
  return improved;
}

/// The dataflow first, then what fills more of the array than it does.
std::vector<ArrayUnrolling> candidates(const Context& c) {
  const UnrollCaps caps = unroll_caps(c.model, c.hierarchy);
  const auto& named = c.core.dataflow.empty() ? c.options.spatial : c.core.dataflow;
  std::vector<ArrayUnrolling> result;
  double named_utilisation = 0;
  const bool given =
      std::any_of(named.begin(), named.end(), [](const auto& d) { return !d.empty(); });
  if (given) {
    result.push_back(from_dataflow(c.model, c.hierarchy, caps, named));
    named_utilisation = utilisation(c.model, c.hierarchy, result[0]);
    if (c.options.fixed_dataflow)
      return result;
  }
  for (ArrayUnrolling& filled : fill_array(c.model, c.hierarchy, caps, kFreeCandidates)) {
    if (given && utilisation(c.model, c.hierarchy, filled) <= named_utilisation * (1 + 1e-9))
      continue;
    result.push_back(std::move(filled));
  }
  return result;
}

[[noreturn]] void nothing_fits(const Context& c, const AllocationFailure& failure) {
  const Node& node = c.hierarchy.nodes[failure.node];
  throw InfeasibleError(fmt::format("core '{}': {} does not fit: memory '{}' holds {} bits, at "
                                    "least {:.0f} bits of this operand must be in it{}",
                                    c.core.name, operand_name(c.problem, failure.operand),
                                    node.memory != nullptr ? node.memory->name : "off-chip",
                                    node.size_bits, failure.bits,
                                    node.uses.size() > 1 ? " beside the others'" : ""));
}

void describe_mapping(const Context& c, const SpatialModel& spatial, const Candidate& candidate,
                      CoreCost& cost) {
  for (const auto& on_dim : spatial.exact.loops) {
    cost.spatial.unrolled.emplace_back();
    for (const Loop& loop : on_dim)
      cost.spatial.unrolled.back().push_back({loop.dim, loop.size});
  }
  for (const Loop& loop : candidate.order())
    cost.temporal.order.push_back({loop.dim, loop.size});
  for (std::size_t i = 0; i < c.model.operands.size(); ++i) {
    auto& levels = cost.temporal.by_operand.emplace_back();
    std::size_t begin = 0;
    for (std::size_t l = 0; l < c.hierarchy.levels[i].size(); ++l) {
      const std::size_t end = candidate.allocation.cut[i][l];
      auto& loops = levels.emplace_back();
      for (std::size_t k = begin; k < end; ++k) {
        loops.push_back({candidate.loops[k].dim, candidate.loops[k].size});
      }
      begin = std::max(begin, end);
    }
  }
}

/// Traffic with the off-chip memory. Partial sums that were never written before are not read:
/// unlike the on-chip levels, where the first, empty read-back is charged as ZigZag does.
OffchipTraffic offchip_traffic(const Context& c, const Candidate& candidate, std::size_t operand) {
  OffchipTraffic traffic;
  const std::size_t top = c.hierarchy.levels[operand].size() - 1;
  if (!c.hierarchy.is_offchip(operand, top))
    return traffic;
  const OperandMovement& moved = candidate.exact[operand];
  const auto bits = [](const Movement& m) { return m.amount * m.count * m.bits; };
  if (!c.model.operands[operand].output) {
    traffic.read = {bits(moved.levels[top][index_of(Direction::tl)])};
    return traffic;
  }
  const Movement& write = moved.levels[top][index_of(Direction::fl)];
  const Movement& read = moved.levels[top][index_of(Direction::tl)];
  traffic.write = {bits(write)};
  const std::int64_t first = moved.elements[top + 1] * read.bits;
  traffic.read = {std::max<std::int64_t>(0, bits(read) - first)};
  return traffic;
}

/// Bits in the top on-chip memory: everything, or two slices where the memory has room to fetch one
/// ahead.
Bits resident_bits(const Context& c, const SpatialModel& spatial, const Candidate& candidate,
                   std::size_t operand) {
  const OperandMovement& moved = candidate.exact[operand];
  std::size_t top = c.hierarchy.levels[operand].size() - 1;
  const bool streamed = c.hierarchy.is_offchip(operand, top);
  if (streamed)
    --top;
  const double units = spatial.exact.operands[operand].units[top + 1];
  const auto held =
      static_cast<std::int64_t>(static_cast<double>(moved.held_bits[top + 1]) * units);
  return {streamed && candidate.double_buffered[operand][top + 1] ? 2 * held : held};
}

CoreCost describe(const Context& c, const Best& best, std::int64_t evaluated) {
  Candidate candidate;
  candidate.size = best.order.size();
  std::copy(best.order.begin(), best.order.end(), candidate.loops.begin());
  internal_check(evaluate(c.model, c.hierarchy, best.spatial, candidate),
                 "the best mapping can be evaluated again");
  CoreCost cost;
  cost.parts = candidate.latency;
  cost.latency = {static_cast<std::int64_t>(candidate.latency.total())};
  const double units = best.spatial.exact.total_units;
  cost.ideal = {
      static_cast<std::int64_t>(std::ceil(static_cast<double>(c.model.iterations) / units))};
  double lanes = 1;
  for (std::size_t d = 0; d < c.hierarchy.array_dims; ++d) {
    lanes *= static_cast<double>(c.hierarchy.array_size[d]);
  }
  cost.spatial_utilisation =
      static_cast<double>(c.model.iterations) / (cost.parts.ideal_temporal * lanes);
  cost.ideal = {std::min(cost.ideal.value, static_cast<std::int64_t>(cost.parts.ideal_temporal))};
  cost.compute_energy = {candidate.energy.compute};
  cost.memory_energy = {candidate.energy.memory};
  for (std::size_t i = 0; i < c.model.operands.size(); ++i) {
    for (std::size_t l = 0; l < c.hierarchy.levels[i].size(); ++l) {
      if (c.hierarchy.is_offchip(i, l))
        continue;
      LevelEnergy level;
      level.memory = c.hierarchy.nodes[c.hierarchy.levels[i][l].node].memory->name;
      level.operand = i;
      level.energy = {
          level_energy(c.hierarchy, best.spatial.exact, candidate.exact, i, l, &level.accesses)};
      cost.levels.push_back(std::move(level));
    }
    cost.offchip.push_back(offchip_traffic(c, candidate, i));
    cost.resident.push_back(resident_bits(c, best.spatial, candidate, i));
  }
  describe_mapping(c, best.spatial, candidate, cost);
  cost.evaluated = evaluated;
  return cost;
}

} // namespace

CoreCost search_mapping(const CoreProblem& problem, const Core& core,
                        const CoreCostOptions& options) {
  NestModel model = make_nest_model(problem);
  Hierarchy hierarchy = make_hierarchy(problem, model, core);
  const Context c{problem, core, options, std::move(model), std::move(hierarchy)};
  const std::vector<ArrayUnrolling> unrollings = candidates(c);
  std::optional<Best> best;
  AllocationFailure failure;
  std::int64_t evaluated = 0;
  const std::int64_t orders = unrollings.size() > 1 ? kRankingOrders : kMaxOrders;
  for (const ArrayUnrolling& unrolling : unrollings) {
    search_orders(c, make_spatial_model(c.model, c.hierarchy, unrolling), orders, best, failure,
                  evaluated);
  }
  if (!best && orders != kMaxOrders) {
    for (const ArrayUnrolling& unrolling : unrollings) {
      search_orders(c, make_spatial_model(c.model, c.hierarchy, unrolling), kMaxOrders, best,
                    failure, evaluated);
    }
  } else if (best && orders != kMaxOrders) {
    const SpatialModel spatial = best->spatial;
    search_orders(c, spatial, kMaxOrders, best, failure, evaluated);
  }
  if (!best)
    nothing_fits(c, failure);
  return describe(c, *best, evaluated);
}

} // namespace monet::core_cost_detail
