// Finds the cores that may run each operator, by their kinds, modes and routes and by the mapping;
// tiling.cpp divides the operators over them.
#include "hardware/shared/array_modes.hpp"
#include "tiling/partition/split.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string>

namespace monet {

namespace {

/// Compute cores that are connected to the off-chip memory, can run the operator and, if they have
/// modes, have a mode for its operands.
std::vector<CoreId> capable_cores(const Graph& graph, const Operator& op, const Chip& chip) {
  const std::vector<TensorFormat> formats = multiplied_formats(graph, op);
  std::vector<CoreId> cores;
  for (std::size_t c = 0; c < chip.cores.size(); ++c) {
    if (!is_compute_core(chip, c) || !has_offchip_path(chip, c))
      continue;
    if (can_run(chip.cores[c], op.nest.compute, op.op_type) && takes(chip.cores[c], formats))
      cores.push_back(CoreId(c));
  }
  return cores;
}

/// Throws InfeasibleError if a compute core could run the operator but has no mode for its
/// operands.
void require_mode(const Graph& graph, const Operator& op, const Chip& chip) {
  for (std::size_t c = 0; c < chip.cores.size(); ++c)
    if (is_compute_core(chip, c) && can_run(chip.cores[c], op.nest.compute, op.op_type))
      in_mode_for(chip.cores[c], graph, op);
}

/// Cores that the mapping entry lists, each once.
std::vector<CoreId> allocated_cores(const MappingEntry& entry, const Chip& chip) {
  std::vector<CoreId> cores;
  for (const CoreId core : listed_cores(entry, chip)) {
    if (std::ranges::find(cores, core) == cores.end())
      cores.push_back(core);
  }
  return cores;
}

/// Cores that may run the operator. Without cores in a mapping entry: the capable cores, without
/// idle ones unless all are idle. With cores in the entry: the listed cores that are capable. If
/// no listed core is capable, a `default` entry restricts nothing. Any other entry may assign
/// work other than multiply-accumulates to cores without declared operator types: the user
/// vouches for them.
std::vector<CoreId> cores_for(const Graph& graph, const Operator& op, const Chip& chip,
                              const TilingOptions& options) {
  const MappingEntry* entry =
      options.mapping ? options.mapping->find(op.name, op.op_type) : nullptr;
  std::vector<CoreId> capable = capable_cores(graph, op, chip);
  if (!entry || !entry->core_allocation) {
    const auto idle = [&](CoreId core) {
      return core.index() < options.idle.size() && options.idle[core.index()];
    };
    if (!std::ranges::all_of(capable, idle))
      std::erase_if(capable, idle);
    return capable;
  }
  const std::vector<CoreId> named = allocated_cores(*entry, chip);
  std::vector<CoreId> allowed = named;
  std::erase_if(allowed,
                [&](CoreId core) { return std::ranges::find(capable, core) == capable.end(); });
  if (!allowed.empty())
    return allowed;
  if (entry->name == "default" && !capable.empty())
    return capable;
  const bool any_kind =
      op.nest.compute != ComputeKind::mac && std::ranges::all_of(named, [&](CoreId core) {
        return chip.cores[core.index()].operator_types.empty();
      });
  return any_kind ? named : std::vector<CoreId>{};
}

[[noreturn]] void throw_homeless(const std::vector<std::string>& operators, const Chip& chip,
                                 bool mapped) {
  constexpr std::size_t kShown = 10;
  std::string list;
  for (std::size_t i = 0; i < std::min(kShown, operators.size()); ++i)
    list += (i == 0 ? "" : ", ") + operators[i];
  if (operators.size() > kShown)
    list += fmt::format(" and {} more", operators.size() - kShown);
  throw InfeasibleError(fmt::format(
      "no core of '{}'{} may run {}: see kind, vector_operators and operator_types of its cores",
      chip.name, mapped ? " that the mapping allows" : "", list));
}

} // namespace

std::vector<CoreId> listed_cores(const MappingEntry& entry, const Chip& chip) {
  ProblemList problems;
  std::vector<CoreId> cores = listed_cores(entry, chip, problems);
  problems.throw_if_any();
  return cores;
}

std::vector<std::vector<CoreId>> operator_cores(const Graph& graph, const Chip& chip,
                                                const TilingOptions& options) {
  std::vector<std::vector<CoreId>> cores;
  std::vector<std::string> homeless;
  for (const Operator& op : graph.operators()) {
    internal_check(!op.nest.operands.empty(),
                   fmt::format("operator '{}' is a view: fold_views() comes first", op.name));
    cores.push_back(cores_for(graph, op, chip, options));
    if (!cores.back().empty())
      continue;
    require_mode(graph, op, chip);
    homeless.push_back(fmt::format("'{}' ({})", op.name, op.op_type));
  }
  if (!homeless.empty())
    throw_homeless(homeless, chip, options.mapping != nullptr);
  return cores;
}

} // namespace monet
