// `operational_array:` of a core file: sizes, cost, the unit and its modes.
#pragma once

#include "monet/base/yaml.hpp"
#include "monet/hardware/core.hpp"

namespace monet {

/// Into array, mac_energy_pj, array_area_mm2, the keys of the arithmetic model, mac and modes.
void read_array(const YamlNode& node, ProblemList& problems, bool offchip, Core& core);

} // namespace monet
