// backward_cost(): cost of a pair of gradient products on one core by joint mapping;
// backward_network.cpp and partition.cpp call it.
#include "monet/core_cost/backward.hpp"

#include "core_cost/joint_mapping/problem.hpp"
#include "core_cost/joint_mapping/search.hpp"

#include "monet/base/errors.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace monet {
namespace {

using namespace joint_mapping;

constexpr std::array<std::string_view, kTechniques> kTechniqueNames{
    "sequential",  "best-sequential", "interleave", "dx-major",    "dw-major",
    "algorithm-1", "best-of-three",   "joint",      "joint-update"};

constexpr std::array kTrafficParts{
    &BackwardTraffic::dy_read,  &BackwardTraffic::w_read,      &BackwardTraffic::x_read,
    &BackwardTraffic::dx_read,  &BackwardTraffic::dx_write,    &BackwardTraffic::dw_read,
    &BackwardTraffic::dw_write, &BackwardTraffic::update_read, &BackwardTraffic::update_write};

/// Traffic in bits over all repeats, each part rounded up.
BackwardTraffic in_bits(const FineTraffic& fine, std::int64_t repeats) {
  BackwardTraffic traffic;
  for (const auto part : kTrafficParts)
    traffic.*part =
        static_cast<std::int64_t>((static_cast<Wide>(fine.*part) * repeats + kFine - 1) / kFine);
  return traffic;
}

BackwardMapping::Product describe(const Structure& s, const Tile& tile, int product) {
  BackwardMapping::Product out;
  out.block = tile;
  for (std::size_t q = 0; q < kDims; ++q)
    out.order[q] = static_cast<GemmDim>(s.order[at(product)][q]);
  for (int place = 0; place < 3; ++place) {
    const BackwardOperand operand = operand_of(product, place);
    const int loop = position(s, product, absent_dim(operand));
    bool once = s.once[at(product)][at(place)];
    int depth = once ? loop : kDims;
    if (operand == BackwardOperand::dy && s.dy != DyUse::separate) {
      const bool whole = s.form != Form::shared;
      depth = whole ? 0 : s.dy == DyUse::block ? s.shared : std::min(loop, s.shared);
    }
    out.depth[at(place)] = depth;
  }
  return out;
}

bool spills(const Structure& s, const std::array<std::int64_t, 3>& parts) {
  for (const int product : {kDx, kDw}) {
    const std::size_t absent = at(absent_dim(operand_of(product, kResult)));
    if (s.uses(product) && !s.once[at(product)][kResult] && parts[absent] > 1)
      return true;
  }
  return false;
}

BackwardMapping mapping_of(const PairProblem& problem, const Chosen& chosen) {
  BackwardMapping mapping;
  const Structure& first = chosen.programs.front().structure;
  mapping.form = first.form == Form::single ? BackwardMapping::Form::sequence
                 : first.form == Form::lockstep || first.shared == kDims
                     ? BackwardMapping::Form::interleaved
                     : BackwardMapping::Form::shared;
  mapping.shared = first.form == Form::shared ? first.shared : 0;
  mapping.dw_first = first.first() == kDw;
  mapping.dy_kept = first.dy != DyUse::separate;
  for (const Choice& choice : chosen.programs) {
    const Structure& s = choice.structure;
    if (s.uses(kDx))
      mapping.dx = describe(s, choice.tile, kDx);
    if (s.uses(kDw))
      mapping.dw = describe(s, choice.tile, kDw);
    if (spills(s, Plan(problem, s, choice.tile).parts()))
      mapping.partials_spilled = true;
  }
  return mapping;
}

std::string order_text(const BackwardMapping::Product& product) {
  std::string text;
  for (const GemmDim dim : product.order)
    text += name_of(dim);
  return text;
}

/// Whether all common loops have one part each, so one product runs after the other.
bool shares_nothing(const BackwardMapping& mapping, const GemmPair& pair) {
  const std::array<std::int64_t, 3> sizes{pair.m, pair.k, pair.n};
  for (int q = 0; q < mapping.shared; ++q) {
    const int dim = static_cast<int>(mapping.dx.order[at(q)]);
    if (mapping.dx.block[at(dim)] < sizes[at(dim)])
      return false;
  }
  return mapping.form == BackwardMapping::Form::shared;
}

std::string variant_of(Technique technique, const BackwardMapping& mapping, const GemmPair& pair) {
  std::string text(name_of(technique));
  if (!pair.has_dx) {
    text += " dW alone";
  } else if (mapping.form == BackwardMapping::Form::sequence || shares_nothing(mapping, pair)) {
    text += mapping.dw_first ? " dW then dX" : " dX then dW";
  } else if (mapping.shared == 0) {
    text += fmt::format(" {} with {}", order_text(mapping.dx), order_text(mapping.dw));
  } else {
    const auto place = [&](GemmDim dim) { return std::ranges::find(mapping.dx.order, dim); };
    const std::string major = place(GemmDim::m) < place(GemmDim::n) ? "dx-major" : "dw-major";
    if (technique != Technique::dx_major && technique != Technique::dw_major)
      text += " " + (mapping.shared == 1 && mapping.dx.order[0] == GemmDim::k ? "k-major" : major);
  }
  if (pair.has_dx && mapping.dy_kept)
    text += ", dY kept";
  if (mapping.partials_spilled)
    text += ", partial sums spilled";
  return text;
}

} // namespace

std::string_view name_of(Technique technique) {
  return kTechniqueNames[static_cast<std::size_t>(technique)];
}

const std::vector<std::string>& technique_names() {
  static const std::vector<std::string> names(kTechniqueNames.begin(), kTechniqueNames.end());
  return names;
}

std::optional<Technique> technique_named(std::string_view name) {
  const auto found = std::ranges::find(kTechniqueNames, name);
  if (found == kTechniqueNames.end())
    return std::nullopt;
  return static_cast<Technique>(found - kTechniqueNames.begin());
}

std::string_view name_of(GemmDim dim) {
  constexpr std::array<std::string_view, 3> kNames{"m", "k", "n"};
  return kNames[static_cast<std::size_t>(dim)];
}

std::string_view name_of(BackwardOperand operand) {
  constexpr std::array<std::string_view, 5> kNames{"dY", "W", "X", "dX", "dW"};
  return kNames[at(operand)];
}

std::int64_t BackwardTraffic::reads() const {
  return dy_read + w_read + x_read + dx_read + dw_read + update_read;
}

std::int64_t BackwardTraffic::writes() const {
  return dx_write + dw_write + update_write;
}

BackwardTraffic& BackwardTraffic::operator+=(const BackwardTraffic& other) {
  for (const auto part : kTrafficParts)
    this->*part += other.*part;
  return *this;
}

BackwardTraffic operator*(BackwardTraffic traffic, std::int64_t count) {
  for (const auto part : kTrafficParts)
    traffic.*part *= count;
  return traffic;
}

namespace joint_mapping {

std::int64_t cycles_of(Wide time, std::int64_t units) {
  return static_cast<std::int64_t>((time + units - 1) / units);
}

std::int64_t transfer_cycles(Wide bits, const NpuMachine& machine) {
  return cycles_of(bits * machine.bandwidth_cycles, machine.bandwidth_bits);
}

BackwardCost pair_cost(const PairProblem& problem, const GemmPair& pair, Technique technique,
                       const BackwardOptions& options) {
  const Chosen chosen = choose(problem, technique, options);
  BackwardCost cost;
  cost.technique = technique;
  cost.latency_cycles = cycles_of(chosen.time() * pair.repeats, problem.cycle_units);
  Wide moved = 0;
  for (const Choice& choice : chosen.programs) {
    const Plan plan(problem, choice.structure, choice.tile);
    cost.compute_cycles += static_cast<std::int64_t>(plan.compute_cycles() * pair.repeats);
    cost.traffic += in_bits(traffic_of(problem, choice.structure, plan.parts()), pair.repeats);
    moved += choice.moved;
  }
  cost.transfer_cycles = cycles_of(moved * problem.move_units * pair.repeats, problem.cycle_units);
  cost.mapping = mapping_of(problem, chosen);
  cost.variant = variant_of(technique, cost.mapping, pair);
  return cost;
}

} // namespace joint_mapping

BackwardCost backward_cost(const GemmPair& pair, const NpuMachine& machine, Technique technique,
                           const BackwardOptions& options) {
  const bool update = technique == Technique::joint_update;
  return pair_cost(make_problem(pair, machine, options, update), pair, technique, options);
}

} // namespace monet
