// Sets energies and areas of cores, memories and links that hardware files do not set.
// The readers call price() last.
#include "hardware/pricing.hpp"

#include "hardware/shared/array_modes.hpp"
#include "hardware/shared/memory_model.hpp"
#include "hardware/shared/technology.hpp"

#include "monet/base/errors.hpp"
#include "monet/hardware/imc_array.hpp"
#include "monet/hardware/mac_design.hpp"

#include <algorithm>

namespace monet {

namespace {

/// Bits of the widest read port and the widest write port; if one kind is absent, both are equal.
struct WordBits {
  std::int64_t read = 0;
  std::int64_t write = 0;
};

WordBits words_of(const Memory& memory) {
  WordBits words;
  for (const MemoryPort& port : memory.ports) {
    if (port.type != PortType::write)
      words.read = std::max(words.read, port.bandwidth_max);
    if (port.type != PortType::read)
      words.write = std::max(words.write, port.bandwidth_max);
  }
  words.read = words.read > 0 ? words.read : std::max<std::int64_t>(words.write, 1);
  words.write = words.write > 0 ? words.write : words.read;
  return words;
}

void price_dram(Memory& memory) {
  const DramKind* kind = find_dram_kind(memory.dram_kind.empty() ? kDefaultDram : memory.dram_kind);
  internal_check(kind != nullptr, "a kind of DRAM that the reader should reject");
  const WordBits words = words_of(memory);
  memory.read_energy_pj = kind->pj_per_bit * static_cast<double>(words.read);
  memory.write_energy_pj = kind->pj_per_bit * static_cast<double>(words.write);
  ModelledMemory& model = memory.modelled.emplace();
  model.kind = kind->name;
  model.word_bits = std::max(words.read, words.write);
  model.ports = static_cast<int>(memory.ports.size());
  model.pj_per_bit = kind->pj_per_bit;
}

void price_sram(Memory& memory, double node_nm) {
  const WordBits words = words_of(memory);
  MemoryQuery query;
  query.size = memory.size;
  query.node_nm = node_nm;
  query.ports = std::max(1, static_cast<int>(memory.ports.size()));
  query.word_bits = std::min(words.read, words.write);
  const MemoryCost narrow = memory_cost(query);
  query.word_bits = std::max(words.read, words.write);
  const MemoryCost wide = memory_cost(query);
  // An array is built for its wider word.
  memory.read_energy_pj = (words.read < words.write ? narrow : wide).figures.read_pj;
  memory.write_energy_pj = (words.write < words.read ? narrow : wide).figures.write_pj;
  memory.area_mm2 = wide.figures.area_mm2;
  ModelledMemory& model = memory.modelled.emplace();
  model.kind = wide.registers ? "registers" : "sram";
  model.node_nm = node_nm;
  model.word_bits = query.word_bits;
  model.ports = query.ports;
  model.macros = wide.macros;
  model.wiring_pj = wide.wiring_pj;
  model.access_ns = wide.figures.access_ns;
  model.monolithic_read_pj = wide.monolithic.read_pj;
  model.monolithic_write_pj = wide.monolithic.write_pj;
  model.monolithic_area_mm2 = wide.monolithic.area_mm2;
}

/// Prices one multiply-accumulate. A lane of a vector core works in one format; a pooling core
/// compares, which costs an addition.
void price_array(Core& core, double node_nm) {
  if (core.mac) {
    const ArithmeticCost cost = mac_cost(*core.mac, node_nm);
    core.mac_energy_pj = cost.energy_pj();
    core.array_area_mm2 = cost.area_mm2();
    core.mac_parts = cost;
    return;
  }
  const auto format = parse_number_format(core.array_format);
  internal_check(format.has_value(), "a number format that the reader should reject");
  const FormatShape product = shape_of(*format);
  const auto given = parse_number_format(core.accumulate_format);
  const FormatShape sum = given                          ? shape_of(*given)
                          : core.kind == CoreKind::array ? default_accumulator(product)
                                                         : product;
  ArithmeticCost cost = mac_cost(product, sum, node_nm);
  if (core.kind == CoreKind::pooling)
    cost.multiply_pj = cost.multiply_mm2 = 0;
  core.mac_energy_pj = cost.energy_pj();
  core.array_area_mm2 = cost.area_mm2();
}

/// Prices a mode by its most expensive format, for the core's unit with operands in that format.
void price_mode(const Core& core, double node_nm, ArrayMode& mode) {
  mode.energy_pj = 0;
  for (const TensorFormat& format : mode.formats) {
    MacDesign design = core.mac ? *core.mac : MacDesign{};
    design.multiply = format.element;
    if (!core.mac)
      design.accumulate = parse_number_format(core.accumulate_format);
    mode.energy_pj = std::max(mode.energy_pj, mac_cost(design, node_nm).energy_pj());
  }
}

/// Prices the weights of all elements of a macro as one SRAM array, of which each element has its
/// share. A word is a row of weights. Energies in the file take precedence.
void price_cells(const ImcArray& imc, Memory& memory) {
  constexpr double kNode = 28; // of all other parts
  const double elements = static_cast<double>(imc.columns * imc.rows);
  MemoryQuery query;
  query.size = {imc.columns * imc.rows * imc.cell_bits};
  query.node_nm = kNode;
  query.ports = std::max(1, static_cast<int>(memory.ports.size()));
  query.word_bits = imc.columns * imc.weight_bits;
  const MemoryCost cost = memory_cost(query);
  memory.area_mm2 = cost.figures.area_mm2 / elements;
  if (memory.write_energy_pj == 0)
    memory.write_energy_pj = cost.figures.write_pj / static_cast<double>(imc.columns);
}

/// Sets the area of the cells and the figures that follow from it and from the sizes read before.
void price_imc(Core& core) {
  ImcArray imc = *core.imc;
  Memory& cells = core.memories[imc.cells];
  if (cells.automatic_cost)
    price_cells(imc, cells);
  imc.cell_area_mm2 = cells.area_mm2;
  core.mac_energy_pj = min_imc_energy_pj(imc);
  core.array_area_mm2 = imc_area_mm2(imc).total() / static_cast<double>(core.lanes());
  core.imc = std::make_shared<const ImcArray>(imc);
}

} // namespace

bool is_modelled_dram(const Memory& memory) {
  return !memory.dram_kind.empty() || memory.name.starts_with("dram") ||
         memory.name.starts_with("offchip");
}

void price(Core& core, double node_nm) {
  const double node = core.technology_nm > 0 ? core.technology_nm
                      : node_nm > 0          ? node_nm
                                             : kDefaultNode;
  for (Memory& memory : core.memories) {
    const bool cells = core.imc != nullptr && &memory == &core.memories[core.imc->cells];
    if (!memory.automatic_cost || cells)
      continue;
    if (core.kind == CoreKind::offchip || is_modelled_dram(memory))
      price_dram(memory);
    else
      price_sram(memory, node);
  }
  if (core.imc != nullptr)
    price_imc(core);
  if (core.automatic_array_cost)
    price_array(core, node);
  auto made = std::make_shared<std::vector<Core>>();
  for (ArrayMode& mode : core.modes) {
    if (mode.automatic_cost)
      price_mode(core, node, mode);
    made->push_back(in_mode(core, mode));
  }
  core.in_modes = core.modes.empty() ? nullptr : std::move(made);
}

void price(Chip& chip) {
  for (Core& core : chip.cores)
    price(core, chip.technology_nm);
  const double node = chip.technology_nm > 0 ? chip.technology_nm : kDefaultNode;
  for (Link& link : chip.links)
    link.energy_pj_per_bit += link.length_mm * wire_pj_per_bit_mm(node);
}

} // namespace monet
