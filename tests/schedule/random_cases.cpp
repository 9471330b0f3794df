#include "schedule/random_cases.hpp"

#include "schedule/fixed_costs.hpp"
#include "tiling/shared/grid.hpp"
#include "tiling/shared/turns.hpp"

#include <set>

namespace monet::testing {

namespace {

TilingFactor random_factor(Random& random, const std::vector<LoopDim>& dims) {
  TilingFactor factor;
  factor.dim = dims.empty() || random.chance(5) ? "OX" : random.pick(dims).name;
  factor.factor = random.between(1, 6);
  if (random.chance(15))
    factor.amount = TilingFactor::Amount::all;
  else if (random.chance(15))
    factor.amount = TilingFactor::Amount::chosen;
  return factor;
}

std::vector<std::int64_t> random_cores(Random& random, const Chip& chip) {
  std::vector<std::int64_t> cores;
  const auto most = static_cast<std::int64_t>(chip.compute_cores()) - 1;
  for (std::int64_t n = random.between(1, most + 1); n > 0; --n) {
    const std::int64_t core = random.between(0, most);
    if (std::find(cores.begin(), cores.end(), core) == cores.end())
      cores.push_back(core);
  }
  return cores;
}

bool runs_on(const Operator& op, const Chip& chip, const std::vector<std::int64_t>& cores) {
  return std::any_of(cores.begin(), cores.end(), [&](std::int64_t core) {
    return can_run(chip.cores[static_cast<std::size_t>(core)], op.nest.compute, op.op_type);
  });
}

} // namespace

std::vector<std::vector<OpId>> random_stacks(Random& random, const Graph& graph) {
  std::vector<std::vector<OpId>> stacks(1);
  const bool anyhow = random.chance(20);
  const std::int64_t length = random.between(1, 12);
  if (anyhow)
    stacks.resize(static_cast<std::size_t>(length));
  for (std::size_t i = 0; i < graph.operators().size(); ++i) {
    if (random.chance(15))
      continue;
    if (!anyhow && random.between(1, length) == 1)
      stacks.emplace_back();
    stacks[anyhow ? random.index(stacks.size()) : stacks.size() - 1].emplace_back(i);
  }
  std::erase_if(stacks, [](const auto& stack) { return stack.empty(); });
  return stacks;
}

MappingFile random_mapping(Random& random, const Graph& graph, const Chip& chip) {
  MappingFile mapping;
  std::set<std::string> types;
  const auto add = [&](const std::string& name, const Operator* op) {
    MappingEntry entry;
    entry.name = name;
    entry.where = {"mapping.yaml", static_cast<int>(mapping.entries.size()) + 1, 1, ""};
    const std::vector<LoopDim> dims = op ? op->nest.dims : std::vector<LoopDim>{};
    for (std::int64_t n = random.between(0, 2); n > 0; --n)
      entry.inter_core_tiling.push_back(random_factor(random, dims));
    for (std::int64_t n = random.between(0, 2); n > 0; --n)
      entry.intra_core_tiling.push_back(random_factor(random, dims));
    const std::vector<std::int64_t> cores = random_cores(random, chip);
    if (random.chance(60) && (!op || runs_on(*op, chip, cores)))
      entry.core_allocation = cores;
    mapping.entries.push_back(std::move(entry));
  };
  if (random.chance(50))
    add("default", nullptr);
  for (const Operator& op : graph.operators()) {
    const auto kind = random.between(0, 3);
    if (kind == 0)
      add(op.name, &op);
    // Operators of one type may be of different kinds: no cores for all of them.
    if (kind == 1 && types.insert(op.op_type.str()).second) {
      add(op.op_type.str(), &op);
      mapping.entries.back().core_allocation.reset();
    }
  }
  return mapping;
}

namespace {

/// Image by image, or a few at a time: a random plan for a turn, where the step can take turns.
std::optional<FusionPlan> plan_in_turns(Random& random, const TrainingGraph& step) {
  const auto turns = find_turns(step);
  if (!turns)
    return std::nullopt;
  std::int64_t count = random.between(2, turns->most);
  while (turns->most % count != 0)
    --count;
  FusionPlan plan{random_stacks(random, step.graph), {}};
  plan.slices.resize(plan.stacks.size());
  return count < 2 ? std::nullopt : std::optional(in_turns(plan, step, *turns, count));
}

} // namespace

RandomCase random_case(std::uint64_t seed, const CaseShape& shape) {
  Random random(seed);
  RandomCase c;
  c.step = random_step(random, shape.network);
  c.chip = random_chip(random, shape.system);
  c.mapping = random_mapping(random, c.step.graph, c.chip);
  if (shape.fused) {
    c.options.mode = TilingMode::fused;
    c.options.halo = random.chance(70) ? Halo::cached : Halo::recomputed;
    if (random.chance(70))
      c.options.stacks = random_stacks(random, c.step.graph);
    Random other(~seed);
    const auto plan = other.chance(40) ? plan_in_turns(other, c.step) : std::nullopt;
    if (plan)
      c.options = c.options.with(*plan);
  }
  if (random.chance(40))
    c.priority = random.one_of({Priority::memory, Priority::order});
  c.tiles = c.tiled();
  return c;
}

TileGraph random_grids(Random& random, const TrainingGraph& step, const Chip& chip) {
  TileGraph tiles;
  for (std::size_t i = 0; i < step.graph.operators().size(); ++i) {
    const LoopNest& nest = step.graph.operators()[i].nest;
    OperatorTiling tiling = uncut(nest);
    const std::int64_t cuts = nest.dims.empty() ? 0 : random.between(0, 3);
    for (std::int64_t n = 0; n < cuts && tile_count(tiling) < 40; ++n) {
      const std::size_t dim = random.index(nest.dims.size());
      const bool free =
          may_split(nest, dim) || (is_reduction(nest, dim) && !nest.dims[dim].coupled);
      std::int64_t least = nest.dims[dim].size;
      for (const Interval& part : tiling.parts[dim])
        least = std::min(least, part.size());
      if (free && least > 1)
        cut(tiling, {dim, random.between(2, std::min<std::int64_t>(4, least))});
    }
    std::vector<CoreId> cores;
    for (std::int64_t n = random.between(1, 5); n > 0; --n)
      cores.emplace_back(random.index(chip.compute_cores()));
    append_tiles(tiles, OpId(i), std::move(tiling), cores);
  }
  make_edges(tiles, step.graph);
  rank_in_order(tiles);
  return tiles;
}

CoreCost hashed_cost(const CoreProblem& problem, const Core& core) {
  CoreCost cost = simple_cost(problem, core);
  std::uint64_t hash = 0xcbf29ce484222325U; // FNV-1a
  for (const char c : signature(problem))
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  Random random(hash ^ static_cast<std::uint64_t>(core.lanes()));
  cost.latency.value += random.between(0, 2 * cost.latency.value);
  for (std::size_t i = 0; i < problem.operands.size(); ++i) {
    if (problem.operands[i].offchip)
      cost.resident[i] = {random.between(0, bits_of_operand(problem.operands[i]))};
  }
  return cost;
}

} // namespace monet::testing
