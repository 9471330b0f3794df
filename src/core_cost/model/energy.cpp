// Energy of word accesses at every memory level from the data movement; candidate.cpp calls it.
#include "core_cost/model/energy.hpp"

#include "core_cost/model/imc_work.hpp"

#include <cmath>

namespace monet::core_cost_detail {

namespace {

/// Accesses of one level in words of bandwidth_max, which may be parts of one. A narrow transfer
/// still costs bandwidth_min, per period.
double word_accesses(const Level& level, Direction direction, const Movement& movement,
                     double units) {
  const std::size_t d = index_of(direction);
  const std::int64_t bits = movement.amount * movement.bits;
  if (movement.transfers == 0 || bits == 0 || level.bandwidth_min[d] == 0)
    return 0;
  return static_cast<double>(level.least[d].passes(bits)) * level.min_share[d] *
         static_cast<double>(movement.transfers) * units;
}

/// Shares of words are rounded, so that a whole number of them may come out a little larger.
std::int64_t rounded_up(double words) {
  return static_cast<std::int64_t>(std::ceil(words * (1 - 1e-12)));
}

} // namespace

double level_energy(const Hierarchy& hierarchy, const SpatialForm& spatial,
                    const DataMovement& movement, std::size_t operand, std::size_t level,
                    std::array<std::int64_t, kDirections>* accesses) {
  const Level& at = hierarchy.levels[operand][level];
  const Node& node = hierarchy.nodes[at.node];
  const double units = spatial.operands[operand].units[level + 1];
  std::array<double, kDirections> words{};
  for (std::size_t d = 0; d < kDirections; ++d) {
    words[d] =
        word_accesses(at, static_cast<Direction>(d), movement[operand].levels[level][d], units);
    if (!hierarchy.part_words_cost)
      words[d] = std::trunc(words[d]);
    if (accesses != nullptr)
      (*accesses)[d] = rounded_up(words[d]);
  }
  const auto pj = [&](Direction d, double cost) { return words[index_of(d)] * cost; };
  return (pj(Direction::th, node.read_pj) + pj(Direction::tl, node.read_pj)) +
         (pj(Direction::fh, node.write_pj) + pj(Direction::fl, node.write_pj));
}

EnergyParts mapping_energy(const NestModel& model, const Hierarchy& hierarchy,
                           const SpatialModel& spatial, const DataMovement& movement) {
  EnergyParts energy;
  for (std::size_t operand = 0; operand < model.operands.size(); ++operand) {
    for (std::size_t level = 0; level < hierarchy.levels[operand].size(); ++level) {
      if (hierarchy.is_offchip(operand, level))
        continue;
      energy.memory += level_energy(hierarchy, spatial.exact, movement, operand, level);
    }
  }
  energy.compute = spatial.compute_pj;
  if (hierarchy.imc != nullptr && hierarchy.imc->group_depth() > 1) {
    const double reads = weight_reads(model, hierarchy, spatial, movement);
    energy.compute += imc_precharge_pj(*hierarchy.imc, reads);
  }
  return energy;
}

} // namespace monet::core_cost_detail
