// Sums over a timeline by layer, core and link. Energies are integers, so every split adds up to
// the same total.
#pragma once

#include "monet/hardware/chip.hpp"
#include "monet/report/result.hpp"

#include <array>
#include <set>
#include <string>
#include <vector>

namespace monet {

struct LayerSums {
  EnergySplit energy;             ///< of its runs and of the transfers done for it
  Bits offchip;                   ///< moved from or to the off-chip memory for it
  Cycles start;                   ///< of its first run
  Cycles end;                     ///< of its last run
  std::vector<CoreId> cores;      ///< ascending
  std::set<std::string> variants; ///< how its runs compute it, where there is a choice
};

struct CoreSums {
  /// Compute, on-chip memories and leakage; what a transfer costs on chip belongs to the core that
  /// receives it, or to the sender when it leaves the chip. The off-chip core has all off-chip
  /// energy.
  Energy energy;
  Cycles busy; ///< of the off-chip core: some transfer reads or writes it
  std::int64_t tiles = 0;
  std::int64_t macs = 0;
  Bits peak; ///< of its top memory; cores that share one have the same figure
};

struct LinkSums {
  Energy energy; ///< a transfer over several links is split by what each charges for it
  Cycles busy;
  Bits bits;
};

struct Ledger {
  std::vector<LayerSums> layers; ///< per operator
  std::vector<CoreSums> cores;
  std::vector<LinkSums> links;
  /// The off-chip memory's port, or the one that reads and the one that writes; their energy is
  /// that of the off-chip core.
  std::array<LinkSums, 2> ports;
};

Ledger make_ledger(const StepResult& result, const Chip& chip);

/// Bits the core's top memories hold together; of the off-chip core, its capacity.
Bits capacity_of(const Chip& chip, CoreId core);

} // namespace monet
