// JSON files that users give.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace monet::cli {

/// InputError with the place where it is not JSON, or is nested deeper than any result.
nlohmann::ordered_json read_json(const std::string& path);

} // namespace monet::cli
