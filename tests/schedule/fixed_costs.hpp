// Core costs for tests: known without a core model.
#pragma once

#include "schedule/cost/tile_classes.hpp"

#include "monet/schedule/schedule.hpp"

#include <deque>
#include <utility>

namespace monet::testing {

inline std::int64_t bits_of_operand(const ProblemOperand& operand) {
  std::int64_t bits = operand.bits;
  for (const std::int64_t extent : operand.extents)
    bits *= extent;
  return bits;
}

/// One iteration a cycle on one lane; every streamed operand passes once; no working space.
inline CoreCost simple_cost(const CoreProblem& problem, const Core& core) {
  std::int64_t iterations = 1;
  for (const LoopDim& dim : problem.dims)
    iterations *= dim.size;
  CoreCost cost;
  cost.latency = {ceil_div(iterations, core.lanes())};
  cost.compute_energy = {static_cast<double>(iterations)};
  cost.memory_energy = {0.5 * static_cast<double>(iterations)};
  for (const ProblemOperand& operand : problem.operands) {
    const Bits bits{operand.offchip ? bits_of_operand(operand) : 0};
    const bool read = operand.mode == AccessMode::read;
    cost.offchip.push_back({read ? bits : Bits{0}, read ? Bits{0} : bits});
    cost.resident.push_back({operand.offchip ? 0 : bits_of_operand(operand)});
  }
  return cost;
}

/// schedule() with every distinct problem, as core_problem() has it, answered by `cost_of`.
template <class CostOf>
Timeline schedule_with(const TileGraph& tiles, const TrainingGraph& step, const Chip& chip,
                       CostOf&& cost_of, const ScheduleOptions& options) {
  TileClasses classes = classify_tiles(tiles, step.graph, all_operators(step.graph));
  std::deque<std::pair<CoreProblem, CoreCost>> solved;
  TileCosts costs;
  for (const TileId example : classes.example) {
    const Tile& tile = tiles.tiles[example.index()];
    auto& [problem, cost] = solved.emplace_back();
    problem = core_problem(tile, tiles.ranges(example), step, chip);
    cost = cost_of(problem, chip.cores[tile.core.index()]);
    costs.rows.push_back({&problem, &cost});
  }
  costs.row_of = std::move(classes.class_of);
  return schedule(tiles, step, chip, costs, options);
}

template <class CostOf>
Timeline schedule_with(const TileGraph& tiles, const TrainingGraph& step, const Chip& chip,
                       CostOf&& cost_of, Priority priority = Priority::latency,
                       const TransferRules& rules = {}) {
  ScheduleOptions options;
  options.priority = priority;
  options.rules = rules;
  return schedule_with(tiles, step, chip, std::forward<CostOf>(cost_of), options);
}

} // namespace monet::testing
