// What is derived from a timeline once all its runs and transfers are known.
#pragma once

#include "monet/schedule/schedule.hpp"

namespace monet {

/// Fills phases, live, peak and makespan from runs and transfers (src/schedule/place/liveness.cpp).
void add_phases(const TrainingGraph& step, Timeline& timeline);
void add_liveness(const TrainingGraph& step, Timeline& timeline);

} // namespace monet
