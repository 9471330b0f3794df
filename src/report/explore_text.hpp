// Designs of an exploration as people read them.
#pragma once

#include "base/shared/pareto.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace monet::explore_text {

/// The figure's key in a design; of the latency, in cycles.
const char* key_of(const std::string& objective);
/// Of the box from `best` to `worst`, the part that the points dominate; an objective in which the
/// two are equal does not count. Null of too many points: four objectives take the cube of their
/// number.
nlohmann::ordered_json part_of_box(std::vector<Objectives> points, const Objectives& best,
                                   const Objectives& worst);
/// Of a design's figures; "-" where it is not known.
std::string value(const nlohmann::ordered_json& design, const std::string& objective);
std::string parameter(const nlohmann::ordered_json& value);
/// "pe_x 4, pe_y 2".
std::string parameters(const nlohmann::ordered_json& design);

} // namespace monet::explore_text
