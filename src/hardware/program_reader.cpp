// Reads `issue:` and `kernels:` of a core file into Core::program. core_reader.cpp calls it.
#include "base/shared/text.hpp"
#include "hardware/core_reader.hpp"
#include "hardware/shared/core_program.hpp"

#include "monet/hardware/read_hardware.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <vector>

namespace monet {

namespace {

constexpr double kMaxCycles = 1e12;

IssueCosts read_issue(const YamlNode& node, ProblemList& problems) {
  YamlMap map(node, problems);
  IssueCosts issue;
  issue.cycles_per_mac = figure_within(map, "cycles_per_mac", 1, kMaxCycles, 1.0, problems);
  issue.loop_overhead = figure_within(map, "loop_overhead", 0, kMaxCycles, 0.0, problems);
  issue.im2col = figure_within(map, "im2col", 0, kMaxCycles, 0.0, problems);
  issue.dma_setup = figure_within(map, "dma_setup", 0, kMaxCycles, 0.0, problems);
  map.finish();
  return issue;
}

KernelCosts read_kernels(const YamlNode& node, ProblemList& problems, const Core& core) {
  YamlMap map(node, problems);
  KernelCosts kernels;
  if (const YamlNode* units = map.require("units")) {
    const auto found = std::ranges::find(core.array, units->scalar, &ArrayDim::name);
    if (found == core.array.end()) {
      const std::vector<std::string> names = names_of(core.array);
      problems.add(units->where,
                   fmt::format("'{}' is not a dimension of the array: {}",
                               units->scalar.substr(0, 40), fmt::join(names, ", ")),
                   nearest_name_hint(units->scalar, names));
    } else {
      kernels.unit_dim = static_cast<std::size_t>(found - core.array.begin());
      kernels.waves.units = static_cast<double>(found->size);
    }
  }
  if (const YamlNode* tiles = map.require("tiles"))
    read_tile_shapes(*tiles, kernels.waves, problems);
  kernels.waves.fill = figure_within(map, "fill", 0, 1e6, 0.0, problems);
  kernels.sustained = figure_within(map, "sustained", 1e-6, 1, 1.0, problems);
  kernels.host_cycles = figure_within(map, "host_cycles", 0, kMaxCycles, 0.0, problems);
  map.finish();
  return kernels;
}

/// Reports instruction keys for memories and in-memory arrays, which execute no instructions.
void check_kind(const YamlNode& node, const char* key, const Core& core, ProblemList& problems) {
  if (core.kind == CoreKind::offchip)
    problems.add(node.where, fmt::format("an off-chip memory has no '{}'", key));
  if (core.imc != nullptr)
    problems.add(node.where, fmt::format("an array that computes in memory has no '{}'", key));
}

} // namespace

void read_tile_shapes(const YamlNode& node, TileWaves& waves, ProblemList& problems) {
  if (node.kind != YamlNode::Kind::sequence || node.items.empty() ||
      node.items.size() > TileWaves::kMaxTileShapes) {
    problems.add(node.where, fmt::format("expected 1 to {} tiles [rows, columns, share]",
                                         TileWaves::kMaxTileShapes));
    return;
  }
  for (const YamlNode& item : node.items) {
    std::vector<double> values;
    for (const YamlNode& cell : item.items)
      values.push_back(as_number(cell, problems).value_or(0));
    const bool right = values.size() == 3 && values[0] >= 1 && values[1] >= 1 &&
                       values[0] <= 65536 && values[1] <= 65536 && values[2] > 1e-6 &&
                       values[2] <= 1;
    if (!right)
      problems.add(item.where, "expected [rows, columns, share], the share above 0 and at most 1");
    else
      waves.tiles[waves.tile_count++] = {values[0], values[1], values[2]};
  }
}

void read_program(YamlMap& map, ProblemList& problems, Core& core) {
  CoreProgram program;
  if (const YamlNode* issue = map.find("issue")) {
    check_kind(*issue, "issue", core, problems);
    program.issue = read_issue(*issue, problems);
  }
  if (const YamlNode* kernels = map.find("kernels")) {
    check_kind(*kernels, "kernels", core, problems);
    program.kernels = read_kernels(*kernels, problems, core);
    if (program.issue)
      problems.add(kernels->where, "a core has either 'issue' or 'kernels'");
  }
  if (program.issue || program.kernels)
    core.program = std::make_shared<const CoreProgram>(std::move(program));
}

} // namespace monet
