// What `monet core` found, as JSON and as a table.
#pragma once

#include "core_layers.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace monet::cli {

struct LayerCost {
  const Layer* layer = nullptr;
  const CoreCost* cost = nullptr;
};

nlohmann::ordered_json core_json(const CoreInputs& inputs, const std::vector<LayerCost>& costs,
                                 const CoreArguments& arguments);
/// At most 120 columns wide.
std::string core_table(const nlohmann::ordered_json& json);

} // namespace monet::cli
