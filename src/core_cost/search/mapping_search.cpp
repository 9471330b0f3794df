// Searches spatial unrollings and temporal orders for the best mapping on an array; core_cost()
// calls it.
#include "core_cost/search/mapping_search.hpp"

#include "base/shared/checked.hpp"
#include "core_cost/model/candidate.hpp"
#include "core_cost/model/imc_work.hpp"
#include "core_cost/model/program_cost.hpp"
#include "core_cost/search/order_search.hpp"
#include "core_cost/search/outer_tiling.hpp"
#include "core_cost/search/spatial_choice.hpp"
#include "core_cost/search/temporal_order.hpp"
#include "core_cost/zigzag/spatial_generator.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace monet::core_cost_detail {

namespace {

constexpr double kStalled = 2; ///< ratio to the ideal from which other unrollings are tried
constexpr double kSameUse = 1e-9;
constexpr double kWorthTiling = 0.99; ///< of the cycles so far: what other tilings have to promise
constexpr std::size_t kTilings = 4;   ///< searched per problem

struct Context {
  const CoreProblem& problem;
  const Core& core;
  const CoreCostOptions& options;
  NestModel model;
  Hierarchy hierarchy;
  bool streams = false;
  std::vector<std::int64_t> touched; ///< per operand: bits, see touched_bits()
};

/// Bits of the different elements of the operand that the whole problem touches.
std::int64_t touched_bits(const NestModel& model, const CoreProblem& problem, std::size_t operand) {
  Footprint whole(model.operands[operand]);
  for (std::size_t d = 0; d < model.dims.size(); ++d)
    whole.multiply({static_cast<std::uint32_t>(d), static_cast<double>(model.dims[d].size)});
  const auto elements = static_cast<std::int64_t>(whole.elements());
  const ProblemOperand& o = problem.operands[operand];
  return std::min(checked_multiply(elements, o.bits), region_bits(o));
}

/// Traffic with the off-chip memory. Partial sums that were never written before are not read:
/// unlike the on-chip levels, where the first, empty read-back is charged as ZigZag does. All that
/// is touched of an input is read and all of an output's region is written: fractional unrolling
/// may count less, and elements that a scatter leaves out are zeros.
OffchipTraffic offchip_traffic(const Context& c, const Candidate& candidate, std::size_t operand) {
  OffchipTraffic traffic;
  const std::size_t top = c.hierarchy.levels[operand].size() - 1;
  if (!c.hierarchy.is_offchip(operand, top))
    return traffic;
  const OperandMovement& moved = candidate.exact[operand];
  const auto bits = [](const Movement& m) { return m.amount * m.count * m.bits; };
  if (!c.model.operands[operand].output) {
    const std::int64_t read = bits(moved.levels[top][index_of(Direction::tl)]);
    traffic.read = {std::max(read, c.touched[operand])};
    return traffic;
  }
  const Movement& write = moved.levels[top][index_of(Direction::fl)];
  const Movement& read = moved.levels[top][index_of(Direction::tl)];
  traffic.write = {std::max(bits(write), region_bits(c.problem.operands[operand]))};
  const std::int64_t first = moved.elements[top + 1] * read.bits;
  traffic.read = {std::max<std::int64_t>(0, bits(read) - first)};
  return traffic;
}

OffchipTraffic offchip_traffic(const Context& c, const Candidate& candidate) {
  OffchipTraffic all;
  for (std::size_t i = 0; i < c.model.operands.size(); ++i) {
    const OffchipTraffic traffic = offchip_traffic(c, candidate, i);
    all.read += traffic.read;
    all.write += traffic.write;
  }
  return all;
}

/// Streamed operands count as the longer of computing and transferring, and with their energy.
Score score_of(const Context& c, const Candidate& candidate) {
  Score score{candidate.latency.total(), candidate.energy.total()};
  if (!c.streams)
    return score;
  const OffchipTraffic all = offchip_traffic(c, candidate);
  score.latency = std::max(score.latency, c.options.offchip.cycles(all));
  score.energy += c.options.offchip.energy_pj(all);
  return score;
}

const std::vector<std::vector<Unrolling>>& named_dataflow(const Context& c) {
  return c.core.dataflow.empty() ? c.options.spatial : c.core.dataflow;
}

bool leaves_array_dims_open(const Context& c) {
  const auto& named = named_dataflow(c);
  const bool some_empty =
      std::ranges::any_of(named, [](const auto& loops) { return loops.empty(); });
  return some_empty || named.size() < c.hierarchy.array_dims;
}

/// The core's own dataflow, or that of the options; nothing when neither names a loop.
std::optional<ArrayUnrolling> named_unrolling(const Context& c, const UnrollCaps& caps) {
  const auto& named = named_dataflow(c);
  if (std::ranges::all_of(named, [](const auto& d) { return d.empty(); }))
    return {};
  return from_dataflow(c.model, c.hierarchy, caps, named);
}

/// Cycles when every lane works in every cycle.
double full_array_cycles(const Context& c) {
  const auto lanes = static_cast<double>(c.core.lanes());
  return std::max(static_cast<double>(c.model.iterations * c.hierarchy.wave_cycles) /
                      std::max(1.0, lanes),
                  min_program_cycles(c.model, c.hierarchy, lanes));
}

/// Wide enough for every order of seven loops; more where the user asks for more loops.
OrderSearchLimits limits(const Context& c) {
  constexpr int kUsualLoops = 7;
  constexpr std::size_t kUsual = 1024;
  constexpr std::size_t kMax = std::size_t{1} << 18;
  const int limit = c.options.lpf_limit;
  return {limit > 0 && limit <= kUsualLoops ? kUsual : kMax};
}

/// In an array that computes in memory, rows that shift from column to column may be too many.
bool has_rows(const Context& c, const SpatialModel& spatial) {
  return c.hierarchy.imc == nullptr || !c.options.model.rows_shift_at_their_loop ||
         spatial.imc.rows <= c.hierarchy.imc->rows;
}

/// The mappings found so far, and what it took.
struct MappingSearch {
  BestMapping best;
  std::vector<SpatialModel> unrollings; ///< by BestMapping::Entry::unrolling, counted from 1
  std::vector<ArrayUnrolling> left_out; ///< known, but not searched
  SearchLog log;

  /// Why the last unrolling has no order that the user wants.
  std::string refused = "no order of its loops is the required temporal order";

  void run(const Context& c, const ArrayUnrolling& unrolling) {
    const SpatialModel& spatial =
        unrollings.emplace_back(make_spatial_model(c.model, c.hierarchy, unrolling));
    if (!has_rows(c, spatial)) {
      refused = fmt::format("columns with different inputs need {} rows of the array, which has {}",
                            spatial.imc.rows, c.hierarchy.imc->rows);
      unrollings.pop_back();
      return;
    }
    try {
      run(c, spatial,
          temporal_space(c.model, spatial.temporal, c.options.lpf_limit, c.options.temporal_order,
                         !c.options.model.free_unrolling));
    } catch (const InfeasibleError& error) {
      refused = error.what();
      unrollings.pop_back();
    }
  }

  /// `spatial` is the last of `unrollings`.
  void run(const Context& c, const SpatialModel& spatial, const TemporalSpace& space) {
    search_orders(
        {c.model, c.hierarchy, spatial, space},
        [&](const Candidate& candidate) { return score_of(c, candidate); }, limits(c), best, log);
  }
};

/// A mapping that was found, with all its figures again.
Candidate evaluated(const Context& c, const SpatialModel& spatial,
                    const BestMapping::Entry& entry) {
  Candidate candidate;
  candidate.size = entry.order.size();
  std::ranges::copy(entry.order, candidate.loops.begin());
  internal_check(evaluate(c.model, c.hierarchy, spatial, candidate),
                 "the best mapping can be evaluated again");
  return candidate;
}

/// The cycles that what streams takes at best, and those of a mapping.
struct StreamCycles {
  double least = 0;
  double taken = 0;
};

StreamCycles stream_cycles(const Context& c, const SpatialModel& spatial,
                           const BestMapping::Entry& entry) {
  OffchipTraffic least;
  for (std::size_t i = 0; i < c.model.operands.size(); ++i) {
    if (!c.hierarchy.is_offchip(i, c.hierarchy.levels[i].size() - 1))
      continue;
    if (c.model.operands[i].output)
      least.write += Bits{region_bits(c.problem.operands[i])};
    else
      least.read += Bits{c.touched[i]};
  }
  const OffchipTraffic taken = offchip_traffic(c, evaluated(c, spatial, entry));
  return {c.options.offchip.cycles(least), c.options.offchip.cycles(taken)};
}

double temporal_cycles(const Context& c, const SpatialModel& spatial) {
  auto cycles = static_cast<double>(c.hierarchy.wave_cycles);
  for (const std::int64_t size : spatial.temporal)
    cycles *= static_cast<double>(size);
  return cycles;
}

/// Where the off-chip memory holds the best mapping up, and more than once through the operands
/// would: other tilings, with the loops outside fixed.
void search_tilings(const Context& c, MappingSearch& search) {
  if (!c.streams || !search.best.entry() || c.options.lpf_limit <= 0 ||
      !c.options.temporal_order.empty() || c.options.even_allocation)
    return;
  const BestMapping::Entry best = *search.best.entry();
  const StreamCycles stream = stream_cycles(c, search.unrollings[best.unrolling - 1], best);
  const double worth = kWorthTiling * stream.taken;
  if (stream.taken < best.score.latency || stream.least >= worth)
    return;
  std::vector<SpatialModel> known = search.unrollings;
  for (const ArrayUnrolling& unrolling : search.left_out)
    known.push_back(make_spatial_model(c.model, c.hierarchy, unrolling));
  std::vector<std::pair<const SpatialModel*, OuterTiling>> found;
  for (const SpatialModel& each : known) {
    if (temporal_cycles(c, each) >= worth)
      continue;
    for (OuterTiling& tiling : outer_tilings(c.model, c.hierarchy, each, c.options.offchip, worth))
      found.emplace_back(&each, std::move(tiling));
  }
  std::ranges::stable_sort(found, {}, [](const auto& f) { return f.second.cycles; });
  found.resize(std::min(kTilings, found.size()));
  for (const auto& [unrolled, tiling] : found) {
    search.unrollings.push_back(*unrolled);
    search.run(c, search.unrollings.back(), space_inside(*unrolled, tiling, c.options.lpf_limit));
  }
}

/// Unrollings of our own choice where they use more of the array than the dataflow, which then
/// seldom takes less; the dataflow; and where all stall, those that use as much of the array.
void search_free(const Context& c, const UnrollCaps& caps,
                 const std::optional<ArrayUnrolling>& named, MappingSearch& search) {
  const double used = named ? utilisation(c.model, c.hierarchy, *named) : 0;
  const auto wanted = static_cast<std::size_t>(std::max(0, c.options.free_unrollings));
  const bool all = c.options.free_unrollings > CoreCostOptions::kUsualUnrollings;
  for (const ArrayUnrolling& filled : fill_array(c.model, c.hierarchy, caps, wanted)) {
    const double uses = utilisation(c.model, c.hierarchy, filled);
    if (uses > used * (1 + kSameUse))
      search.run(c, filled);
    else if (all || uses > used * (1 - kSameUse))
      search.left_out.push_back(filled);
  }
  if (named)
    search.run(c, *named);
  const auto& found = search.best.entry();
  const bool stalled = !found || found->score.latency > kStalled * full_array_cycles(c);
  if (!all && !stalled)
    return;
  for (const ArrayUnrolling& filled : std::exchange(search.left_out, {}))
    search.run(c, filled);
}

[[noreturn]] void nothing_fits(const Context& c, const AllocationFailure& failure) {
  const Node& node = c.hierarchy.nodes[failure.node];
  std::string what = operand_name(c.problem, failure.operand);
  if (failure.joint) {
    for (const NodeUse& use : node.uses) {
      if (use.operand != failure.operand)
        what += " and " + operand_name(c.problem, use.operand);
    }
  }
  throw InfeasibleError(
      fmt::format("core '{}': {} need{} {:.0f} bits of memory '{}', which holds {:.0f}",
                  c.core.name, what, failure.joint ? " together at least" : "s", failure.bits,
                  node.memory != nullptr ? node.memory->name : "off-chip", node.size_bits));
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
  Allocation allocated; // before loops moved inside that do not touch the operand
  internal_check(allocate(c.model, c.hierarchy, spatial.exact, candidate.order(), allocated),
                 "the best mapping can be allocated again");
  for (std::size_t i = 0; i < c.model.operands.size(); ++i) {
    auto& levels = cost.temporal.by_operand.emplace_back();
    std::size_t begin = 0;
    for (std::size_t l = 0; l < c.hierarchy.levels[i].size(); ++l) {
      const std::size_t end = allocated.cut[i][l];
      auto& loops = levels.emplace_back();
      for (std::size_t k = begin; k < end; ++k) {
        loops.push_back({candidate.loops[k].dim, candidate.loops[k].size});
      }
      begin = std::max(begin, end);
    }
  }
}

/// Bits in the top on-chip memory: everything the mapping holds there, and for streamed operands a
/// second slice to fetch ahead, as far as the memory has room. Never more than the memory in sum.
std::vector<Bits> resident_bits(const Context& c, const SpatialModel& spatial,
                                const Candidate& candidate) {
  std::vector<double> room;
  for (const Node& node : c.hierarchy.nodes)
    room.push_back(node.size_bits);
  std::vector<std::size_t> top(c.model.operands.size());
  std::vector<double> held(c.model.operands.size());
  for (std::size_t i = 0; i < held.size(); ++i) {
    top[i] = c.hierarchy.levels[i].size() - 1;
    if (c.hierarchy.is_offchip(i, top[i]))
      --top[i];
    held[i] = static_cast<double>(candidate.exact[i].held_bits[top[i] + 1]);
    room[c.hierarchy.levels[i][top[i]].node] -= held[i];
  }
  std::vector<Bits> bits;
  for (std::size_t i = 0; i < held.size(); ++i) {
    double& left = room[c.hierarchy.levels[i][top[i]].node];
    const bool streamed = top[i] + 1 < c.hierarchy.levels[i].size();
    const double ahead = streamed ? std::clamp(left, 0.0, held[i]) : 0;
    left -= ahead;
    const double units = spatial.exact.operands[i].units[top[i] + 1];
    bits.push_back({static_cast<std::int64_t>((held[i] + ahead) * units)});
  }
  return bits;
}

/// A complete search is its own bound.
void set_bounds(const Context& c, const MappingSearch& search, const BestMapping::Entry& best,
                CoreCost& cost) {
  cost.latency_bound =
      std::max(search.log.bound.latency,
               min_program_cycles(c.model, c.hierarchy, static_cast<double>(c.core.lanes())));
  cost.energy_bound = search.log.bound.energy;
  if (!search.log.effort.exact || c.streams)
    return;
  if (c.options.objective == Objective::latency)
    cost.latency_bound = best.score.latency;
  if (c.options.objective == Objective::energy)
    cost.energy_bound = best.score.energy;
}

CoreCost describe(const Context& c, const MappingSearch& search) {
  const BestMapping::Entry& best = *search.best.entry();
  const SpatialModel& spatial = search.unrollings[best.unrolling - 1];
  const Candidate candidate = evaluated(c, spatial, best);
  CoreCost cost;
  cost.parts = candidate.latency;
  cost.latency = candidate.latency.whole();
  const auto lanes = static_cast<double>(c.core.lanes());
  const std::int64_t wave = c.hierarchy.wave_cycles;
  cost.spatial_utilisation =
      static_cast<double>(c.model.iterations * wave) / (cost.parts.ideal_temporal * lanes);
  cost.ideal = {
      wave * static_cast<std::int64_t>(std::ceil(static_cast<double>(c.model.iterations) / lanes))};
  cost.compute_energy = {candidate.energy.compute};
  cost.memory_energy = {candidate.energy.memory};
  if (c.hierarchy.imc != nullptr)
    cost.imc = imc_cost(c.model, c.hierarchy, spatial, candidate.exact);
  for (std::size_t i = 0; i < c.model.operands.size(); ++i) {
    for (std::size_t l = 0; l < c.hierarchy.levels[i].size(); ++l) {
      if (c.hierarchy.is_offchip(i, l))
        continue;
      LevelEnergy level;
      level.memory = c.hierarchy.nodes[c.hierarchy.levels[i][l].node].memory->name;
      level.operand = i;
      level.energy = {
          level_energy(c.hierarchy, spatial.exact, candidate.exact, i, l, &level.accesses)};
      cost.levels.push_back(std::move(level));
    }
    cost.offchip.push_back(offchip_traffic(c, candidate, i));
  }
  cost.resident = resident_bits(c, spatial, candidate);
  describe_mapping(c, spatial, candidate, cost);
  cost.effort = search.log.effort;
  set_bounds(c, search, best, cost);
  return cost;
}

MappingSearch search_all(const Context& c) {
  MappingSearch search{BestMapping(c.options.objective)};
  if (!c.options.model.free_unrolling) {
    for (const ArrayUnrolling& unrolling :
         zigzag_unrollings(c.model, c.hierarchy, named_dataflow(c), c.options))
      search.run(c, unrolling);
    return search;
  }
  const UnrollCaps caps = unroll_caps(c.model, c.hierarchy);
  const std::optional<ArrayUnrolling> named = named_unrolling(c, caps);
  const bool fixed = c.options.fixed_dataflow;
  if (named && fixed && !leaves_array_dims_open(c)) {
    search.run(c, *named);
  } else {
    const auto& kept = fixed ? named_dataflow(c) : std::vector<std::vector<Unrolling>>{};
    search_free(c, restricted(caps, c.model, kept, c.options.spatial_hints), named, search);
  }
  search_tilings(c, search);
  return search;
}

/// InfeasibleError with the reason when no mapping was found.
void require_mapping(const Context& c, const MappingSearch& search) {
  if (search.best.entry())
    return;
  if (search.log.failure)
    nothing_fits(c, *search.log.failure);
  throw InfeasibleError(fmt::format("core '{}': {}", c.core.name, search.refused));
}

Context make_context(const CoreProblem& problem, const Core& core, const CoreCostOptions& options) {
  NestModel model = make_nest_model(problem, options.model);
  model.even_allocation = options.even_allocation;
  Hierarchy hierarchy = make_hierarchy(problem, model, core);
  std::vector<std::int64_t> touched;
  for (std::size_t i = 0; i < model.operands.size(); ++i)
    touched.push_back(touched_bits(model, problem, i));
  return {
      problem,           core, options, std::move(model), std::move(hierarchy), streams(problem),
      std::move(touched)};
}

} // namespace

CoreCost search_mapping(const CoreProblem& problem, const Core& core,
                        const CoreCostOptions& options) {
  const Context c = make_context(problem, core, options);
  const MappingSearch search = search_all(c);
  require_mapping(c, search);
  return describe(c, search);
}

} // namespace monet::core_cost_detail
