// What is derived from a timeline once all its runs and transfers are known.
#pragma once

#include "monet/schedule/schedule.hpp"

#include <cstdint>
#include <limits>
#include <vector>

namespace monet {

/// Fills phases, live, peak and makespan from runs and transfers (src/schedule/place/liveness.cpp).
void add_phases(const TrainingGraph& step, Timeline& timeline);
void add_liveness(const TrainingGraph& step, Timeline& timeline);

/// Cycles [begin, end) in which something is there.
struct TensorLife {
  std::int64_t begin = std::numeric_limits<std::int64_t>::max();
  std::int64_t end = 0;
};
/// Per tensor that shares no other's storage: from the first write (0 when nobody writes it) to the
/// end of the last reader, of what shares its storage as well.
std::vector<TensorLife> tensor_lives(const Graph& graph, const Timeline& timeline);

} // namespace monet
