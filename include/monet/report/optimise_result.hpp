// What a search changed, as numbers and pictures: steps side by side, memory before and after,
// groups on the graph.
#pragma once

#include "monet/report/result.hpp"
#include "monet/training_graph/training.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace monet {

/// Live bytes of a modelled step by owner over time: name, unit ("cycle"), at, and the bytes that
/// hold from each moment to the next. At most 1,000 moments, each the fullest of those it stands
/// for.
nlohmann::ordered_json memory_over_time_json(const std::string& name, const Timeline& timeline);

/// name, latency_cycles, energy_pj, offchip_bytes (read and written), peak_memory_bytes,
/// stored_activations_bytes.
nlohmann::ordered_json figures_json(const std::string& name, const StepFigures& figures);
/// Rows of figures_json() side by side, with what each is of the first row's.
std::string compared_table(const nlohmann::ordered_json& rows);

/// Per operator the number of its stack, from 0 in the operators' order; kAlone where it has its
/// stack for itself.
std::vector<std::uint32_t> groups_of(const TileGraph& tiles);

/// The `optimise` part of result.json: `searches` (results of monet optimise, in the order they
/// ran), `interrupted`, `worse` (objectives of the searches in which the step after them is worse
/// than before, with both values), `compared`, `memory` and, for a fused step of at most 4,000
/// operators, `picture`: an SVG document of the groups on the graph.
struct OptimisedStep {
  std::vector<nlohmann::ordered_json> searches;
  StepResult before;
  StepResult after;
  bool interrupted = false; ///< a limit ended a part of the searches
};
nlohmann::ordered_json optimise_json(const OptimisedStep& optimised, const Chip& chip);
/// The line that a table begins with where `worse` of optimise_json() has entries; else nothing.
std::string worse_text(const nlohmann::ordered_json& optimise);

/// A picture of a training step, forward, backward and update side by side: an SVG document. Each
/// forward operator is a row; its gradients and updates lie in the columns to its right, so that
/// data flows down through the forward pass, across where a tensor is stored, and up through the
/// backward pass. Meant for steps whose views are folded. Names are escaped.
std::string graph_svg(const TrainingGraph& step);

/// Not part of any group.
inline constexpr std::uint32_t kAlone = 0xFFFFFFFF;
/// The same with each operator in the colour of its group and the group's number beside it: one of
/// twelve colours in turn, white where the operator is on its own. `groups`: one entry per
/// operator.
std::string graph_svg(const TrainingGraph& step, const std::vector<std::uint32_t>& groups);

} // namespace monet
