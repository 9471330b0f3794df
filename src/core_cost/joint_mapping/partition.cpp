// Divides pairs into parts, in time or over cores, and costs each scheme; backward_network.cpp uses
// it.
#include "core_cost/joint_mapping/problem.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/units.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

namespace monet {
namespace {

using namespace joint_mapping;

constexpr std::array<std::string_view, kPartitionSchemes> kSchemeNames{
    "none", "weight-sharing", "dy-sharing", "ifmap-sharing"};

/// Rule of a scheme: the operand every part reads whole, and the results to be added up.
struct SchemeRule {
  int dim = 0;
  BackwardOperand common = BackwardOperand::w;
  std::optional<BackwardOperand> added;
};

SchemeRule rule_of(PartitionScheme scheme) {
  switch (scheme) {
  case PartitionScheme::weight_sharing:
    return {0, BackwardOperand::w, BackwardOperand::dw};
  case PartitionScheme::dy_sharing:
    return {2, BackwardOperand::x, BackwardOperand::dx};
  default:
    return {1, BackwardOperand::dy, std::nullopt};
  }
}

std::int64_t& size_of(GemmPair& pair, int dim) {
  return dim == 0 ? pair.m : dim == 1 ? pair.k : pair.n;
}

/// Part with `elements` elements of the dimension; a raw feature map shrinks in proportion.
GemmPair part_of(GemmPair pair, int dim, std::int64_t elements) {
  std::int64_t& size = size_of(pair, dim);
  if (dim != 2) {
    const Wide share = static_cast<Wide>(pair.raw_elements) * elements;
    pair.raw_elements = static_cast<std::int64_t>((share + size - 1) / size);
  }
  size = elements;
  return pair;
}

/// Cost of a core's part. Data that all cores read are read in step, once for all, with a single
/// copy, so each core counts a share.
BackwardCost cost_of_part(const GemmPair& part, const NpuMachine& machine, Technique technique,
                          const BackwardOptions& options, std::optional<BackwardOperand> common) {
  PairProblem problem = make_problem(part, machine, options, technique == Technique::joint_update);
  if (common) {
    std::int64_t& held = problem.held[at(*common)];
    std::int64_t& moved = problem.moved[at(*common)];
    held = ceil_div(held, machine.cores);
    moved = ceil_div(moved, machine.cores);
  }
  return pair_cost(problem, part, technique, options);
}

NpuMachine share_of(NpuMachine machine, std::int64_t parts) {
  machine.buffer_bits /= parts;
  machine.bandwidth_cycles *= parts;
  machine.cores = parts;
  return machine;
}

/// Traffic to add up partial sums: every part has written its sums; they are read back, and the
/// total is written.
BackwardTraffic adding_up(const GemmPair& pair, BackwardOperand result, std::int64_t parts,
                          const BackwardOptions& options) {
  const std::int64_t rows = result == BackwardOperand::dx ? pair.m : pair.k;
  const std::int64_t columns = result == BackwardOperand::dx ? pair.k : pair.n;
  const std::int64_t elements = rows * columns * pair.repeats;
  BackwardTraffic traffic;
  const std::int64_t read = parts * elements * options.partial_bits;
  const std::int64_t write = parts * elements * (options.partial_bits - options.element_bits) +
                             elements * options.element_bits;
  (result == BackwardOperand::dx ? traffic.dx_read : traffic.dw_read) = read;
  (result == BackwardOperand::dx ? traffic.dx_write : traffic.dw_write) = write;
  return traffic;
}

PartitionedCost undivided(const GemmPair& pair, const NpuMachine& machine, Technique technique,
                          const BackwardOptions& options) {
  PartitionedCost cost;
  cost.part = backward_cost(pair, machine, technique, options);
  cost.latency_cycles = cost.part.latency_cycles;
  cost.traffic = cost.part.traffic;
  return cost;
}

/// Candidate numbers of parts of a scheme.
std::vector<std::int64_t> counts_of(const NpuMachine& machine, PartitionScheme scheme,
                                    std::int64_t max_parts) {
  if (machine.cores > 1)
    return scheme == PartitionScheme::none ? std::vector<std::int64_t>{}
                                           : std::vector<std::int64_t>{machine.cores};
  if (scheme == PartitionScheme::none)
    return {1};
  std::vector<std::int64_t> counts;
  for (std::int64_t parts = 2; parts <= max_parts; parts *= 2)
    counts.push_back(parts);
  return counts;
}

/// The fastest cost of each scheme. Nothing for a scheme if no number of parts fits, the dimension
/// has one element, or the results to be added up are applied at once. Throws InfeasibleError if
/// there is nothing for any scheme.
std::array<std::optional<PartitionedCost>, kPartitionSchemes>
best_of_schemes(const GemmPair& pair, const NpuMachine& machine, Technique technique,
                std::int64_t max_parts, const BackwardOptions& options) {
  std::array<std::optional<PartitionedCost>, kPartitionSchemes> best;
  std::optional<InfeasibleError> missing;
  GemmPair sizes = pair;
  for (std::size_t s = 0; s < best.size(); ++s) {
    const auto scheme = static_cast<PartitionScheme>(s);
    for (const std::int64_t parts : counts_of(machine, scheme, max_parts)) {
      if (scheme != PartitionScheme::none && machine.cores == 1 &&
          size_of(sizes, rule_of(scheme).dim) < parts)
        break;
      try {
        PartitionedCost cost = partitioned(pair, machine, technique, scheme, parts, options);
        if (!best[s] || cost.latency_cycles < best[s]->latency_cycles)
          best[s] = std::move(cost);
      } catch (const InfeasibleError& e) {
        missing = e;
      }
    }
  }
  if (std::ranges::none_of(best, [](const auto& cost) { return cost.has_value(); }))
    throw InfeasibleError(*missing);
  return best;
}

} // namespace

std::string_view name_of(PartitionScheme scheme) {
  return kSchemeNames[static_cast<std::size_t>(scheme)];
}

PartitionedCost partitioned(const GemmPair& pair, const NpuMachine& machine, Technique technique,
                            PartitionScheme scheme, std::int64_t parts,
                            const BackwardOptions& options) {
  internal_check(parts >= 1 && parts <= kMaxGemmDimension, "parts of a pair");
  if (scheme == PartitionScheme::none || parts == 1)
    return undivided(pair, machine, technique, options);
  const SchemeRule rule = rule_of(scheme);
  if (technique == Technique::joint_update && rule.added == BackwardOperand::dw)
    throw InfeasibleError(
        "weight-sharing adds up dW after all parts, where joint-update applies it "
        "at once");
  GemmPair sizes = pair;
  const std::int64_t size = size_of(sizes, rule.dim);
  const std::int64_t elements = ceil_div(size, parts);
  const std::int64_t count = ceil_div(size, elements);
  const bool side_by_side = machine.cores > 1;
  const NpuMachine own = side_by_side ? share_of(machine, count) : machine;
  std::optional<BackwardOperand> common;
  if (side_by_side && count > 1)
    common = rule.common;

  PartitionedCost cost;
  cost.scheme = scheme;
  cost.parts = count;
  cost.part = cost_of_part(part_of(pair, rule.dim, elements), own, technique, options, common);
  const std::int64_t rest = size - (count - 1) * elements;
  const BackwardCost last = rest == elements ? cost.part
                                             : cost_of_part(part_of(pair, rule.dim, rest), own,
                                                            technique, options, common);
  cost.traffic = cost.part.traffic * (count - 1);
  cost.traffic += last.traffic;
  cost.latency_cycles = side_by_side ? std::max(cost.part.latency_cycles, last.latency_cycles)
                                     : (count - 1) * cost.part.latency_cycles + last.latency_cycles;
  if (rule.added && count > 1 && (pair.has_dx || rule.added == BackwardOperand::dw)) {
    const BackwardTraffic sums = adding_up(pair, *rule.added, count, options);
    cost.sum_cycles = transfer_cycles(sums.bits(), machine);
    cost.traffic += sums;
    cost.latency_cycles += cost.sum_cycles;
  }
  return cost;
}

PartitionedCost best_partition(const GemmPair& pair, const NpuMachine& machine, Technique technique,
                               std::int64_t max_parts, const BackwardOptions& options) {
  std::optional<PartitionedCost> best;
  for (auto& next : best_of_schemes(pair, machine, technique, max_parts, options)) {
    if (next && (!best || next->latency_cycles < best->latency_cycles))
      best = std::move(next);
  }
  return *std::move(best);
}

PartitionSample partition_sample(const GemmPair& pair, const NpuMachine& machine,
                                 Technique technique, std::int64_t max_parts,
                                 const BackwardOptions& options) {
  PartitionSample sample;
  const auto m = static_cast<double>(pair.m);
  const auto k = static_cast<double>(pair.k);
  const auto n = static_cast<double>(pair.n);
  sample.dims = {m, k, k, n, m, n};
  const auto costs = best_of_schemes(pair, machine, technique, max_parts, options);
  for (std::size_t s = 0; s < costs.size(); ++s)
    sample.cycles[s] = costs[s] ? static_cast<double>(costs[s]->latency_cycles)
                                : std::numeric_limits<double>::infinity();
  return sample;
}

} // namespace monet
