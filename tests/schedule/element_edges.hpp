// Dependencies between tiles found by looking at every element of every tensor.
#pragma once

#include "schedule/plain.hpp"

#include <optional>
#include <string>

namespace monet::testing {

/// What is wrong with the edges; nothing when they are right. Right is: exactly the pairs of tiles
/// of which one reads an element that the other wrote last, with the bits of those elements. Where
/// a reader's or a writer's elements have gaps (a stride), an edge may count the box around them
/// instead. `recomputed`: several tiles may make an element, each for itself, and a reader takes it
/// from any of them.
std::optional<std::string> wrong_edges(const PlainTiles& tiles, const Graph& graph,
                                       bool recomputed = false);

/// Iterations that wrong_edges() walks through.
std::int64_t effort_of_edges(const Graph& graph);

} // namespace monet::testing
