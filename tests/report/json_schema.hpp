// Validates JSON against the keywords that docs/result.schema.json uses. An unknown keyword is an
// error, so that the schema cannot say more than is checked.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace monet::test {

/// Every violation as "/path: what"; empty when valid.
std::vector<std::string> schema_violations(const nlohmann::json& schema,
                                           const nlohmann::json& value);

} // namespace monet::test
