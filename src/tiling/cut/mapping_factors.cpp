#include "tiling/cut/mapping_factors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>

namespace monet {

namespace {

/// The loop that alone makes up an axis of the first output.
std::optional<std::size_t> loop_of_axis(const LoopNest& nest, std::size_t axis) {
  const auto output = std::ranges::find_if(
      nest.operands, [](const Access& a) { return a.mode != AccessMode::read; });
  if (output == nest.operands.end() || output->opaque || axis >= output->axes.size())
    return std::nullopt;
  const AxisExpr& expression = output->axes[axis];
  if (expression.data_dependent || expression.terms.size() != 1)
    return std::nullopt;
  return expression.terms.front().dim;
}

} // namespace

std::size_t find_mapped_dim(const LoopNest& nest, std::string_view name) {
  const std::size_t own = find_dim(nest, name);
  if (own < nest.dims.size() || nest.compute == ComputeKind::mac)
    return own;
  const bool pooling = find_dim(nest, "OY") < nest.dims.size();
  if (pooling)
    return name == "K" ? loop_of_axis(nest, 1).value_or(nest.dims.size()) : nest.dims.size();
  constexpr std::array<std::string_view, 4> kFromTheLeft{"B", "H", "D", "K"};
  const auto at = std::ranges::find(kFromTheLeft, name);
  if (at == kFromTheLeft.end())
    return nest.dims.size();
  return loop_of_axis(nest, static_cast<std::size_t>(at - kFromTheLeft.begin()))
      .value_or(nest.dims.size());
}

bool is_compute_core(const Chip& chip, std::size_t core) {
  return !chip.offchip || chip.offchip->index() != core;
}

bool has_offchip_path(const Chip& chip, std::size_t core) {
  return !chip.offchip || (chip.connected(*chip.offchip, CoreId(core)) &&
                           chip.connected(CoreId(core), *chip.offchip));
}

std::vector<CoreId> listed_cores(const MappingEntry& entry, const Chip& chip,
                                 ProblemList& problems) {
  std::vector<CoreId> cores;
  for (const std::int64_t id : *entry.core_allocation) {
    const auto index = static_cast<std::size_t>(id);
    if (id < 0 || index >= chip.cores.size() || !is_compute_core(chip, index)) {
      problems.add(entry.where,
                   fmt::format("entry '{}' allocates core {}, which is no compute core of '{}'",
                               entry.name, id, chip.name));
    } else if (!has_offchip_path(chip, index)) {
      problems.add(entry.where,
                   fmt::format("entry '{}' allocates core {} ('{}'), which has no path from and to "
                               "the off-chip memory of '{}'",
                               entry.name, id, chip.cores[index].name, chip.name));
    } else {
      cores.push_back(CoreId(index));
    }
  }
  return cores;
}

std::vector<SplitFactor> usable_factors(const LoopNest& nest, std::span<const TilingFactor> given,
                                        std::int64_t chosen) {
  std::vector<SplitFactor> factors;
  for (const TilingFactor& factor : given) {
    const std::size_t dim = find_mapped_dim(nest, factor.dim);
    if (dim == nest.dims.size() || loop_use(nest, dim) == LoopUse::never)
      continue;
    const bool repeated =
        std::ranges::any_of(factors, [&](const SplitFactor& f) { return f.dim == dim; });
    if (repeated)
      continue;
    const std::int64_t size = nest.dims[dim].size;
    std::int64_t parts = factor.factor;
    if (factor.amount == TilingFactor::Amount::all)
      parts = size;
    if (factor.amount == TilingFactor::Amount::chosen)
      parts = chosen;
    factors.push_back({dim, std::clamp<std::int64_t>(parts, 1, size)});
  }
  return factors;
}

void check_mapping(const MappingFile& mapping, const Chip& chip,
                   std::span<const Graph* const> graphs) {
  MappingSubjects subjects;
  for (const Graph* graph : graphs)
    subjects.add(*graph);
  ProblemList problems;
  check_subjects(mapping, subjects, problems);
  for (const MappingEntry& entry : mapping.entries) {
    if (entry.core_allocation)
      listed_cores(entry, chip, problems);
  }
  problems.throw_if_any();
}

} // namespace monet
