// Builds the memory hierarchy of a core for one problem; all later stages of the model use its
// levels and ports.
#include "core_cost/model/hierarchy.hpp"

#include "core_cost/model/program_cost.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>
#include <vector>

namespace monet::core_cost_detail {

namespace {

constexpr int kOffchip = -1;

/// A memory before sorting: its index in the core (or kOffchip) and the operands of the problem
/// that use it.
struct Vertex {
  int memory = kOffchip;
  std::vector<std::size_t> operands;
  std::vector<std::size_t> above; ///< vertices fed by this one
  std::size_t below = 0;          ///< edges coming in
  std::size_t height = 0;         ///< largest level index among its operands
};

bool has_reduction(const NestModel& model) {
  const OperandModel& output = model.operands[model.output];
  for (std::size_t d = 0; d < model.dims.size(); ++d) {
    if (model.dims[d].size > 1 && output.relevance[d] != Relevance::relevant)
      return true;
  }
  return false;
}

/// Bits of the widest form in which the operand's elements stay in a memory.
std::int64_t element_bits(const NestModel& model, std::size_t operand) {
  const OperandModel& o = model.operands[operand];
  return o.output && has_reduction(model) ? std::max(o.bits, o.partial_bits) : o.bits;
}

std::vector<std::size_t> users(const NestModel& model, const Core& core, const Memory& memory) {
  std::vector<std::size_t> found;
  for (const MemoryOperand operand : memory.operands) {
    const bool top = core.top(operand) == &memory;
    for (std::size_t i = 0; i < model.operands.size(); ++i) {
      const OperandModel& o = model.operands[i];
      // Weights that the cells of a computing array are too narrow for cannot pass by.
      const bool cells = core.imc != nullptr && &memory == &core.memories[core.imc->cells];
      const bool fits = !model.choices.bypass_narrow_memories || cells ||
                        element_bits(model, i) <= memory.size.value;
      if (o.memory == operand && (top || !o.aside) && fits)
        found.push_back(i);
    }
  }
  return found;
}

/// Adds a memory above those already there. Each of its operands links it to the memory that held
/// the operand last.
void add_vertex(std::vector<Vertex>& graph, Vertex vertex, std::vector<std::size_t>& depth) {
  for (const std::size_t operand : vertex.operands)
    vertex.height = std::max(vertex.height, depth[operand]);
  std::vector<std::size_t> sources;
  for (const std::size_t operand : vertex.operands) {
    std::optional<std::size_t> height;
    for (const Vertex& v : graph) {
      if (std::ranges::find(v.operands, operand) == v.operands.end())
        continue;
      height = std::max(height.value_or(0), v.height);
    }
    for (std::size_t i = 0; height && i < graph.size(); ++i) {
      const Vertex& v = graph[i];
      if (v.height != *height)
        continue;
      if (std::ranges::find(v.operands, operand) == v.operands.end())
        continue;
      if (std::ranges::find(sources, i) == sources.end())
        sources.push_back(i);
    }
  }
  for (const std::size_t source : sources)
    graph[source].above.push_back(graph.size());
  vertex.below = sources.size();
  for (const std::size_t operand : vertex.operands)
    ++depth[operand];
  graph.push_back(std::move(vertex));
}

std::vector<Vertex> build_graph(const NestModel& model, const Core& core) {
  std::vector<Vertex> graph;
  std::vector<std::size_t> depth(model.operands.size(), 0);
  for (std::size_t m = 0; m < core.memories.size(); ++m) {
    Vertex vertex{.memory = static_cast<int>(m), .operands = users(model, core, core.memories[m])};
    if (!vertex.operands.empty())
      add_vertex(graph, std::move(vertex), depth);
  }
  Vertex offchip;
  for (std::size_t i = 0; i < model.operands.size(); ++i) {
    if (model.operands[i].offchip)
      offchip.operands.push_back(i);
  }
  if (!offchip.operands.empty())
    add_vertex(graph, std::move(offchip), depth);
  return graph;
}

/// Generation by generation; inside one, in the order in which the last edge was removed.
std::vector<std::size_t> topological_order(const std::vector<Vertex>& graph) {
  std::vector<std::size_t> order;
  std::vector<std::size_t> waiting(graph.size());
  for (std::size_t i = 0; i < graph.size(); ++i) {
    waiting[i] = graph[i].below;
    if (waiting[i] == 0)
      order.push_back(i);
  }
  for (std::size_t next = 0; next < order.size(); ++next) {
    for (const std::size_t up : graph[order[next]].above) {
      if (--waiting[up] == 0)
        order.push_back(up);
    }
  }
  internal_check(order.size() == graph.size(), "memories form no cycle");
  return order;
}

Node make_node(const Vertex& vertex, const Core& core) {
  Node node;
  node.innermost = vertex.below == 0;
  if (vertex.memory == kOffchip) {
    node.size_bits = 1e300;
    node.serves.fill(true);
    return node;
  }
  const Memory& memory = core.memories[static_cast<std::size_t>(vertex.memory)];
  node.memory = &memory;
  node.size_bits = static_cast<double>(memory.size.value);
  for (std::size_t d = 0; d < memory.serves.size() && d < kMaxArrayDims; ++d)
    node.serves[d] = memory.serves[d];
  node.read_pj = memory.read_energy_pj;
  node.write_pj = memory.write_energy_pj;
  return node;
}

/// Which port serves which direction of an operand: the last that lists it, in the order in which
/// directions are first listed.
std::vector<std::pair<Direction, std::size_t>> served_directions(const Memory& memory,
                                                                 MemoryOperand operand) {
  std::vector<std::pair<Direction, std::size_t>> served;
  for (std::size_t p = 0; p < memory.ports.size(); ++p) {
    for (const PortUse& use : memory.ports[p].allocation) {
      if (use.operand != operand)
        continue;
      const auto known = std::ranges::find_if(
          served, [&](const auto& entry) { return entry.first == use.direction; });
      if (known == served.end()) {
        served.emplace_back(use.direction, p);
      } else {
        known->second = p;
      }
    }
  }
  return served;
}

void add_port(Hierarchy& hierarchy, const MemoryPort& file_port) {
  Port port{.bandwidth_max = file_port.bandwidth_max, .width = Width(file_port.bandwidth_max)};
  const auto serves = [&](MemoryOperand operand) {
    return std::ranges::any_of(file_port.allocation,
                               [&](const PortUse& use) { return use.operand == operand; });
  };
  port.shared_by_inputs = serves(MemoryOperand::I1) && serves(MemoryOperand::I2);
  hierarchy.ports.push_back(std::move(port));
}

void add_ports(Hierarchy& hierarchy, const Node& node, const NestModel& model) {
  if (node.memory == nullptr)
    return;
  const std::size_t first = hierarchy.ports.size();
  for (const MemoryPort& port : node.memory->ports)
    add_port(hierarchy, port);
  for (const NodeUse& n : node.uses) {
    const OperandModel& operand = model.operands[n.operand];
    for (const auto& [direction, p] : served_directions(*node.memory, operand.memory)) {
      const MemoryPort& file_port = node.memory->ports[p];
      Level& level = hierarchy.levels[n.operand][n.level];
      const auto d = static_cast<std::size_t>(direction);
      level.port[d] = static_cast<std::int32_t>(first + p);
      level.bandwidth_min[d] = file_port.bandwidth_min;
      level.bandwidth_max[d] = file_port.bandwidth_max;
      level.least[d] = Width(file_port.bandwidth_min);
      level.min_share[d] = static_cast<double>(file_port.bandwidth_min) /
                           static_cast<double>(file_port.bandwidth_max);
      const bool down = direction == Direction::tl || direction == Direction::fh;
      hierarchy.ports[first + p].activities.push_back(
          {n.operand, n.level, direction, down && operand.output});
    }
  }
}

[[noreturn]] void no_level(const CoreProblem& problem, const NestModel& model, std::size_t operand,
                           const Core& core) {
  const Memory* top = core.top(problem.operands[operand].memory);
  if (top == nullptr) {
    throw InfeasibleError(
        fmt::format("core '{}' has no memory for {}", core.name, operand_name(problem, operand)));
  }
  throw InfeasibleError(fmt::format(
      "core '{}': one element of {} needs {} bits, but its largest memory '{}' holds {}", core.name,
      operand_name(problem, operand), element_bits(model, operand), top->name, top->size.value));
}

} // namespace

Width::Width(std::int64_t width) : bits(width) {
  const auto unsigned_width = static_cast<std::uint64_t>(width);
  if (width > 0 && std::has_single_bit(unsigned_width))
    shift = std::countr_zero(unsigned_width);
}

Hierarchy make_hierarchy(const CoreProblem& problem, const NestModel& model, const Core& core) {
  if (core.array.size() > kMaxArrayDims) {
    throw InfeasibleError(fmt::format("core '{}' has {} array dimensions; at most {} are supported",
                                      core.name, core.array.size(), kMaxArrayDims));
  }
  Hierarchy hierarchy;
  hierarchy.array_dims = core.array.size();
  for (std::size_t d = 0; d < core.array.size(); ++d) {
    hierarchy.array_size[d] = core.array[d].size;
    hierarchy.sums[d] = core.array[d].sums;
  }
  hierarchy.mac_energy_pj = core.mac_energy_pj;
  hierarchy.part_words_cost = model.choices.part_words_cost;
  hierarchy.imc = core.imc;
  if (core.imc != nullptr)
    hierarchy.wave_cycles = core.imc->cycles_per_wave();
  hierarchy.levels.resize(model.operands.size());
  const std::vector<Vertex> graph = build_graph(model, core);
  std::vector<bool> onchip(model.operands.size(), false);
  for (const std::size_t i : topological_order(graph)) {
    Node node = make_node(graph[i], core);
    for (const std::size_t operand : graph[i].operands) {
      node.uses.push_back({operand, hierarchy.levels[operand].size(), false});
      Level level;
      level.node = hierarchy.nodes.size();
      level.port.fill(-1);
      hierarchy.levels[operand].push_back(level);
      onchip[operand] = onchip[operand] || node.memory != nullptr;
    }
    hierarchy.nodes.push_back(std::move(node));
  }
  for (std::size_t i = 0; i < model.operands.size(); ++i) {
    if (!onchip[i])
      no_level(problem, model, i, core);
    if (hierarchy.levels[i].size() > kMaxLevels) {
      throw InfeasibleError(
          fmt::format("core '{}' has more than {} memories above one another for {}", core.name,
                      kMaxLevels, operand_name(problem, i)));
    }
  }
  for (Node& node : hierarchy.nodes) {
    for (NodeUse& use : node.uses)
      use.top = use.level + 1 == hierarchy.levels[use.operand].size();
    add_ports(hierarchy, node, model);
  }
  if (core.program != nullptr && model.choices.instruction_costs)
    set_program(model, core, hierarchy);
  return hierarchy;
}

} // namespace monet::core_cost_detail
