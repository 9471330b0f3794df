// Checks the dataflow of every core against the loops of a workload and the width of the array.
// Runs after chip and workload are read and reports problems with a hint.
#include "base/shared/text.hpp"

#include "monet/hardware/chip.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <vector>

namespace monet {

namespace {

constexpr std::array<std::string_view, 15> kCommonLoops{
    "B", "G", "K", "C", "D", "H", "OX", "OY", "OZ", "FX", "FY", "FZ", "IX", "IY", "IZ"};

std::string hint(std::string_view name, const LoopNames& workload) {
  if (name.size() < 2)
    return {}; // one letter is near to any other
  std::vector<std::string> candidates(kCommonLoops.begin(), kCommonLoops.end());
  candidates.insert(candidates.end(), workload.begin(), workload.end());
  return nearest_name_hint(name, candidates);
}

/// Whether the loop occurs in convolutions or products, so that a dataflow may name it always.
bool is_common_loop(std::string_view name) {
  return std::ranges::find(kCommonLoops, name) != kCommonLoops.end();
}

} // namespace

void check_loops(std::span<const Unrolling> unrollings, const LoopNames& workload,
                 const SourceLoc& where, ProblemList& problems) {
  for (const Unrolling& unrolling : unrollings) {
    if (!is_common_loop(unrolling.dim) && !workload.contains(unrolling.dim)) {
      problems.add(where, fmt::format("no layer has a loop '{}'", unrolling.dim),
                   hint(unrolling.dim, workload));
    }
  }
}

void check_loops(const Chip& chip, const LoopNames& workload, ProblemList& problems) {
  std::set<std::string> told; // reports cores of one file once
  for (const Core& core : chip.cores) {
    if (!told.insert(core.dataflow_where.to_string()).second)
      continue;
    for (const std::vector<Unrolling>& unrollings : core.dataflow)
      check_loops(unrollings, workload, core.dataflow_where, problems);
  }
}

void check_width(std::span<const Unrolling> unrollings, const ArrayDim& dim, const SourceLoc& where,
                 ProblemList& problems) {
  std::int64_t left = dim.size;
  std::string loops;
  for (const Unrolling& unrolling : unrollings) {
    left /= unrolling.factor;
    loops +=
        fmt::format("{}'{}, {}'", loops.empty() ? "" : " and ", unrolling.dim, unrolling.factor);
  }
  if (left == 0)
    problems.add(where, fmt::format("{} do not fit on '{}' of the array, of size {}", loops,
                                    dim.name, dim.size));
}

} // namespace monet
