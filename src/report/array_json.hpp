// The array of a core in JSON: its unit, its modes, what it takes on an FPGA.
#pragma once

#include "monet/hardware/chip.hpp"
#include "monet/hardware/imc_array.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace monet {

/// `frequency_hz` 0: no operations a second are given.
nlohmann::ordered_json array_json(const Core& core, double frequency_hz);

/// Rows under the array's own in the table of hardware_table(), as wide as that.
void add_array_rows(const nlohmann::ordered_json& array,
                    std::vector<std::vector<std::string>>& rows);

} // namespace monet
