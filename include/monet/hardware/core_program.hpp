// What cores take that are programmed: processors issue instructions beside the products of their
// lanes, and a GPU is given kernels. Keys `issue` and `kernels` of a core file; equations are in
// docs/explanation/lanes-and-processors.md.
#pragma once

#include "monet/hardware/tile_waves.hpp"

#include <cstddef>
#include <optional>

namespace monet {

/// Processors whose lanes do a product in an instruction among others. Cycles are those of a lane,
/// and lanes share the work: an instruction of two lanes counts for both.
struct IssueCosts {
  double cycles_per_mac = 1; ///< issued in the innermost loop, loads and pointers included
  double loop_overhead = 0;  ///< for each sum: setting up its loop, storing what comes out
  double im2col = 0;         ///< for each element that is copied to unfold windows
  /// Cycles of the core for each slice that passes by, and for each other operand of a tile.
  double dma_setup = 0;
};

/// Units of an array that take tiles of a result, and the host that starts every operator.
struct KernelCosts {
  std::size_t unit_dim = 0; ///< array dim that counts the units
  TileWaves waves;          ///< of as many units; shares include what memories inside a unit give
  double sustained = 1;     ///< of the array's peak, what long runs keep
  double host_cycles = 0;   ///< of the core, for each kernel that is started and waited for
};

struct CoreProgram {
  std::optional<IssueCosts> issue;
  std::optional<KernelCosts> kernels;
};

} // namespace monet
