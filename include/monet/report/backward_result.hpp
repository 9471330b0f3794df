// What `monet backward` found, as JSON (docs/backward.schema.json) and as tables.
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

} // namespace monet
