// Chooses the mode of a core's array for an operator, from the formats of the multiplied operands.
// The cost model reads the mode's size, dataflow and energy.
#include "hardware/shared/array_modes.hpp"

#include "monet/base/errors.hpp"
#include "monet/hardware/imc_array.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace monet {

namespace {

/// Rows and columns of a block of shared scale, the larger first, whatever axes they lie along.
std::array<std::int64_t, 2> shape_of_block(const BlockScaling& blocks) {
  return {std::max(blocks.rows, blocks.columns), std::min(blocks.rows, blocks.columns)};
}

bool stands_for(const TensorFormat& listed, const TensorFormat& operand) {
  if (listed.element != operand.element || listed.blocks.has_value() != operand.blocks.has_value())
    return false;
  return !listed.blocks || (shape_of_block(*listed.blocks) == shape_of_block(*operand.blocks) &&
                            listed.blocks->scale == operand.blocks->scale);
}

std::string name_of_format(const TensorFormat& format) {
  return name_of(ElementType(format));
}

[[noreturn]] void no_mode(const Core& core, std::span<const TensorFormat> operands,
                          const std::string& of) {
  throw InfeasibleError(
      fmt::format("core '{}' has no mode that multiplies {}{}; its modes multiply {}", core.name,
                  formats_text(operands), of, modes_text(core.modes)));
}

const Core* find_mode(const Core& core, std::span<const TensorFormat> operands) {
  if (core.modes.empty() || operands.empty())
    return &core;
  const auto mode = std::ranges::find_if(
      core.modes, [&](const ArrayMode& each) { return takes(each, operands); });
  if (mode == core.modes.end())
    return nullptr;
  internal_check(core.in_modes != nullptr && core.in_modes->size() == core.modes.size(),
                 "a core's modes were not made");
  return &(*core.in_modes)[static_cast<std::size_t>(mode - core.modes.begin())];
}

} // namespace

std::vector<TensorFormat> multiplied_formats(const Graph& graph, const Operator& op) {
  std::vector<TensorFormat> formats;
  for (const std::size_t i : multiplied_operands(op.nest)) {
    const TensorFormat format = op.multiplied_in
                                    ? TensorFormat{*op.multiplied_in, std::nullopt}
                                    : graph.tensor(op.nest.operands[i].tensor).type.format();
    if (std::ranges::find(formats, format) == formats.end())
      formats.push_back(format);
  }
  return formats;
}

std::uint32_t loops_across_blocks(const Graph& graph, const Operator& op) {
  std::uint32_t across = 0;
  if (op.multiplied_in)
    return across;
  for (const std::size_t i : multiplied_operands(op.nest)) {
    const Access& access = op.nest.operands[i];
    const std::optional<BlockScaling>& blocks = graph.tensor(access.tensor).type.format().blocks;
    if (!blocks)
      continue;
    const std::vector<std::int64_t> extents = extents_of(*blocks);
    for (std::size_t a = 0; a < access.axes.size(); ++a) {
      const std::size_t from_last = access.axes.size() - a;
      const bool inside = from_last <= extents.size() && extents[extents.size() - from_last] > 1;
      for (const AffineTerm& term : access.axes[a].terms)
        if (!inside && term.dim < 32)
          across |= std::uint32_t{1} << term.dim;
    }
  }
  return across;
}

bool takes(const ArrayMode& mode, std::span<const TensorFormat> operands) {
  return std::ranges::all_of(operands, [&](const TensorFormat& operand) {
    return std::ranges::any_of(
        mode.formats, [&](const TensorFormat& listed) { return stands_for(listed, operand); });
  });
}

bool takes(const Core& core, std::span<const TensorFormat> operands) {
  return find_mode(core, operands) != nullptr;
}

const Core& in_mode_for(const Core& core, std::span<const TensorFormat> operands) {
  const Core* found = find_mode(core, operands);
  if (found == nullptr)
    no_mode(core, operands, "");
  return *found;
}

const Core& in_mode_for(const Core& core, const Graph& graph, const Operator& op) {
  if (core.modes.empty())
    return core;
  const std::vector<TensorFormat> formats = multiplied_formats(graph, op);
  const Core* found = find_mode(core, formats);
  if (found == nullptr)
    no_mode(core, formats, fmt::format(", which '{}' ({}) does", op.name, op.op_type));
  return *found;
}

std::string formats_text(std::span<const TensorFormat> formats) {
  std::string text;
  for (const TensorFormat& format : formats)
    text += (text.empty() ? "" : " and ") + name_of_format(format);
  return text;
}

std::string modes_text(std::span<const ArrayMode> modes) {
  std::string text;
  for (const ArrayMode& mode : modes) {
    std::string list;
    for (const TensorFormat& format : mode.formats)
      list += (list.empty() ? "" : ", ") + name_of_format(format);
    text += fmt::format("{}[{}]", text.empty() ? "" : ", ", list);
  }
  return text;
}

Core in_mode(const Core& core, const ArrayMode& mode) {
  Core made = core;
  made.modes.clear();
  made.in_modes.reset();
  made.mac_energy_pj = mode.energy_pj;
  if (mode.products == 1)
    return made;
  made.array.push_back({"products", mode.products, true});
  for (Memory& memory : made.memories) {
    memory.serves.resize(core.array.size(), false);
    memory.serves.push_back(true);
  }
  return made;
}

double max_products(const Core& core) {
  std::int64_t most = 1;
  for (const ArrayMode& mode : core.modes)
    most = std::max(most, mode.products);
  return products_per_cycle(core) * static_cast<double>(most);
}

std::int64_t cycles_per_product(const Core& core) {
  return core.imc != nullptr ? core.imc->cycles_per_wave() : 1;
}

double products_per_cycle(const Core& core) {
  return static_cast<double>(core.lanes()) / static_cast<double>(cycles_per_product(core));
}

double max_energy_pj(const Core& core) {
  if (core.imc != nullptr)
    return imc_peak_energy_pj(*core.imc).total();
  double most = core.modes.empty() ? core.mac_energy_pj : 0;
  for (const ArrayMode& mode : core.modes)
    most = std::max(most, mode.energy_pj * static_cast<double>(mode.products));
  return most * static_cast<double>(core.lanes());
}

} // namespace monet
