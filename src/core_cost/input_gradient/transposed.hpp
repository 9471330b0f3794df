// Products that scatter: dX of a convolution, or a transposed convolution, whose output has shared
// axes (dX[s*OY + d*FY + offset] += dY[OY] * W[FY]). Rewrites such a problem into ones whose output
// is visited in order:
//   zero-inserted  dX[x] += dYup[x - d*FY - offset] * W[FY], dYup = dY with s - 1 zeros in between
//   decomposed     per residue class r of x modulo s a convolution of stride 1 over the taps that
//                  meet the class: dX[r + s*q] += dY[q - d/g*t + shift] * W[f0 + s/g*t], g = gcd(s,
//                  d)
// Nothing here knows costs. Several axes are rewritten alike, each by itself.
#pragma once

#include "monet/core_cost/core_cost.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace monet::core_cost_detail {

/// Shared axis of the output: stride * position + dilation * tap + offset.
struct TransposedAxis {
  std::size_t output_axis = 0;
  std::size_t gradient_axis = 0; ///< axis of dY with only the position loop
  std::size_t weight_axis = 0;   ///< axis of W with only the tap loop
  std::uint32_t position = 0;    ///< loop over dY
  std::uint32_t tap = 0;         ///< loop over the kernel
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  std::int64_t offset = 0;
  std::int64_t begin = 0; ///< output elements that products reach: [begin, end)
  std::int64_t end = 0;
};

struct Transposed {
  std::size_t output = 0; ///< index of the problem's operand
  std::size_t gradient = 0;
  std::size_t weight = 0;
  std::vector<TransposedAxis> axes;
  bool strided = false; ///< some axis has a stride, so zeros would be inserted
};

/// Scatter of a multiply-accumulate problem. Nothing if its output is visited in order already, or
/// if the loops of a shared output axis are not alone on one axis each of two different inputs.
std::optional<Transposed> find_transposed(const CoreProblem& problem);

/// Gather form over dY with inserted zeros. Loops keep their indices and names, so a dataflow of
/// the core still applies; a position loop now runs over elements of dX. The extents of dY include
/// the zeros.
CoreProblem zero_inserted(const CoreProblem& problem, const Transposed& transposed);

/// Position of a sub-convolution on one axis. Its output element q, tap t and dY index i are
/// first_output + stride * q, first_tap + tap_step * t and i + first_gradient in the original
/// problem.
struct SubAxis {
  std::int64_t first_output = 0;
  std::int64_t first_tap = 0;
  std::int64_t tap_step = 1;
  std::int64_t first_gradient = 0;
};

/// Stride-1 convolution on separate dense operands.
struct SubConvolution {
  CoreProblem problem;
  std::vector<SubAxis> axes; ///< as Transposed::axes
};

/// One sub-convolution per residue class that a tap meets, by rising residues with the last axis
/// fastest. Empty if there would be more than kMaxSubConvolutions.
inline constexpr std::size_t kMaxSubConvolutions = 4096;
std::vector<SubConvolution> decompose(const CoreProblem& problem, const Transposed& transposed);

} // namespace monet::core_cost_detail
