// Time-dependent parts of a step's JSON: timeline, live memory, critical path and bounds.
// docs/reference/result.md describes them.
#pragma once

#include "schedule/shared/critical_path.hpp"

#include "monet/report/result.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstddef>

namespace monet {

/// Maximum number of rows of the timeline's lists; longer lists are thinned out, which the JSON
/// records.
struct TimelineLimits {
  std::size_t rows = 200'000;   ///< runs, and transfers
  std::size_t samples = 1'000;  ///< samples of memories over time
  std::size_t tensors = 12;     ///< tensors listed separately in memories
  std::size_t segments = 2'000; ///< segments of the critical path
};

/// Column numbers of the timeline's `runs` and `transfers`, and of the critical path's `segments`.
namespace run_column {
enum : std::size_t { core, layer, start, end };
}
namespace transfer_column {
enum : std::size_t { kind, links, layer, start, end, bits, from, to, tensor };
}
namespace segment_column {
enum : std::size_t { start, end, limit, layer };
}

nlohmann::ordered_json timeline_json(const StepResult& result, const Chip& chip,
                                     const TimelineLimits& limits = {});
/// Live memory by owner over time: cycles, and bytes by owner. Each entry is the largest of `merge`
/// consecutive samples.
nlohmann::ordered_json live_json(const Timeline& timeline, std::size_t merge);
nlohmann::ordered_json critical_path_json(const CriticalPath& path,
                                          const TimelineLimits& limits = {});
nlohmann::ordered_json bounds_json(const StepResult& result, const Chip& chip);

} // namespace monet
