// Strategies to choose from, as an experiment lists them.
#pragma once

#include "monet/cluster/strategy.hpp"

#include <cstdint>
#include <vector>

namespace monet {

/// The strategies that are compared: every combination of these values that fits together. An empty
/// list is all values that divide what they must; of schedules, recomputation and offload all
/// kinds.
struct StrategySpace {
  std::vector<std::int64_t> data, tensor, pipeline, virtual_stages, context, expert, micro_batch;
  std::vector<std::int64_t> zero;
  std::vector<bool> sequence;
  std::vector<PipelineKind> schedule;
  std::vector<RecomputeKind> recompute;
  std::vector<OffloadKind> offload;
  std::int64_t global_batch = 1;
  bool overlap = true;
};

/// `parallel:` of an experiment where a key may be one value or a list; what is left out is free.
/// `global_batch` must be there, one number; `overlap` is one value. Unknown keys and values are
/// problems, as are values given twice.
StrategySpace read_strategy_space(const YamlNode& node, ProblemList& problems);

} // namespace monet
