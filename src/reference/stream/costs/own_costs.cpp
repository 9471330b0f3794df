// Computes core costs of tiles with our own core model, for the reference scheduler
// (schedule/coala.cpp) if no cost files are given, or to complete them (cost_match.cpp).
#include "core_cost/shared/streamed_cost.hpp"

#include "monet/reference/stream_costs.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace monet::stream {

namespace {

/// Cycles per operation of a layer's multipliers; more than 1 for some activation functions.
std::int64_t cycles_per_operation(const Layer& layer) {
  constexpr std::array<std::string_view, 3> kSlow{"silu", "sigmoid", "exp"};
  constexpr std::int64_t kCycles = 4;
  return std::ranges::find(kSlow, layer.type) == kSlow.end() ? 1 : kCycles;
}

/// An operand for the core model. Axes of several loops are limited to the tensor: padding is not
/// fetched inside a core, although it counts in the tensors that the scheduler moves.
ProblemOperand operand_of(const Layer& layer, Operand which) {
  const OperandUse& use = layer.use(which);
  ProblemOperand operand;
  operand.mode = which == Operand::O ? AccessMode::write : AccessMode::read;
  operand.memory = memory_of(which);
  operand.bits = use.bits;
  operand.partial_bits = use.partial_bits;
  for (const std::uint32_t axis : use.axes) {
    if (axis < layer.dims.size()) {
      operand.axes.push_back({{{axis, 1}}, 0, false});
      operand.extents.push_back(layer.dims[axis].tile);
      continue;
    }
    const PartialDim& partial = layer.partial[axis - layer.dims.size()];
    AxisExpr expression;
    for (std::size_t i = 0; i < partial.dims.size(); ++i)
      expression.terms.push_back({partial.dims[i], partial.coefficients[i]});
    operand.axes.push_back(std::move(expression));
    operand.extents.push_back(partial.size);
  }
  return operand;
}

/// The spatial unrolling of a layer on a core. An array dimension that the mapping file lists
/// without loops stays unused: it gets one iteration of no loop, since an empty list means free.
std::vector<std::vector<Unrolling>> unrolling_of(const Layer& layer, const Core& core) {
  std::vector<std::vector<Unrolling>> unrolled;
  for (const ArrayDim& dim : core.array) {
    const auto named = layer.spatial_mapping.find(dim.name);
    unrolled.emplace_back();
    if (named != layer.spatial_mapping.end())
      unrolled.back() = named->second.empty() ? std::vector<Unrolling>{{"", 1}} : named->second;
  }
  return unrolled;
}

StreamedProblem problem_of(const Workload& workload, std::uint32_t tile, const Chip& chip) {
  const Layer& layer = workload.layers[workload.tiles[tile].layer];
  StreamedProblem asked;
  asked.problem.compute = ComputeKind::mac;
  for (const Dim& dim : layer.dims)
    asked.problem.dims.push_back({dim.name, dim.tile});
  for (const Operand operand : layer.equation)
    asked.problem.operands.push_back(operand_of(layer, operand));
  std::vector<MemoryOperand> streamed = streamed_operands(workload, tile, chip);
  if (layer.alone) // the reference iterates over a Python set here
    streamed = zigzag_set_order(streamed);
  for (const MemoryOperand memory : streamed) {
    for (std::size_t i = 0; i < asked.problem.operands.size(); ++i) {
      if (asked.problem.operands[i].memory == memory)
        asked.streamed.push_back(i);
    }
  }
  asked.spatial = unrolling_of(layer, chip.cores[workload.tiles[tile].core.index()]);
  asked.parallel = layer.inter_splits;
  asked.cycles_per_operation = cycles_per_operation(layer);
  return asked;
}

/// Cache key of a problem: equal keys have equal costs. Loop names matter: dataflows use them.
std::string key_of(const StreamedProblem& asked, const Core& core) {
  std::string key = signature(asked.problem) + signature(core);
  for (const LoopDim& dim : asked.problem.dims)
    key += dim.name + ' ';
  for (const std::size_t operand : asked.streamed)
    key += fmt::format("s{}", operand);
  for (const std::vector<Unrolling>& dim : asked.spatial) {
    key += '|';
    for (const Unrolling& unrolling : dim)
      key += fmt::format("{}*{} ", unrolling.dim, unrolling.factor);
  }
  return key + fmt::format("p{}c{}", asked.parallel, asked.cycles_per_operation);
}

using Solved = std::map<std::string, StreamedCost>;

const StreamedCost& solve(const StreamedProblem& asked, const Layer& layer, const Core& core,
                          const Chip& chip, Solved& solved) {
  const std::string key = key_of(asked, core);
  const auto known = solved.find(key);
  if (known != solved.end())
    return known->second;
  try {
    const Core& offchip = chip.cores[chip.offchip->index()];
    return solved.emplace(key, streamed_cost(asked, core, offchip)).first->second;
  } catch (const InfeasibleError& error) {
    throw InfeasibleError(fmt::format("layer {} '{}': {}", layer.id, layer.name, error.what()));
  }
}

TileCost cost_of(const Workload& workload, std::uint32_t t, const Chip& chip, Solved& solved) {
  const Tile& tile = workload.tiles[t];
  const StreamedProblem asked = problem_of(workload, t, chip);
  const StreamedCost& found =
      solve(asked, workload.layers[tile.layer], chip.cores[tile.core.index()], chip, solved);
  TileCost cost;
  cost.runtime = found.latency;
  cost.onchip_pj = found.onchip_pj;
  cost.offchip_pj = found.offchip_pj;
  cost.streamed = streamed_operands(workload, t, chip);
  for (const std::size_t i : asked.streamed) {
    const MemoryOperand memory = asked.problem.operands[i].memory;
    cost.offchip_bandwidth[static_cast<std::size_t>(memory)] =
        memory == MemoryOperand::O ? found.rates[i].write : found.rates[i].read;
  }
  return cost;
}

} // namespace

Costs core_costs(const Workload& workload, const Chip& chip) {
  if (!chip.offchip) {
    throw InputError({chip.origin},
                     "the reference scheduler needs a system with an off-chip memory");
  }
  Costs costs;
  Solved solved;
  std::map<std::pair<std::uint32_t, std::size_t>, std::uint32_t> classes; // by layer and core
  for (std::uint32_t t = 0; t < workload.tiles.size(); ++t) {
    const Tile& tile = workload.tiles[t];
    const auto [found, is_new] = classes.try_emplace(
        {tile.layer, tile.core.index()}, static_cast<std::uint32_t>(costs.classes.size()));
    if (is_new)
      costs.classes.push_back(cost_of(workload, t, chip, solved));
    costs.of_tile.push_back(found->second);
  }
  return costs;
}

} // namespace monet::stream
