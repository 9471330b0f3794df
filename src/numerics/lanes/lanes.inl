// The inner loops, for vectors of MONET_LANE_BYTES. One file per instruction set includes this
// file, with its specific compiler options. Headers included here must not define functions that
// other files share, so everything is in an anonymous namespace.
#include "numerics/shared/panel.hpp"

#if MONET_LANE_BYTES == 64
#include <immintrin.h>
#endif

namespace monet::lanes {
namespace {

// Each part depends on those before it.
// clang-format off
#include "numerics/lanes/vectors.inl"
#include "numerics/lanes/operations.inl"
#include "numerics/lanes/panels.inl"
#include "numerics/lanes/arrays.inl"
#include "numerics/lanes/operands.inl"
// clang-format on

constexpr Kernels kKernels{
    MONET_LANES_NAME,      &panel_kernel<float>,   &panel_kernel<double>, &pairs_kernel<float>,
    &pairs_kernel<double>, &blocks_kernel,         &largest_kernel,       &scaled_round_kernel,
    &round_kernel,         &round_mantissa_kernel, &narrow_kernel,        &facts_kernel,
    &read_kernel};

} // namespace

const Kernels& MONET_LANES_FUNCTION() {
  return kKernels;
}

} // namespace monet::lanes
