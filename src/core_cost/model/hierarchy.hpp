// The memories of a core as one problem uses them: which levels hold which operand, in the order
// they are filled.
//
// Three differences from the core's file: a memory narrower than one element of an operand is
// bypassed by that operand (ModelChoices::bypass_narrow_memories), a further input of one memory
// operand uses the top memory only, and operands marked off-chip get one more level on top, the
// off-chip memory, which costs nothing here.
#pragma once

#include "core_cost/model/nest_model.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace monet::core_cost_detail {

inline constexpr std::size_t kMaxLevels =
    6; ///< memories above one another for one operand, off-chip included
inline constexpr std::size_t kMaxArrayDims = 8;

constexpr std::size_t index_of(Direction direction) {
  return static_cast<std::size_t>(direction);
}

/// Bits that pass at once. Divides faster where it is a power of two, as it mostly is.
struct Width {
  std::int64_t bits = 0;
  int shift = -1; ///< log2(bits), or -1

  Width() = default;
  explicit Width(std::int64_t width);
  /// How many passes `amount` bits take.
  std::int64_t passes(std::int64_t amount) const {
    return shift >= 0 ? (amount + bits - 1) >> shift : ceil_div(amount, bits);
  }
};

/// Where one operand meets one memory.
struct Level {
  std::size_t node = 0;                                  ///< index into Hierarchy::nodes
  std::array<std::int32_t, kDirections> port{};          ///< index into Hierarchy::ports, -1 = none
  std::array<std::int64_t, kDirections> bandwidth_min{}; ///< bits per cycle, 0 = no port
  std::array<std::int64_t, kDirections> bandwidth_max{};
  std::array<Width, kDirections> least{};      ///< bandwidth_min
  std::array<double, kDirections> min_share{}; ///< bandwidth_min / bandwidth_max
};

struct NodeUse {
  std::size_t operand = 0;
  std::size_t level = 0; ///< of that operand
  bool top = false;      ///< the operand's outermost level
};

struct Node {
  const Memory* memory = nullptr; ///< null for the off-chip level
  double size_bits = 0;
  std::array<bool, kMaxArrayDims> serves{};
  std::vector<NodeUse> uses; ///< in the order of the memory's `operands`
  bool innermost = false;    ///< no memory below it
  double read_pj = 0;
  double write_pj = 0;
};

/// One activity of a physical port: data of an operand in one direction at one level.
struct PortActivity {
  std::size_t operand = 0;
  std::size_t level = 0;
  Direction direction = Direction::fh;
  bool reads_back = false; ///< partial sums on their way down
};

struct Port {
  std::int64_t bandwidth_max = 0;
  Width width;                   ///< the same
  bool shared_by_inputs = false; ///< serves two input memory operands
  bool in_unit = false; ///< of a memory inside a unit of KernelCosts, where nothing waits for it
  /// Sorted by operand as the memory lists them, then by direction as the ports list them. Ties
  /// between loads are resolved in this order.
  std::vector<PortActivity> activities;
};

/// Cycles that the core's instructions or kernels take for one problem, for any mapping.
struct ProgramCycles {
  bool any = false;
  double per_iteration = 1; ///< minimum per iteration of the temporal loops
  double per_sum = 0;       ///< per output element of a lane
  double least = 0;         ///< minimum from the first MAC to the last
  double before = 0;        ///< before the first MAC
  double per_slice = 0;     ///< per slice read from or written to off-chip memory
};

struct Hierarchy {
  std::vector<Node> nodes; ///< topological order, bottom-up
  std::vector<Port> ports;
  std::vector<std::vector<Level>> levels; ///< [operand][level], bottom-up
  std::size_t array_dims = 0;
  std::array<std::int64_t, kMaxArrayDims> array_size{};
  std::array<bool, kMaxArrayDims> sums{}; ///< see ArrayDim::sums
  double mac_energy_pj = 0;
  std::shared_ptr<const ImcArray> imc; ///< see Core::imc
  std::int64_t wave_cycles = 1;        ///< cycles of one iteration of the temporal loops
  ProgramCycles program;               ///< of CoreProgram
  bool part_words_cost = true;         ///< see ModelChoices

  bool is_offchip(std::size_t operand, std::size_t level) const {
    return nodes[levels[operand][level].node].memory == nullptr;
  }
};

/// InfeasibleError when an operand has no level left: names operand, memory and bits.
Hierarchy make_hierarchy(const CoreProblem& problem, const NestModel& model, const Core& core);

} // namespace monet::core_cost_detail
