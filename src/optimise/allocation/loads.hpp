// Load that each choice of an allocation search puts on cores and ports, whatever the other
// choices.
#pragma once

#include "monet/optimise/allocation.hpp"

#include <cstdint>
#include <vector>

namespace monet {

/// Load of one choice of one operator.
struct ChoiceLoad {
  bool known = false;                    ///< false if not computed
  bool feasible = false;                 ///< every tile has a mapping
  std::vector<double> cycles;            ///< per resource: compute cores, then ports
  std::int64_t shortest_tile = 0;        ///< cycles
  std::int64_t energy = 0;               ///< Energy::units of the tiles
  double port_energy = 0;                ///< Energy::units of port traffic
  double port_bits = 0;                  ///< bits that pass the ports
  std::vector<std::uint32_t> after_some; ///< producers that every tile reads from
  std::vector<std::uint32_t> after_all;  ///< producers that every tile reads completely

  /// Cycles on the busiest core.
  double busiest(std::size_t cores) const;
};

struct AllocationLoads {
  std::size_t cores = 0;                   ///< compute cores
  std::size_t resources = 0;               ///< cores, and one shared port or two ports
  std::vector<std::vector<ChoiceLoad>> of; ///< [operator][choice]
  /// Minimum cycles per resource and Energy::units of port traffic, for any choices.
  ChoiceLoad compulsory;
  /// Per operator, the producers of which it reads every element.
  std::vector<std::vector<std::uint32_t>> reads_all_of;
  std::vector<bool> waits; ///< per operator: an update that starts after all other operators end
  bool complete = false;   ///< every choice is known
};

/// Solves the core costs of every choice. If `control` interrupts it, it returns early with
/// `complete` false.
AllocationLoads allocation_loads(AllocationEvaluator& evaluator, const SearchControl& control);

} // namespace monet
