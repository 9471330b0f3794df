// What the parts of a chip cost, whatever runs on it.
#pragma once

#include "monet/hardware/chip.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace monet {

/// area_mm2, peak_power_w (null without a frequency), and by core its area, its array's figures and
/// its memories; of those priced by our model, how. Described by docs/result.schema.json.
nlohmann::ordered_json hardware_json(const Chip& chip);

/// The same as a table, a row for each array and memory; equal cores share their rows.
std::string hardware_table(const nlohmann::ordered_json& hardware);

} // namespace monet
