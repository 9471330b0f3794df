// Every field of a core as text, so that two cores compare equal or show where they differ.
#pragma once

#include "monet/hardware/core.hpp"

#include <fmt/format.h>

#include <string>

namespace monet {

inline std::string text_of(const Core& core) {
  std::string text = fmt::format("{} kind {} mac {} area {} vector {} {} {}\n", core.name,
                                 static_cast<int>(core.kind), core.mac_energy_pj,
                                 core.array_area_mm2, core.runs_vector_operators,
                                 core.cycles_per_transcendental, core.cycles_per_divide);
  for (const Memory& m : core.memories) {
    text += fmt::format("{} {} bits {} {} pJ area {} leak {} auto {} nv {} operands", m.name,
                        m.size.value, m.read_energy_pj, m.write_energy_pj, m.area_mm2,
                        m.leakage_pj_per_cycle, m.automatic_cost, m.non_volatile);
    for (const MemoryOperand o : m.operands)
      text += fmt::format(" {}", static_cast<int>(o));
    text += " serves";
    for (const bool serves : m.serves)
      text += fmt::format(" {}", serves);
    for (const MemoryPort& p : m.ports) {
      text += fmt::format("\n  {} type {} {}..{}:", p.name, static_cast<int>(p.type),
                          p.bandwidth_min, p.bandwidth_max);
      // In a fixed order: the two schemas list uses differently.
      for (int operand = 0; operand < kMemoryOperands; ++operand) {
        for (int direction = 0; direction < kDirections; ++direction) {
          for (const PortUse& use : p.allocation) {
            if (static_cast<int>(use.operand) == operand &&
                static_cast<int>(use.direction) == direction) {
              text += fmt::format(" {}/{}", operand, direction);
            }
          }
        }
      }
    }
    text += "\n";
  }
  for (std::size_t d = 0; d < core.array.size(); ++d) {
    text += fmt::format("{} {}:", core.array[d].name, core.array[d].size);
    if (d < core.dataflow.size()) {
      for (const Unrolling& u : core.dataflow[d])
        text += fmt::format(" {} {}", u.dim, u.factor);
    }
    text += "\n";
  }
  return text;
}

} // namespace monet
