// Sums over a timeline by layer, core and link, for the JSON of a step. Energies are integers, so
// every split adds up to the same total.
#pragma once

#include "monet/hardware/chip.hpp"
#include "monet/report/result.hpp"

#include <array>
#include <set>
#include <string>
#include <vector>

namespace monet {

struct LayerSums {
  EnergySplit energy;             ///< of its runs and its transfers
  Bits offchip;                   ///< bits moved from or to the off-chip memory for it
  Cycles start;                   ///< start of its first run
  Cycles end;                     ///< end of its last run
  RunCycles causes{};             ///< cycles of its runs by cause, summed over the cores
  std::vector<CoreId> cores;      ///< cores of its runs, ascending
  std::set<std::string> variants; ///< variants of its runs, if there is a choice
};

struct CoreSums {
  /// Energy of compute, on-chip memories and leakage. The on-chip energy of a transfer belongs to
  /// the receiving core, or to the sender if the data leave the chip. The off-chip core has all
  /// off-chip energy.
  Energy energy;
  Cycles busy; ///< off-chip core: cycles in which a transfer accesses it
  std::int64_t tiles = 0;
  std::int64_t macs = 0;
  Bits peak; ///< peak of its top memory; equal for cores that share it
};

struct LinkSums {
  Energy energy; ///< a transfer's energy is split by the charges of its links
  Cycles busy;
  Bits bits;
};

struct Ledger {
  std::vector<LayerSums> layers; ///< sums per operator
  std::vector<CoreSums> cores;
  std::vector<LinkSums> links;
  /// Ports of the off-chip memory: one shared port, or a read port and a write port. Their energy
  /// is counted at the off-chip core.
  std::array<LinkSums, 2> ports;
};

Ledger make_ledger(const StepResult& result, const Chip& chip);

/// Capacity in bits of a core's top memories together; for the off-chip core, of the off-chip
/// memory.
Bits capacity_of(const Chip& chip, CoreId core);

} // namespace monet
