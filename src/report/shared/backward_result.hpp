// Results of `monet backward` as JSON (docs/backward.schema.json) and tables, and its studies
// (study.json) as tables and CSV.
#pragma once

#include "monet/core_cost/backward.hpp"
#include "monet/report/result.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace monet {

/// Layers of a network that a plan maps. The pointers are borrowed for writing.
struct BackwardResult {
  const GemmNetwork* network = nullptr;
  const BackwardPlan* plan = nullptr;
  const std::vector<BackwardLayer>* layers = nullptr;
};

/// JSON of the layers: `techniques` by name and the bound, for the network and for every layer.
nlohmann::ordered_json backward_json(const BackwardResult& result, const Provenance& provenance);

/// Table for a terminal, at most 120 columns wide. It has a line per layer, with the time of every
/// technique relative to the first, and the totals per technique.
std::string backward_table(const nlohmann::ordered_json& json);

/// The paper's statements and whether the study's figures confirm them: a list of `text` and
/// `holds` (null if a required figure is missing).
nlohmann::ordered_json backward_study_statements(const nlohmann::ordered_json& study);

/// Table of a study: every figure next to the published one with its range, the statements, the
/// choices.
std::string backward_study_table(const nlohmann::ordered_json& study);

/// CSV of a study's figures: a line per figure, a column per assumption.
std::string backward_figures_csv(const nlohmann::ordered_json& study);
/// CSV of a study: a line per network, machine and technique.
std::string backward_networks_csv(const nlohmann::ordered_json& study);

} // namespace monet
