// The tables of the searches of a step, each defined at the top of its search's file.
#pragma once

#include "monet/optimise/search.hpp"

namespace monet {

extern const SearchInfo kAllocationSearch;
extern const SearchInfo kFusionSearch;
extern const SearchInfo kCheckpointSearch;
extern const SearchInfo kJointSearch;

} // namespace monet
