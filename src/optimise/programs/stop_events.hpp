// A simplex method that looks at the control as it goes.
#pragma once

#include "monet/optimise/search.hpp"

class ClpSimplex;

namespace monet {

/// The model stops, and sets `stopped`, once the control is interrupted. Both must outlive its
/// runs.
void stop_with(ClpSimplex& model, const SearchControl& control, bool& stopped);

} // namespace monet
