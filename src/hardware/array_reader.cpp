// Reads `operational_array:` of a core file; core_reader.cpp calls it.
#include "base/shared/text.hpp"
#include "hardware/core_reader.hpp"

#include "monet/workload/element_type.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace monet {

namespace {

constexpr std::int64_t kMaxArraySize = 1 << 20;
constexpr std::int64_t kMaxLanes = 1 << 30;
constexpr std::size_t kMaxArrayDims = 8;
constexpr std::int64_t kMaxProducts = 1024;
constexpr std::size_t kMaxModes = 64;

std::optional<NumberFormat> read_number_format(const YamlNode& node, ProblemList& problems) {
  const auto name = as_string(node, problems);
  if (!name)
    return std::nullopt;
  auto format = parse_number_format(*name);
  if (!format)
    problems.add(node.where, "unknown number format '" + name->substr(0, 40) + "'",
                 nearest_name_hint(*name, common_format_names()));
  return format;
}

/// Name of a number format that the arithmetic model supports; empty otherwise.
std::string read_format(YamlMap& map, const char* key, ProblemList& problems) {
  const YamlNode* node = map.find(key);
  return node != nullptr && read_number_format(*node, problems) ? node->scalar : std::string();
}

void read_array_model(YamlMap& map, const YamlNode& node, ProblemList& problems, Core& core) {
  core.automatic_array_cost = map.boolean_or("auto_cost_extraction", false);
  core.array_format = read_format(map, "format", problems);
  core.accumulate_format = read_format(map, "accumulate", problems);
  if (core.automatic_array_cost && !map.has("format") && !map.has("mac"))
    problems.add(node.where,
                 "auto_cost_extraction of an array needs its 'format', like fp32, or its 'mac'");
}

std::optional<MacDesign> read_mac(const YamlNode& node, ProblemList& problems) {
  const std::size_t before = problems.size();
  YamlMap map(node, problems);
  MacDesign design;
  const YamlNode* multiply = map.require("multiply");
  const YamlNode* variant = map.find("variant");
  const YamlNode* accumulate = map.find("accumulate");
  design.dsps = map.boolean_or("dsps", true);
  map.finish();
  if (multiply != nullptr)
    design.multiply = read_number_format(*multiply, problems).value_or(design.multiply);
  if (accumulate != nullptr)
    design.accumulate = read_number_format(*accumulate, problems);
  if (variant != nullptr) {
    const auto name = as_string(*variant, problems);
    const auto known = name ? multiplier_named(*name) : std::nullopt;
    if (name && !known)
      problems.add(variant->where, "unknown variant '" + name->substr(0, 40) + "'",
                   "one of: rounded, exact, cfg1 to cfg6");
    design.variant = known.value_or(design.variant);
    if (known && *known != Multiplier::rounded && !design.multiply.floating)
      problems.add(variant->where, "variants are of floating-point multipliers, not of " +
                                       name_of(design.multiply));
  }
  if (problems.size() != before)
    return std::nullopt;
  if (const auto reason = why_not_built(design)) {
    problems.add(accumulate != nullptr ? accumulate->where : node.where, *reason);
    return std::nullopt;
  }
  return design;
}

/// Reads a list of number formats: single elements, or blocks with a shared scale.
std::vector<TensorFormat> read_formats(const YamlNode& node, ProblemList& problems) {
  std::vector<TensorFormat> formats;
  const std::vector<std::string> names = as_strings(node, problems);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto type = element_type_named(names[i]);
    if (type && is_floating(*type)) {
      formats.push_back(type->format());
    } else if (const auto format = parse_number_format(names[i])) { // integers
      formats.push_back({*format, std::nullopt});
    } else {
      problems.add(node.items[i].where, "unknown number format '" + names[i].substr(0, 40) + "'",
                   nearest_name_hint(names[i], common_tensor_format_names()));
    }
  }
  if (names.empty() && node.items.empty())
    problems.add(node.where, "a mode multiplies one format at least");
  return formats;
}

ArrayMode read_mode(const YamlNode& node, bool automatic, ProblemList& problems) {
  YamlMap map(node, problems);
  ArrayMode mode;
  mode.where = node.where;
  if (const YamlNode* formats = map.require("formats"))
    mode.formats = read_formats(*formats, problems);
  mode.products = map.integer_or("products", 1);
  if (mode.products < 1 || mode.products > kMaxProducts) {
    problems.add(map.find("products")->where,
                 fmt::format("{} products are not between 1 and {}", mode.products, kMaxProducts));
    mode.products = 1;
  }
  mode.automatic_cost = automatic && !map.has("unit_energy");
  if (!mode.automatic_cost)
    mode.energy_pj = read_figure(map, "unit_energy", true, problems);
  map.finish();
  return mode;
}

/// Reads the formats of an array that has a unit but no modes.
void read_modes(YamlMap& map, ProblemList& problems, Core& core) {
  const YamlNode* list = map.find("modes");
  if (list == nullptr) {
    if (core.mac)
      core.modes.push_back({{{core.mac->multiply, std::nullopt}},
                            1,
                            core.mac_energy_pj,
                            core.automatic_array_cost,
                            {}});
    return;
  }
  if (list->kind != YamlNode::Kind::sequence || list->items.empty() ||
      list->items.size() > kMaxModes) {
    problems.add(list->where, fmt::format("expected a list of 1 to {} modes", kMaxModes));
    return;
  }
  for (const YamlNode& item : list->items)
    core.modes.push_back(read_mode(item, core.automatic_array_cost, problems));
}

/// Reads the keys of arrays that do not compute in memory.
void read_ordinary_keys(YamlMap& map, const YamlNode& node, ProblemList& problems, Core& core) {
  core.mac_energy_pj = read_figure(map, "unit_energy", false, problems);
  core.array_area_mm2 = read_figure(map, "unit_area", false, problems);
  read_array_model(map, node, problems, core);
  if (const YamlNode* mac = map.find("mac")) {
    core.mac = read_mac(*mac, problems);
    if (map.has("format") || map.has("accumulate"))
      problems.add(mac->where, "'mac' already sets 'format' and 'accumulate'");
  }
  read_modes(map, problems, core);
  // Keys of ZigZag's that do not enter the model of such an array.
  for (const char* key :
       {"input_precision", "multiplier_energy", "multiplier_area", "imc_type", "adc_resolution",
        "bit_serial_precision", "dac_resolution", "cells_size", "cells_area"}) {
    map.ignore(key);
  }
}

/// Sizes of the array's dimensions. A size that is no integer is reported and read as the largest
/// one, so that nothing else is wrong because of it.
std::vector<std::int64_t> sizes_of(const YamlNode& node, ProblemList& problems) {
  if (node.kind != YamlNode::Kind::sequence)
    return as_integers(node, problems);
  std::vector<std::int64_t> sizes;
  for (const YamlNode& item : node.items)
    sizes.push_back(as_integer(item, problems).value_or(kMaxArraySize));
  return sizes;
}

} // namespace

void read_array(const YamlNode& node, ProblemList& problems, bool offchip, Core& core) {
  YamlMap map(node, problems, YamlMap::Duplicates::last_wins);
  if (map.boolean_or("is_imc", false))
    read_imc_keys(map, problems, core);
  else
    read_ordinary_keys(map, node, problems, core);
  const YamlNode* names = map.require("dimensions");
  const YamlNode* sizes = map.require("sizes");
  map.finish();
  if (core.imc != nullptr && offchip)
    problems.add(node.where, "an off-chip memory does not compute: is_imc is for other cores");
  if (names == nullptr || sizes == nullptr)
    return;
  const std::vector<std::string> dims = as_strings(*names, problems);
  const std::size_t before = problems.size();
  const std::vector<std::int64_t> extents = sizes_of(*sizes, problems);
  const bool all_integers = problems.size() == before;
  if (dims.size() != extents.size()) {
    problems.add(sizes->where,
                 fmt::format("{} sizes for {} dimensions", extents.size(), dims.size()));
    return;
  }
  if (dims.size() > kMaxArrayDims) {
    problems.add(names->where, fmt::format("more than {} array dimensions", kMaxArrayDims));
    return;
  }
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if ((extents[i] < 1 && !offchip) || extents[i] < 0 || extents[i] > kMaxArraySize) {
      problems.add(sizes->items[i].where,
                   fmt::format("array size {} is not between 1 and {}", extents[i], kMaxArraySize));
    }
    const auto same = [&](const ArrayDim& dim) { return dim.name == dims[i]; };
    if (std::ranges::any_of(core.array, same)) {
      problems.add(names->items[i].where, "array dimension '" + dims[i] + "' is listed twice");
    }
    core.array.push_back({dims[i], std::max<std::int64_t>(extents[i], 1)});
  }
  std::int64_t lanes = 1; // a mode with several lanes has one more dimension
  for (const ArrayMode& mode : core.modes)
    lanes = std::max(lanes, mode.products);
  if (lanes > 1 && dims.size() == kMaxArrayDims)
    problems.add(names->where, fmt::format("modes with several products leave room for {} array "
                                           "dimensions",
                                           kMaxArrayDims - 1));
  for (const ArrayDim& dim : core.array)
    lanes = std::min(lanes, kMaxLanes) * std::clamp<std::int64_t>(dim.size, 1, kMaxArraySize);
  if (lanes > kMaxLanes && all_integers)
    problems.add(sizes->where, fmt::format("more than {} multipliers", kMaxLanes));
  else if (core.imc != nullptr)
    place_imc_array(*names, *sizes, problems, core);
}

} // namespace monet
