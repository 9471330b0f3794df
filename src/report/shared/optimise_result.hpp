// Effects of a search as JSON and pictures: steps side by side, memory before and after, groups on
// the graph.
#pragma once

#include "monet/report/result.hpp"
#include "monet/training_graph/training.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace monet {

/// JSON of a step's live bytes by owner over time: name, unit ("cycle"), moments, and the bytes
/// from each moment to the next. There are at most 1,000 moments; each is the peak of the moments
/// that it represents.
nlohmann::ordered_json memory_over_time_json(const std::string& name, const Timeline& timeline);

/// JSON of a step's figures: name, latency_cycles, energy_pj, offchip_bytes (read and written),
/// peak_memory_bytes, stored_activations_bytes.
nlohmann::ordered_json figures_json(const std::string& name, const StepFigures& figures);
/// Table of figures_json() rows side by side, with ratios to the first row.
std::string compared_table(const nlohmann::ordered_json& rows);

/// Per operator, the number of its stack, from 0 in the operators' order; kAlone for a stack of one
/// operator.
std::vector<std::uint32_t> groups_of(const TileGraph& tiles);

/// A step before and after optimisation.
struct OptimisedStep {
  std::vector<nlohmann::ordered_json> searches;
  StepResult before;
  StepResult after;
  bool interrupted = false; ///< a limit ended a part of the searches
};
/// JSON of the `optimise` part of result.json. It has `searches` (results of monet optimise, in
/// execution order), `interrupted`, `worse`, `compared` and `memory`. `worse` has the objectives of
/// searches that made the step worse, with both values. For a fused step of at most 4,000 operators
/// it also has `picture`, an SVG document of the groups on the graph.
nlohmann::ordered_json optimise_json(const OptimisedStep& optimised, const Chip& chip);
/// First line of a table if `worse` of optimise_json() has entries; else empty.
std::string worse_text(const nlohmann::ordered_json& optimise);

/// SVG document of a training step, with forward, backward and update side by side. Each forward
/// operator is a row, with its gradients and updates in the columns to its right. Data thus flow
/// down through the forward pass, across for stored tensors, and up through the backward pass.
/// Views should be folded. Names are escaped.
std::string graph_svg(const TrainingGraph& step);

/// Group number of an operator outside any group.
inline constexpr std::uint32_t kAlone = 0xFFFFFFFF;
/// SVG document of a training step as above, with each operator in the colour of its group and the
/// group's number next to it. There are twelve colours in turn; operators outside groups are white.
/// `groups` has one entry per operator.
std::string graph_svg(const TrainingGraph& step, const std::vector<std::uint32_t>& groups);

} // namespace monet
