// Which sizes of a transformer fit each other.
#pragma once

#include "monet/workload/transformer.hpp"

#include <functional>
#include <string_view>

namespace monet::transformer {

/// Where the value of a key is, for messages.
using PlaceOf = std::function<SourceLoc(std::string_view key)>;

/// Reports all that is out of range or does not divide.
void check_shape(const TransformerShape& shape, const PlaceOf& place_of, ProblemList& problems);

} // namespace monet::transformer
