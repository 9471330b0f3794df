// Both gradients of a layer, part by part of one loop that they share.
#pragma once

#include "core_cost/scatter/apart.hpp"

#include <cstdint>
#include <optional>

namespace monet::core_cost_detail {

/// The products of the problem for one part of loop `dim` after the other: in as few equal parts as
/// fit. An operand with the loop passes slice by slice, twice the room of a slice being taken, so
/// that the next is brought while one is worked on, and all products meet the slice: what both read
/// crosses once. An operand without the loop stays from the first part to the last, partial sums in
/// their width, and crosses once. So streamed operands move no more than each has elements, halos
/// aside. nullopt where the loop is no such: a result's windows overlap along it, an access is data
/// dependent or opaque, what stays does not fit, or nothing is streamed.
std::optional<CoreCost> cost_in_parts(const CoreProblem& problem, std::uint32_t dim,
                                      const Core& core, const CoreCostOptions& options,
                                      const Solver& solve);

} // namespace monet::core_cost_detail
