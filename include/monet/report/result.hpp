// Results of a run for readers and programs: result.json, tables, trace.json, report.html.
// Example:
//   #include <nlohmann/json.hpp>
//   std::string trace_of(const TrainingGraph& step, const ModelledStep& model, const Chip& chip) {
//     const StepResult result = result_of(step, model);
//     return trace_json(result_json("step", result, nullptr, chip, {})); // for Perfetto
//   }
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

/// Provenance of a result; part of every result. It has no time stamps, so equal inputs yield equal
/// bytes.
struct Provenance {
  std::string version;
  std::string git_hash;
  std::uint64_t seed = 0;
  std::map<std::string, std::string> input_hashes; ///< file name (without folders) -> sha512_hex()
  std::map<std::string, std::string> options;
  /// Scalars of the input files in YAML: file name -> path of keys ("cores.0.size") -> text.
  std::map<std::string, std::map<std::string, std::string>> settings;
};

/// A modelled step. The pointers are borrowed for writing.
struct StepResult {
  const TrainingGraph* step = nullptr;
  const TileGraph* tiles = nullptr;
  const Timeline* timeline = nullptr;
};
/// Result of a modelled step, which must outlive it.
inline StepResult result_of(const TrainingGraph& step, const ModelledStep& modelled) {
  return {&step, &modelled.tiles, &modelled.timeline};
}

/// JSON of one step, described by docs/result.schema.json: latency_cycles, energy_pj,
/// peak_memory_bytes, macs, parameters, memory, energy breakdown, phases, cores, links, layers,
/// timeline.
nlohmann::ordered_json step_json(const StepResult& result, const Chip& chip);

/// JSON of the values in the network's file that are kept but not trained, with names and
/// reasons; may be empty.
nlohmann::ordered_json buffers_json(const Graph& graph);
/// One line for buffers_json(), with the way to train them: "kept, not trained: mask (its name);
/// ...".
std::string buffers_line(const nlohmann::ordered_json& buffers);

/// JSON of a provenance.
nlohmann::ordered_json provenance_json(const Provenance& provenance);

/// JSON of a run, result.json: the keys of the step's object, `inference` if both were modelled,
/// and `provenance`.
nlohmann::ordered_json result_json(const std::string& name, const StepResult& step,
                                   const StepResult* inference, const Chip& chip,
                                   const Provenance& provenance);

/// Final tables of `monet run`. The first has latency, cycles on the critical path, energy and peak
/// memory by owner, for forward, backward and update and for inference alone. The second has the
/// ten layers with most cycles on the critical path, in descending order, and one row for all
/// others.
std::string summary_table(const nlohmann::ordered_json& result);

/// Trace Event JSON for Perfetto: a process per kind (cores, links, memory), and a thread per core
/// and link and lane of it. Times are in microseconds if the chip has a frequency, else 1 us = 1
/// cycle.
std::string trace_json(const nlohmann::ordered_json& result);

/// Self-contained HTML page of a result, which the viewer in web/ displays by its `kind`. Kinds are
/// a step, an exploration, a comparison, a step on a cluster, a search for a parallel strategy and
/// a study of backward passes. Names are escaped data, never markup.
std::string report_html(const nlohmann::ordered_json& result);

/// JSON of a chip, described by docs/result.schema.json: area_mm2, peak_power_w (null without a
/// frequency), and per core its area, its array's figures and its memories. Parts priced by our
/// model also have the method.
nlohmann::ordered_json hardware_json(const Chip& chip);

/// Table of hardware_json(), with a row per array and memory; equal cores share rows.
std::string hardware_table(const nlohmann::ordered_json& hardware);

} // namespace monet
