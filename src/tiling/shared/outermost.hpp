// What a core holds in the memories furthest from its multipliers.
#pragma once

#include "monet/base/checked.hpp"
#include "monet/hardware/chip.hpp"

#include <algorithm>
#include <vector>

namespace monet {

/// Bits of all instances of the operands' outermost memories, each memory once.
inline std::int64_t outermost_bits(const Core& core) {
  std::vector<const Memory*> counted;
  std::int64_t bits = 0;
  for (const MemoryOperand operand : {MemoryOperand::I1, MemoryOperand::I2, MemoryOperand::O}) {
    const Memory* top = core.top(operand);
    if (top == nullptr || std::ranges::find(counted, top) != counted.end())
      continue;
    counted.push_back(top);
    bits = checked_add(bits, checked_multiply(top->size.value, instances(core, *top)));
  }
  return bits;
}

} // namespace monet
