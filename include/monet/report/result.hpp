// The result of a run as numbers for people and programs: result.json, tables, trace.json,
// report.html.
#pragma once

#include "monet/base/stage.hpp"
#include "monet/hardware/chip.hpp"
#include "monet/model/model_step.hpp"
#include "monet/tiling/tiling.hpp"
#include "monet/training_graph/training.hpp"

#include <nlohmann/json_fwd.hpp>

#include <map>
#include <string>
#include <vector>

namespace monet {

/// Where a result comes from; part of every result. No time stamps: equal inputs give equal bytes.
struct Provenance {
  std::string version;
  std::string git_hash;
  std::uint64_t seed = 0;
  std::map<std::string, std::string> input_hashes; ///< file name (without folders) -> sha512_hex()
  std::map<std::string, std::string> options;
};

/// Everything one modelled step consists of, borrowed for writing.
struct StepResult {
  const TrainingGraph* step = nullptr;
  const TileGraph* tiles = nullptr;
  const Timeline* timeline = nullptr;
};
inline StepResult result_of(const TrainingGraph& step, const ModelledStep& modelled) {
  return {&step, &modelled.tiles, &modelled.timeline};
}

/// The JSON object of one step: latency_cycles, energy_pj, peak_memory_bytes, macs, parameters,
/// memory, energy breakdown, phases, cores, links, layers, timeline. Described by
/// docs/result.schema.json.
nlohmann::ordered_json step_json(const StepResult& result, const Chip& chip);

/// What of the network's file is kept but not trained: name and why; empty where nothing is.
nlohmann::ordered_json buffers_json(const Graph& graph);
/// The same on a line, with how to train it: "kept, not trained: mask (its name); ...".
std::string buffers_line(const nlohmann::ordered_json& buffers);

nlohmann::ordered_json provenance_json(const Provenance& provenance);

/// result.json: the step's object at top level, `inference` beside it when both were modelled,
/// `provenance`.
nlohmann::ordered_json result_json(const std::string& name, const StepResult& step,
                                   const StepResult* inference, const Chip& chip,
                                   const Provenance& provenance);

/// The closing tables of `monet run`: latency, cycles on the critical path, energy and peak memory
/// by owner for forward, backward and update, next to inference alone; and the ten layers with most
/// cycles on the critical path, most first, with one row for all others.
std::string summary_table(const nlohmann::ordered_json& result);

/// Trace Event JSON for Perfetto: a process per kind (cores, links, memory), a thread per core,
/// link and lane of it; microseconds where the chip gives its frequency, else 1 us = 1 cycle.
std::string trace_json(const nlohmann::ordered_json& result);

/// A self-contained page of a step, an exploration, a comparison, a step on a cluster, a search for
/// a parallel strategy or a study of backward passes: the viewer in web/ chooses it by `kind`.
/// Every name is data (escaped), never markup.
std::string report_html(const nlohmann::ordered_json& result);

/// area_mm2, peak_power_w (null without a frequency), and by core its area, its array's figures and
/// its memories; of those priced by our model, how. Described by docs/result.schema.json.
nlohmann::ordered_json hardware_json(const Chip& chip);

/// The same as a table, a row for each array and memory; equal cores share their rows.
std::string hardware_table(const nlohmann::ordered_json& hardware);

} // namespace monet
