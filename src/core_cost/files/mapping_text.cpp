// Writes mapping files as text; counterpart of mapping_file.cpp.
#include "base/shared/yaml_overlay.hpp"

#include "monet/core_cost/mapping_file.hpp"

#include <fmt/core.h>

namespace monet {

namespace {

template <class Items, class Format>
std::string listed(const Items& items, Format format) {
  std::string out;
  for (const auto& item : items)
    out += (out.empty() ? "" : ", ") + format(item);
  return '[' + out + ']';
}

std::string text_of(const TilingFactor& factor) {
  switch (factor.amount) {
  case TilingFactor::Amount::all:
    return yaml_quoted(factor.dim + ", all");
  case TilingFactor::Amount::chosen:
    return yaml_quoted(factor.dim + ", *");
  case TilingFactor::Amount::number:
    break;
  }
  return yaml_quoted(fmt::format("{}, {}", factor.dim, factor.factor));
}

void add_details(const MappingEntry& entry, std::string& out) {
  if (!entry.spatial_mapping.empty()) {
    out += "  spatial_mapping:\n";
    for (const auto& [dim, unrolled] : entry.spatial_mapping) {
      out += fmt::format("    {}: {}\n", yaml_quoted(dim), listed(unrolled, [](const Unrolling& u) {
                           return yaml_quoted(fmt::format("{}, {}", u.dim, u.factor));
                         }));
    }
  }
  if (!entry.spatial_mapping_hint.empty()) {
    out += "  spatial_mapping_hint:\n";
    for (const auto& [dim, hints] : entry.spatial_mapping_hint)
      out += fmt::format("    {}: {}\n", yaml_quoted(dim), listed(hints, yaml_quoted));
  }
  if (!entry.memory_operand_links.empty()) {
    out += "  memory_operand_links:\n";
    for (const auto& [name, operand] : entry.memory_operand_links)
      out += fmt::format("    {}: {}\n", yaml_quoted(name), name_of(operand));
  }
  if (!entry.temporal_ordering.empty()) {
    out +=
        fmt::format("  temporal_ordering: {}\n", listed(entry.temporal_ordering, [](auto& loop) {
                      return yaml_quoted(fmt::format(
                          "{}, {}", loop.first, loop.second ? std::to_string(*loop.second) : "*"));
                    }));
  }
  if (!entry.layer_dimension_names.empty())
    out += fmt::format("  layer_dimension_names: {}\n",
                       listed(entry.layer_dimension_names, yaml_quoted));
}

} // namespace

std::string mapping_text(const MappingFile& mapping) {
  std::string out;
  for (const MappingEntry& entry : mapping.entries) {
    out += fmt::format("- name: {}\n", yaml_quoted(entry.name));
    if (entry.allocation_only)
      out += "  allocation_only: true\n";
    if (entry.core_allocation) {
      out +=
          fmt::format("  core_allocation: {}\n",
                      listed(*entry.core_allocation, [](auto id) { return std::to_string(id); }));
    }
    if (!entry.intra_core_tiling.empty())
      out += fmt::format("  intra_core_tiling: {}\n", listed(entry.intra_core_tiling, text_of));
    if (!entry.inter_core_tiling.empty())
      out += fmt::format("  inter_core_tiling: {}\n", listed(entry.inter_core_tiling, text_of));
    add_details(entry, out);
  }
  return out;
}

} // namespace monet
