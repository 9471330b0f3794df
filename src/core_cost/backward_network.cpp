// Plans the backward pass of a network's products on an NPU; the backward command calls it.
#include "base/shared/checked.hpp"
#include "base/shared/parallel.hpp"

#include "monet/base/stop.hpp"
#include "monet/core_cost/backward.hpp"
#include "monet/core_cost/core_cost.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

namespace monet {

namespace {

/// The fastest number of parts of one scheme. Pairs that do not fit in few parts may fit in more.
PartitionedCost in_parts(const GemmPair& pair, const BackwardPlan& plan, Technique technique) {
  const NpuMachine& machine = plan.machine;
  if (machine.cores > 1)
    return partitioned(pair, machine, technique, *plan.scheme, machine.cores, plan.options);
  std::optional<PartitionedCost> best;
  std::optional<InfeasibleError> refused;
  for (std::int64_t parts = 2; parts <= std::max<std::int64_t>(2, plan.max_parts); parts *= 2) {
    try {
      PartitionedCost cost =
          partitioned(pair, machine, technique, *plan.scheme, parts, plan.options);
      if (!best || cost.latency_cycles < best->latency_cycles)
        best = std::move(cost);
    } catch (const InfeasibleError& error) {
      refused = error;
    }
  }
  if (!best)
    throw InfeasibleError(*refused);
  return *std::move(best);
}

PartitionedCost cost_of(const GemmPair& pair, const BackwardPlan& plan, Technique technique) {
  if (!plan.scheme)
    return best_partition(pair, plan.machine, technique, plan.max_parts, plan.options);
  if (*plan.scheme == PartitionScheme::none)
    return partitioned(pair, plan.machine, technique, *plan.scheme, 1, plan.options);
  return in_parts(pair, plan, technique);
}

/// Key of all values that decide a pair's costs.
auto key_of(const GemmPair& pair) {
  return std::tuple(pair.m, pair.k, pair.n, pair.repeats, pair.has_dx, pair.raw_elements);
}

/// Product of size D x K from factors of D x C and C x K.
CoreProblem tile_problem(std::int64_t r, std::int64_t c, std::int64_t t,
                         const BackwardOptions& options) {
  CoreProblem problem{.compute = ComputeKind::mac, .dims = {{"D", r}, {"C", t}, {"K", c}}};
  const auto operand = [&](AccessMode mode, MemoryOperand memory, std::uint32_t row,
                           std::uint32_t column) {
    problem.operands.push_back(
        {.mode = mode,
         .memory = memory,
         .axes = {{{{row, 1}}, 0, false}, {{{column, 1}}, 0, false}},
         .extents = {problem.dims[row].size, problem.dims[column].size},
         .bits = options.element_bits,
         .partial_bits = mode == AccessMode::write ? options.partial_bits : options.element_bits});
  };
  operand(AccessMode::write, MemoryOperand::O, 0, 2);
  operand(AccessMode::read, MemoryOperand::I1, 0, 1);
  operand(AccessMode::read, MemoryOperand::I2, 1, 2);
  return problem;
}

/// Cache of the cycles of tiles.
struct TileCycles {
  Core core;
  CoreCostCache costs;
  std::mutex mutex;
  std::map<std::array<std::int64_t, 3>, std::int64_t> known;
};

/// Y(m,n) = X(m,k) W(k,n) as a pair without dX: the dW(m,n) of a pair with X(m,k) transposed as X
/// and W as dY. Its usual order is by rows of Y.
GemmPair forward_pair(const GemmPair& pair) {
  GemmPair turned = pair;
  std::swap(turned.m, turned.k);
  turned.has_dx = false;
  return turned;
}

} // namespace

std::vector<BackwardLayer>
map_backward(const GemmNetwork& network, const BackwardPlan& plan,
             const std::function<void(std::int64_t, std::int64_t)>& tell) {
  internal_check(plan.machine.cores == 1 || plan.scheme != PartitionScheme::none,
                 "several cores share every pair");
  std::map<decltype(key_of({})), std::size_t> first; // first of equal pairs
  std::vector<std::size_t> different;
  for (std::size_t i = 0; i < network.pairs.size(); ++i) {
    if (first.emplace(key_of(network.pairs[i]), different.size()).second)
      different.push_back(i);
  }
  std::vector<BackwardLayer> solved(different.size());
  std::atomic<std::int64_t> done{0};
  parallel_for(different.size(), plan.jobs, [&](std::size_t i) {
    const GemmPair& pair = network.pairs[different[i]];
    try {
      for (const Technique technique : plan.techniques) {
        check_stop();
        solved[i].costs.push_back(cost_of(pair, plan, technique));
      }
      solved[i].bound = backward_bound(pair, plan.machine, plan.options);
    } catch (const InfeasibleError& error) {
      throw InfeasibleError(fmt::format("layer '{}': {}", pair.name, error.what()));
    }
    if (tell)
      tell(++done, static_cast<std::int64_t>(different.size()));
  });
  std::vector<BackwardLayer> layers;
  for (const GemmPair& pair : network.pairs) {
    layers.push_back(solved[first.at(key_of(pair))]);
    layers.back().pair = pair;
  }
  return layers;
}

PartitionedCost forward_cost(const GemmPair& pair, const NpuMachine& machine,
                             const BackwardOptions& options) {
  BackwardPlan plan{.machine = machine, .options = options};
  if (machine.cores > 1)
    plan.scheme = PartitionScheme::ifmap_sharing; // rows of Y are the transposed pair's k
  return cost_of(forward_pair(pair), plan, Technique::sequential);
}

std::int64_t update_bits(const GemmPair& pair, const BackwardOptions& options) {
  const std::int64_t weights = checked_multiply(checked_multiply(pair.k, pair.n), pair.repeats);
  return checked_multiply(weights, 3 * options.element_bits + 2 * options.state_bits);
}

std::function<std::int64_t(std::int64_t, std::int64_t, std::int64_t)>
core_tile_cycles(const Core& core, const BackwardOptions& options) {
  const auto tiles = std::make_shared<TileCycles>();
  tiles->core = core;
  return [tiles, options](std::int64_t r, std::int64_t c, std::int64_t t) {
    const std::array<std::int64_t, 3> tile{r, c, t};
    {
      const std::scoped_lock lock(tiles->mutex);
      if (const auto found = tiles->known.find(tile); found != tiles->known.end())
        return found->second;
    }
    const CoreCost& cost = tiles->costs.get(tile_problem(r, c, t, options), tiles->core, {});
    const auto cycles = static_cast<std::int64_t>(std::ceil(cost.parts.total()));
    const std::scoped_lock lock(tiles->mutex);
    return tiles->known.emplace(tile, cycles).first->second;
  };
}

} // namespace monet
