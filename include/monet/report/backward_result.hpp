// What `monet backward` found, as JSON (docs/backward.schema.json) and as tables; its
// studies (study.json) as tables.
#pragma once

#include "monet/core_cost/backward_network.hpp"
#include "monet/report/result.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace monet {

/// Layers of a network mapped by a plan, borrowed for writing.
struct BackwardResult {
  const GemmNetwork* network = nullptr;
  const BackwardPlan* plan = nullptr;
  const std::vector<BackwardLayer>* layers = nullptr;
};

/// `techniques` by name and the bound, for the network and for every layer.
nlohmann::ordered_json backward_json(const BackwardResult& result, const Provenance& provenance);

/// A line for every layer with the time of every technique as a part of the first one's, and a
/// table of the techniques in total. At most 120 columns wide.
std::string backward_table(const nlohmann::ordered_json& json);

/// What the paper finds, and whether the study's figures say so, too: a list of `text` and `holds`
/// (null where figures that it needs are not there).
nlohmann::ordered_json backward_study_statements(const nlohmann::ordered_json& study);

/// Every figure beside the published one with its range, the statements, the choices.
std::string backward_study_table(const nlohmann::ordered_json& study);

/// A line for every figure, a column for every assumption.
std::string backward_figures_csv(const nlohmann::ordered_json& study);
/// A line for every network, machine and technique.
std::string backward_networks_csv(const nlohmann::ordered_json& study);

} // namespace monet
