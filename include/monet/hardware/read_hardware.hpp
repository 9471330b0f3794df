// YAML -> Core and Chip. Both memory schemas (named ports; r_bw/w_bw with port counts) and both link styles are read as they stand.
#pragma once

#include "monet/base/yaml.hpp"
#include "monet/hardware/chip.hpp"

#include <string>

namespace monet {

/// A ZigZag core file. One InputError with every problem found.
Core read_core(const std::string& path);
/// A Stream system file, or a single core file (then a chip of that one core; a top memory that serves all operands
/// and is called dram or offchip becomes the off-chip memory). Core files are looked for beside the system file, in its
/// folder `cores/`, and as `hardware/...` paths below parents of the system file.
Chip read_chip(const std::string& path);

}  // namespace monet
