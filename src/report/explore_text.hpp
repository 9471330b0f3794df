// Designs of an exploration as people read them.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace monet::explore_text {

/// Of a design's figures; "-" where it is not known.
std::string value(const nlohmann::ordered_json& design, const std::string& objective);
std::string parameter(const nlohmann::ordered_json& value);
/// "pe_x 4, pe_y 2".
std::string parameters(const nlohmann::ordered_json& design);

} // namespace monet::explore_text
