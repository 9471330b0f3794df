// Instruction and kernel costs of programmed cores: processors issue further instructions besides
// the products of their lanes, and GPUs run kernels. Keys `issue` and `kernels` of a core file;
// equations are in docs/explanation/lanes-and-processors.md.
#pragma once

#include "monet/hardware/core.hpp"

#include <cstddef>
#include <optional>

namespace monet {

/// Instruction costs of a processor. Cycles are those of a lane, and lanes share the work: an
/// instruction that occupies two lanes counts for both.
struct IssueCosts {
  double cycles_per_mac = 1; ///< issued in the innermost loop, including loads and pointers
  double loop_overhead = 0;  ///< cycles per sum: loop setup and storing the result
  double im2col = 0;         ///< cycles per element copied to unfold windows
  /// Setup cycles of the core for each streamed slice, and for each other operand of a tile.
  double dma_setup = 0;
};

/// Kernel costs of an array whose units compute tiles of a result, including the host that launches
/// operators.
struct KernelCosts {
  std::size_t unit_dim = 0; ///< array dim that counts the units
  TileWaves waves;          ///< tiles of these units; shares include memories within a unit
  double sustained = 1;     ///< share of the array's peak that long runs sustain
  double host_cycles = 0;   ///< cycles of the core to launch a kernel and wait for it
};

/// Program costs of a core: instructions, kernels or neither.
struct CoreProgram {
  std::optional<IssueCosts> issue;
  std::optional<KernelCosts> kernels;
};

} // namespace monet
