// Comparisons of results of one kind: steps (result.json) or cluster steps (cluster.json).
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace monet {

/// A result to compare, with the text that stands for it.
struct ComparedResult {
  std::string label;
  const nlohmann::ordered_json* json = nullptr;
};

/// Compares two or more results, described by docs/comparison.schema.json: totals, causes, phases
/// and layers with one value per result, and the settings that differ. Layers are matched by name
/// and phase, and sorted by the difference of the last result from the first. Cycles of causes,
/// phases and layers sum up to the latency of each result. Throws InputError for results of
/// different kinds, and for those that lack a key.
nlohmann::ordered_json result_comparison_json(const std::vector<ComparedResult>& results);

/// Tables of a comparison, with at most `layers` layers.
std::string result_comparison_table(const nlohmann::ordered_json& comparison, std::size_t layers);
/// Rows of totals, causes, phases and layers: what, name, unit, and a column per result.
std::string result_comparison_csv(const nlohmann::ordered_json& comparison);

} // namespace monet
