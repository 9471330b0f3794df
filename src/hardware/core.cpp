// Queries of one core: lanes, memory levels of an operand, area and memory ports.
// The readers fill the Core; cost models query it.
#include "monet/hardware/core.hpp"

#include "monet/hardware/imc_array.hpp"

#include <algorithm>

namespace monet {

std::string_view name_of(MemoryOperand operand) {
  static constexpr std::array<std::string_view, kMemoryOperands> kNames{"I1", "I2", "O"};
  return kNames.at(static_cast<std::size_t>(operand));
}

std::string_view name_of(CoreKind kind) {
  static constexpr std::array<std::string_view, kCoreKinds> kNames{"array", "vector", "pooling",
                                                                   "offchip"};
  return kNames.at(static_cast<std::size_t>(kind));
}

std::int64_t Core::lanes() const {
  std::int64_t product = 1;
  for (const ArrayDim& dim : array)
    product *= dim.size;
  return product;
}

std::vector<std::size_t> Core::levels(MemoryOperand operand) const {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < memories.size(); ++i) {
    const auto& held = memories[i].operands;
    if (std::find(held.begin(), held.end(), operand) != held.end())
      found.push_back(i);
  }
  return found;
}

const Memory* Core::top(MemoryOperand operand) const {
  const std::vector<std::size_t> found = levels(operand);
  return found.empty() ? nullptr : &memories[found.back()];
}

double Core::area_mm2() const {
  double area = array_area_mm2 * static_cast<double>(lanes());
  for (std::size_t m = 0; m < memories.size(); ++m) {
    if (imc == nullptr || m != imc->cells) // those are a part of the array
      area += memories[m].area_mm2 * static_cast<double>(instances(*this, memories[m]));
  }
  return area;
}

const MemoryPort* port_of(const Memory& memory, MemoryOperand operand, Direction direction) {
  for (const MemoryPort& port : memory.ports) {
    const PortUse use{operand, direction};
    if (std::find(port.allocation.begin(), port.allocation.end(), use) != port.allocation.end()) {
      return &port;
    }
  }
  return nullptr;
}

std::int64_t instances(const Core& core, const Memory& memory) {
  std::int64_t product = 1;
  for (std::size_t i = 0; i < core.array.size(); ++i) {
    if (i >= memory.serves.size() || !memory.serves[i])
      product *= core.array[i].size;
  }
  return product;
}

} // namespace monet
