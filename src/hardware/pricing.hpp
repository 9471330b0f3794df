// Fills in the figures that hardware files leave to our models.
#pragma once

#include "monet/hardware/chip.hpp"

namespace monet {

/// The node of files that ask for a model and give none.
inline constexpr double kDefaultNode = 22;
/// The kind of off-chip memories that ask for a model and give none.
inline constexpr const char* kDefaultDram = "lpddr4";

/// Whether a memory that asks for a model is one of DRAM.
bool is_modelled_dram(const Memory& memory);

/// Prices memories with `auto_cost_extraction` or `dram`, and the array with
/// `auto_cost_extraction`. The node is the core's, else `node_nm`, else kDefaultNode. Ranges were
/// checked by the reader.
void price(Core& core, double node_nm);

/// All cores with the chip's node; adds what the links' lengths cost.
void price(Chip& chip);

} // namespace monet
