// What each choice of a search over allocations takes of cores and ports, whatever the others are.
#pragma once

#include "monet/optimise/allocation.hpp"

#include <cstdint>
#include <vector>

namespace monet {

/// One choice of one operator.
struct ChoiceLoad {
  bool known = false;                    ///< false: not looked at
  bool feasible = false;                 ///< every tile has a mapping
  std::vector<double> cycles;            ///< per resource: cores that compute, then ports
  std::int64_t shortest_tile = 0;        ///< cycles
  std::int64_t energy = 0;               ///< Energy::units of the tiles
  double port_energy = 0;                ///< Energy::units of what passes the ports
  double port_bits = 0;                  ///< that pass the ports
  std::vector<std::uint32_t> after_some; ///< operators of which every tile reads something
  std::vector<std::uint32_t> after_all;  ///< of which every tile reads all

  /// Cycles on the busiest core.
  double busiest(std::size_t cores) const;
};

struct AllocationLoads {
  std::size_t cores = 0;                   ///< that compute
  std::size_t resources = 0;               ///< and one port, or one to read and one to write
  std::vector<std::vector<ChoiceLoad>> of; ///< [operator][choice]
  /// Cycles per resource and Energy::units of what must pass the ports whatever is chosen.
  ChoiceLoad compulsory;
  /// Per operator, those of which it reads every element.
  std::vector<std::vector<std::uint32_t>> reads_all_of;
  std::vector<bool> waits; ///< per operator: an update that starts when all else has ended
  bool complete = false;   ///< every choice is known
};

/// Solves the core costs of every choice; ends early when the control says so.
AllocationLoads allocation_loads(AllocationEvaluator& evaluator, const SearchControl& control);

} // namespace monet
