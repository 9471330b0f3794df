// Results of `--model stream-coala` as JSON and as a table.
#pragma once

#include "monet/hardware/chip.hpp"
#include "monet/reference/stream_tiles.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace monet {

/// JSON of a schedule: latency_cycles, energy_pj and its nine terms, cores, layers, tiles,
/// link_events, memory_peaks and notes. Rows of tiles and events have the keys of the reference's
/// schedule.json and comm_events.json. Described in docs/explanation/stream-coala-costs.md.
nlohmann::ordered_json stream_json(const stream::Workload& workload, const Chip& chip,
                                   const stream::Costs& costs, const stream::Result& result);

/// Final table of `monet schedule --model stream-coala`, from the JSON with a name.
std::string stream_table(const nlohmann::ordered_json& result);

} // namespace monet
