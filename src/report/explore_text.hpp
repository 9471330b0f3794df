// Texts for designs of an exploration, shared by its tables and comparisons.
#pragma once

#include "base/shared/pareto.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace monet::explore_text {

/// JSON key of an objective's figure in a design; for latency, the key of its cycles.
const char* key_of(const std::string& objective);
/// Fraction of the box from `best` to `worst` that the points dominate; objectives in which both
/// are equal do not count. Null for more than 20,000 points, or 1,000 with four objectives, since
/// the time then grows with the cube of their number.
nlohmann::ordered_json part_of_box(std::vector<Objectives> points, const Objectives& best,
                                   const Objectives& worst);
/// Value of an objective in a design, with its unit; "-" if it is unknown.
std::string value(const nlohmann::ordered_json& design, const std::string& objective);
std::string parameter(const nlohmann::ordered_json& value);
/// Parameters of a design: "pe_x 4, pe_y 2".
std::string parameters(const nlohmann::ordered_json& design);

} // namespace monet::explore_text
