// The order in which ZigZag takes the layers of a network, and so adds up their costs.
#pragma once

#include <cstddef>
#include <vector>

namespace monet::core_cost_detail {

/// `parents` by layer, all listed before it. Generation by generation: first those without parents,
/// then those whose last parent was just taken, in the order in which they become free.
std::vector<std::size_t> by_generation(const std::vector<std::vector<std::size_t>>& parents);

} // namespace monet::core_cost_detail
