// Loops unrolled on the array, and what that means for each operand at each of its memory levels.
#pragma once

#include "core_cost/model/hierarchy.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace monet::core_cost_detail {

inline constexpr std::size_t kMaxSpatialLoops =
    12; ///< unrolled loops between two levels of one operand
inline constexpr std::size_t kMaxTemporalLoops = 24;

/// Whole unroll factors per array dim, as the user or the generator chose them.
struct Unrolled {
  std::uint32_t dim = 0;
  std::int64_t factor = 1;
};
using ArrayUnrolling = std::vector<std::vector<Unrolled>>; ///< [array dim]

struct LoopList {
  std::array<Loop, kMaxSpatialLoops> loops;
  std::size_t size = 0;

  const Loop* begin() const { return loops.data(); }
  const Loop* end() const { return loops.data() + size; }
};

/// Unrolled loops of one operand. List l sits between memory level l-1 (or the multipliers) and
/// level l; the last list, above the top level, is what no level of the operand serves.
struct OperandUnrolling {
  std::array<LoopList, kMaxLevels + 1> lists;
  std::array<double, kMaxLevels + 1> units{};       ///< instances seen from list l upwards
  std::array<std::int64_t, kMaxLevels + 1> boost{}; ///< distinct data per broadcast through list l
};

/// One numeric form of a spatial mapping: exact factors (energy) or whole ones (latency).
struct SpatialForm {
  std::vector<std::vector<Loop>> loops; ///< [array dim]
  std::array<OperandUnrolling, kMaxOperands> operands;
  bool fractional = false; ///< some factor is
};

struct SpatialModel {
  SpatialForm exact;                  ///< fractional: K=1000 on 32 lanes is 31.25 wide in 32 steps
  SpatialForm truncated;              ///< 32 wide, or 31 without ModelChoices::widest_step
  bool same = true;                   ///< both forms are equal
  std::vector<std::int64_t> temporal; ///< iterations left per dim
  double issued = 0;                  ///< cycles of instructions from the first MAC to the last
  ImcWork imc;                        ///< of an array that computes in memory, reads left out
  double compute_pj = 0;              ///< of all multiply-accumulates, precharging left out
};

SpatialModel make_spatial_model(const NestModel& model, const Hierarchy& hierarchy,
                                const ArrayUnrolling& unrolling);

} // namespace monet::core_cost_detail
