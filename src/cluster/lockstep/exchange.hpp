// What a collective gives each member of a group.
#pragma once

#include "monet/workload/graph.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace monet {

/// By rank: numbers of the result. `shape` is that of every rank's operand, `held` their numbers in
/// the order of ranks, in which sums are taken.
std::vector<std::vector<double>> exchanged_numbers(const Operator& op,
                                                   std::span<const std::int64_t> shape,
                                                   std::span<const std::vector<double>> held);

} // namespace monet
