// Builds the core graph and outermost memories of a chip, and finds paths like the reference. The
// scheduler (coala.cpp, transfers.cpp) uses it.
#include "reference/stream/schedule/fabric.hpp"

#include "reference/stream/tiles/two_sided_search.hpp"

#include <algorithm>

namespace monet::stream {

namespace {

/// The outermost memory `memory`; its list of cores is still empty.
TopMemory top_memory(const Memory& memory) {
  TopMemory top;
  top.name = memory.name;
  top.capacity = memory.size;
  top.read_pj = memory.read_energy_pj;
  top.write_pj = memory.write_energy_pj;
  for (const MemoryPort& port : memory.ports) {
    if (port.type != PortType::write)
      top.read_bits = std::max(top.read_bits, port.bandwidth_max);
    if (port.type != PortType::read)
      top.write_bits = std::max(top.write_bits, port.bandwidth_max);
  }
  return top;
}

} // namespace

Fabric::Fabric(const Chip& chip)
    : known_(chip.cores.size(), false), out_(chip.cores.size()), in_(chip.cores.size()),
      link_of_(chip.cores.size() * chip.cores.size(), kNone),
      path_of_(chip.cores.size() * chip.cores.size(), kNone) {
  make_edges(chip);
  make_memories(chip);
}

void Fabric::add_node(CoreId core) {
  if (known_[core.index()])
    return;
  known_[core.index()] = true;
  nodes_.push_back(core);
}

/// Adds an edge. A second edge between the same cores replaces the link but keeps its position.
void Fabric::add_edge(CoreId from, CoreId to, LinkId link) {
  add_node(from);
  add_node(to);
  std::uint32_t& known = link_of_[from.index() * out_.size() + to.index()];
  if (known == kNone) {
    out_[from.index()].push_back(to.value);
    in_[to.index()].push_back(from.value);
  }
  known = link.value;
}

void Fabric::make_edges(const Chip& chip) {
  std::optional<LinkId> read;
  std::optional<LinkId> write;
  for (std::size_t l = 0; l < chip.links.size(); ++l) {
    const Link& link = chip.links[l];
    const LinkId id(l);
    if (link.reach == LinkReach::forward) {
      add_edge(link.cores[0], link.cores[1], id);
    } else if (link.reach == LinkReach::any_pair) {
      for (std::size_t i = 0; i < link.cores.size(); ++i) {
        for (std::size_t j = i + 1; j < link.cores.size(); ++j) {
          add_edge(link.cores[i], link.cores[j], id);
          add_edge(link.cores[j], link.cores[i], id);
        }
      }
    } else {
      if (link.reach != LinkReach::offchip_write)
        read = id;
      if (link.reach != LinkReach::offchip_read)
        write = id;
    }
  }
  for (std::size_t core = 0; chip.offchip && core < chip.compute_cores(); ++core) {
    if (write)
      add_edge(CoreId(core), *chip.offchip, *write);
    if (read)
      add_edge(*chip.offchip, CoreId(core), *read);
  }
  // The reference's graph lacks cores without links; here they are the last nodes.
  for (std::size_t core = 0; core < chip.cores.size(); ++core)
    add_node(CoreId(core));
}

void Fabric::make_memories(const Chip& chip) {
  std::array<std::uint32_t, kMemoryOperands> none{};
  none.fill(kNone);
  tops_.assign(chip.cores.size(), none);
  tops_of_.resize(chip.cores.size());
  std::vector<MemoryPlace> place_of_memory;
  for (const CoreId core : nodes_) {
    const Core& file = chip.cores[core.index()];
    for (const Memory& memory : file.memories) {
      std::uint32_t index = kNone;
      for (std::size_t o = 0; o < kMemoryOperands; ++o) {
        if (file.top(static_cast<MemoryOperand>(o)) != &memory)
          continue;
        if (index == kNone) {
          const auto level = static_cast<std::size_t>(&memory - file.memories.data());
          const MemoryPlace place = chip.place_of({core, level});
          const auto known = std::ranges::find(place_of_memory, place);
          index = static_cast<std::uint32_t>(known - place_of_memory.begin());
          if (known == place_of_memory.end()) {
            memories_.push_back(top_memory(memory));
            place_of_memory.push_back(place);
          }
          memories_[index].cores.push_back(core);
          tops_of_[core.index()].push_back(index);
        }
        tops_[core.index()][o] = index;
      }
    }
  }
}

std::span<const LinkId> Fabric::path(CoreId from, CoreId to) {
  std::uint32_t& known = path_of_[from.index() * out_.size() + to.index()];
  if (known == kNone) {
    known = static_cast<std::uint32_t>(paths_.size());
    paths_.push_back(search(from, to));
  }
  return paths_[known];
}

std::vector<LinkId> Fabric::search(CoreId from, CoreId to) const {
  if (from == to)
    return {};
  TwoSidedSearch search(out_.size(), [&](std::uint32_t core, bool ahead) {
    return std::span(ahead ? out_[core] : in_[core]);
  });
  std::optional<std::vector<std::uint32_t>> cores = search.between(from.value, to.value);
  if (!cores)
    return {};
  cores->push_back(to.value);
  std::vector<LinkId> links;
  std::size_t at = from.index();
  for (const std::uint32_t next : *cores) {
    links.emplace_back(link_of_[at * out_.size() + next]);
    at = next;
  }
  return links;
}

} // namespace monet::stream
