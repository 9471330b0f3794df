// A study of `monet backward` (its study.json) as text and tables.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace monet {

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
