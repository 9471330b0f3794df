// For passes that write a graph anew, operator by operator.
#pragma once

#include "monet/workload/graph.hpp"

#include <string>
#include <unordered_set>

namespace monet {

/// Name, inputs, outputs and all tensors, which keep their ids; no operator.
Graph without_operators(const Graph& graph);

/// `name`, or "name.2", "name.3", ... where it is taken; then taken itself.
std::string unique_name(std::unordered_set<std::string>& taken, const std::string& name);

} // namespace monet
