// Reads the keys of arrays that compute in memory. core_reader.cpp and array_reader.cpp call it.
#include "base/shared/text.hpp"
#include "hardware/core_reader.hpp"
#include "hardware/shared/memory_model.hpp"

#include "monet/hardware/imc_array.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <numeric>

namespace monet {

namespace {

constexpr const char* kWeightCells = "cells";
constexpr std::int64_t kMaxBits = 64; ///< per operand
constexpr std::int64_t kMaxAdcBits = 32;

bool is_power_of_two(std::int64_t value) {
  return value > 0 && std::has_single_bit(static_cast<std::uint64_t>(value));
}

/// Reads a number of bits that must be a power of two; 1 after a problem.
std::int64_t read_bits(const YamlNode& node, std::string_view what, ProblemList& problems) {
  const auto bits = integer_within(node, what, 1, kMaxBits, problems);
  if (bits && !is_power_of_two(*bits)) {
    problems.add(node.where, fmt::format("{} must be a power of two, is {}", what, *bits));
    return 1;
  }
  return bits.value_or(1);
}

void read_kind_of_imc(const YamlNode& node, ProblemList& problems, ImcArray& imc) {
  const std::vector<std::string> names{"analog", "digital"};
  const auto name = as_string(node, problems);
  if (!name)
    return;
  if (*name == names[1])
    imc.kind = ImcKind::digital;
  else if (*name != names[0])
    problems.add(node.where, "unknown imc_type '" + name->substr(0, 40) + "': analog or digital",
                 nearest_name_hint(*name, names));
}

void read_input_precision(const YamlNode& node, ProblemList& problems, ImcArray& imc) {
  if (node.kind != YamlNode::Kind::sequence || node.items.size() != 2) {
    problems.add(node.where, "expected the bits of activations and of weights, like [8, 8]");
    return;
  }
  imc.activation_bits = read_bits(node.items[0], "the precision of activations", problems);
  imc.weight_bits = read_bits(node.items[1], "the precision of weights", problems);
}

/// Reports a figure that the file may not set because the model derives it from the array's parts.
void refuse_figure(YamlMap& map, const char* key, ProblemList& problems) {
  const YamlNode* node = map.find(key);
  if (node != nullptr && read_figure(map, key, false, problems) != 0)
    problems.add(node->where, fmt::format("an array that computes in memory has no '{}': it "
                                          "follows from its parts",
                                          key));
}

void check_cells(const YamlNode& node, const Core& core, const ImcArray& imc,
                 ProblemList& problems) {
  const Memory& memory = core.memories[imc.cells];
  const auto at = [&](std::string_view key) {
    const auto entry = std::ranges::find(node.entries, key, &YamlNode::Entry::key);
    return entry == node.entries.end() ? node.where : entry->value.where;
  };
  if (memory.operands != std::vector<MemoryOperand>{MemoryOperand::I2})
    problems.add(at("operands"), "memory 'cells' of an array that computes in memory holds the "
                                 "weights, I2, and nothing else");
  const std::vector<std::size_t> levels = core.levels(MemoryOperand::I2);
  if (!levels.empty() && levels.front() < imc.cells)
    problems.add(node.where,
                 fmt::format("memory 'cells' of an array that computes in memory is the "
                             "innermost of the weights, I2: '{}' comes before it",
                             core.memories[levels.front()].name));
  if (std::ranges::find(memory.serves, true) != memory.serves.end())
    problems.add(at("served_dimensions"), "every element of an array that computes in memory has "
                                          "separate 'cells': served_dimensions must be []");
  if (memory.size.value % imc.weight_bits != 0)
    problems.add(at("size"), fmt::format("the size of 'cells' must be a multiple of a weight's {} "
                                         "bits, is {}",
                                         imc.weight_bits, memory.size.value));
  if (!memory.automatic_cost)
    return;
  if (imc.columns * imc.weight_bits > kMaxWordBits ||
      memory.size.value > kMaxModelledBits / (imc.columns * imc.rows)) {
    problems.add(
        at("auto_cost_extraction"),
        fmt::format(
            "auto_cost_extraction supports rows of weights up to {} bits and macros up to {} bits",
            kMaxWordBits, kMaxModelledBits));
  }
}

} // namespace

void read_imc_keys(YamlMap& map, ProblemList& problems, Core& core) {
  ImcArray imc;
  const std::size_t before = problems.size();
  const YamlNode* kind = map.require("imc_type");
  const YamlNode* precision = map.require("input_precision");
  const YamlNode* serial = map.require("bit_serial_precision");
  const YamlNode* adc = map.find("adc_resolution");
  refuse_figure(map, "unit_energy", problems);
  refuse_figure(map, "unit_area", problems);
  if (kind != nullptr)
    read_kind_of_imc(*kind, problems, imc);
  if (precision != nullptr)
    read_input_precision(*precision, problems, imc);
  if (serial != nullptr)
    imc.serial_bits = read_bits(*serial, "bit_serial_precision", problems);
  if (adc != nullptr)
    imc.adc_bits = integer_within(*adc, "adc_resolution", 0, kMaxAdcBits, problems).value_or(0);
  if (serial != nullptr && problems.size() == before && imc.serial_bits > imc.activation_bits)
    problems.add(serial->where,
                 fmt::format("bit_serial_precision {} is more than the {} bits of an activation",
                             imc.serial_bits, imc.activation_bits));
  if (adc != nullptr && kind != nullptr && imc.kind == ImcKind::digital && imc.adc_bits != 0)
    problems.add(adc->where, "adc_resolution of a digital array must be 0");
  core.imc = std::make_shared<const ImcArray>(imc);
}

void place_imc_array(const YamlNode& names, const YamlNode& sizes, ProblemList& problems,
                     Core& core) {
  if (core.array.size() < 2) {
    problems.add(names.where, "an array that computes in memory has two dimensions at least, "
                              "wordlines and bitlines");
    core.imc = nullptr;
    return;
  }
  std::vector<std::size_t> order(core.array.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t d) { return core.array[d].name; });
  ImcArray imc = *core.imc;
  imc.wordline = order[0];
  imc.bitline = order[1];
  imc.columns = core.array[imc.wordline].size;
  imc.rows = core.array[imc.bitline].size;
  for (std::size_t d = 2; d < order.size(); ++d)
    imc.macros *= core.array[order[d]].size;
  if (imc.kind == ImcKind::digital && !is_power_of_two(imc.rows))
    problems.add(sizes.items[imc.bitline].where,
                 fmt::format("the rows of a digital array, here '{}', must be a power of two for "
                             "its adder trees, are {}",
                             core.array[imc.bitline].name, imc.rows));
  core.imc = std::make_shared<const ImcArray>(imc);
}

void find_imc_cells(const YamlNode& memories, ProblemList& problems, Core& core) {
  const auto found = std::ranges::find(core.memories, kWeightCells, &Memory::name);
  if (found == core.memories.end()) {
    problems.add(memories.where,
                 "an array that computes in memory needs a memory 'cells' for its weights");
    return;
  }
  ImcArray imc = *core.imc;
  imc.cells = static_cast<std::size_t>(found - core.memories.begin());
  imc.cell_bits = found->size.value;
  check_cells(memories.entries[imc.cells].value, core, imc, problems);
  core.imc = std::make_shared<const ImcArray>(imc);
}

} // namespace monet
