// Register files and small memories that operands pass by because one element does not fit.
#pragma once

#include "monet/tiling/tiling.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace monet {

struct BypassedMemory {
  std::string memory; ///< its name in the core's file
  std::string core;   ///< the first core of the chip that runs such a tile
  MemoryOperand operand = MemoryOperand::I1;
  std::int64_t element_bits = 0; ///< of partial sums where those stay in the memory
  std::int64_t memory_bits = 0;  ///< of the memory, less than one element
  std::int64_t operators = 0;    ///< that run like this
  OpId first;                    ///< of them
};

/// In the order of the first operator. What passes by is moved to and from the memory above for
/// every use, which costs energy and may cost time: a wider type than the chip was made for.
std::vector<BypassedMemory> bypassed_memories(const TrainingGraph& step, const TileGraph& tiles,
                                              const Chip& chip);

} // namespace monet
