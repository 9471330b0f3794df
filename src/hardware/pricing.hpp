// Fills in the figures that hardware files leave to our models.
#pragma once

#include "monet/hardware/chip.hpp"

namespace monet {

/// Default technology node in nm of modelled files.
inline constexpr double kDefaultNode = 22;
/// Default kind of modelled off-chip memories.
inline constexpr const char* kDefaultDram = "lpddr4";

/// Whether a memory without figures is priced by the DRAM model.
bool is_modelled_dram(const Memory& memory);

/// Prices memories with `auto_cost_extraction` or `dram`, and the array with
/// `auto_cost_extraction`. The node is the core's, else `node_nm`, else kDefaultNode. The reader
/// must have checked the ranges.
void price(Core& core, double node_nm);

/// Prices all cores with the chip's node and adds the cost of the links' lengths.
void price(Chip& chip);

} // namespace monet
