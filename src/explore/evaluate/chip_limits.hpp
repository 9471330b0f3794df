// What budgets say of a design's chips.
#pragma once

#include "monet/explore/design.hpp"
#include "monet/explore/space.hpp"
#include "monet/hardware/chip.hpp"

#include <string>

namespace monet {

/// Gives the result area and power of so many chips; the reason why the budgets exclude them, or
/// nothing. Off-chip bandwidth is that of one.
std::string judge_chips(const Chip& chip, double count, const DesignBudgets& budgets,
                        DesignResult& result);

} // namespace monet
