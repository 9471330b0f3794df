#include "monet/hardware/chip.hpp"

#include "monet/base/errors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <queue>

namespace monet {

namespace {

/// Way into a core while searching: the link taken and the core it was taken from.
struct Step {
  std::size_t hops = std::numeric_limits<std::size_t>::max();
  std::size_t before = 0;
  LinkId link;
};

bool shares_memory(const Chip& chip, CoreId a, CoreId b) {
  return std::any_of(chip.shared_memory.begin(), chip.shared_memory.end(), [&](const auto& group) {
    return std::find(group.begin(), group.end(), a) != group.end() &&
           std::find(group.begin(), group.end(), b) != group.end();
  });
}

/// Whether the link takes data from one of its cores to another of them.
bool carries(const Chip& chip, const Link& link, CoreId from, CoreId to) {
  switch (link.reach) {
  case LinkReach::any_pair:
    return true;
  case LinkReach::forward:
    return from == link.cores.front();
  case LinkReach::offchip_both:
    return from == chip.offchip || to == chip.offchip;
  case LinkReach::offchip_read:
    return from == chip.offchip;
  case LinkReach::offchip_write:
    return to == chip.offchip;
  }
  throw InternalError("link without a reach");
}

/// Breadth first from one core. Links are tried in order of id and cores leave the queue in order
/// of discovery, so the first way found has the fewest hops and, among those, the lowest ids. The
/// off-chip memory is never passed through.
std::vector<Step> search(const Chip& chip, const std::vector<std::vector<LinkId>>& links_of,
                         CoreId from) {
  constexpr std::size_t kNotFound = std::numeric_limits<std::size_t>::max();
  std::vector<Step> steps(chip.cores.size());
  std::vector<bool> exhausted(chip.links.size(), false); // buses whose cores are all found
  steps[from.index()].hops = 0;
  std::queue<CoreId> waiting;
  waiting.push(from);
  while (!waiting.empty()) {
    const CoreId here = waiting.front();
    waiting.pop();
    if (here == chip.offchip && here != from)
      continue;
    for (const LinkId id : links_of[here.index()]) {
      if (exhausted[id.index()])
        continue;
      const Link& link = chip.links[id.index()];
      for (const CoreId next : link.cores) {
        Step& step = steps[next.index()];
        if (step.hops != kNotFound || !carries(chip, link, here, next))
          continue;
        step = {steps[here.index()].hops + 1, here.index(), id};
        waiting.push(next);
      }
      exhausted[id.index()] = link.reach == LinkReach::any_pair;
    }
  }
  return steps;
}

} // namespace

const std::vector<LinkId>& Chip::route(CoreId from, CoreId to) const {
  return routes.at(from.index()).at(to.index());
}

bool Chip::connected(CoreId from, CoreId to) const {
  return from == to || shares_memory(*this, from, to) || !route(from, to).empty();
}

double Chip::area_mm2() const {
  double area = 0;
  for (std::size_t i = 0; i < compute_cores(); ++i)
    area += cores[i].area_mm2();
  return area;
}

void make_routes(Chip& chip) {
  const std::size_t count = chip.cores.size();
  chip.routes.assign(count, std::vector<std::vector<LinkId>>(count));
  std::vector<std::vector<LinkId>> links_of(count);
  for (std::size_t l = 0; l < chip.links.size(); ++l) {
    for (const CoreId core : chip.links[l].cores)
      links_of.at(core.index()).emplace_back(l);
  }
  for (std::size_t from = 0; from < count; ++from) {
    const std::vector<Step> steps = search(chip, links_of, CoreId(from));
    for (std::size_t to = 0; to < count; ++to) {
      if (to == from || shares_memory(chip, CoreId(from), CoreId(to)))
        continue;
      if (steps[to].hops == std::numeric_limits<std::size_t>::max())
        continue;
      auto& route = chip.routes[from][to];
      for (std::size_t at = to; at != from; at = steps[at].before)
        route.push_back(steps[at].link);
      std::reverse(route.begin(), route.end());
    }
  }
}

OffchipPort offchip_port(const Chip& chip) {
  internal_check(chip.offchip.has_value(), "asked for the off-chip memory of a chip without one");
  const Memory& memory = chip.cores[chip.offchip->index()].memories.back();
  OffchipPort port;
  port.capacity = memory.size;
  // As in Stream: one read-write port serves everything in turns; with more ports, reads and writes
  // go side by side, each as wide as the widest port that takes them.
  port.shared = memory.ports.size() == 1;
  for (const MemoryPort& p : memory.ports) {
    if (p.type != PortType::write)
      port.read_bits_per_cycle = std::max(port.read_bits_per_cycle, p.bandwidth_max);
    if (p.type != PortType::read)
      port.write_bits_per_cycle = std::max(port.write_bits_per_cycle, p.bandwidth_max);
  }
  if (port.read_bits_per_cycle > 0)
    port.read_pj_per_bit = memory.read_energy_pj / static_cast<double>(port.read_bits_per_cycle);
  if (port.write_bits_per_cycle > 0)
    port.write_pj_per_bit = memory.write_energy_pj / static_cast<double>(port.write_bits_per_cycle);
  return port;
}

void verify(const Chip& chip) {
  for (const Link& link : chip.links) {
    internal_check(link.bandwidth_bits_per_cycle > 0, "link '" + link.name + "' has no bandwidth");
    internal_check(link.cores.size() >= 2, "link '" + link.name + "' joins fewer than two cores");
    for (const CoreId core : link.cores) {
      internal_check(core.index() < chip.cores.size(), "link '" + link.name + "' joins no core");
    }
  }
  for (std::size_t i = 0; i < chip.compute_cores(); ++i) {
    const Core& core = chip.cores[i];
    internal_check(!core.memories.empty() && core.lanes() > 0,
                   fmt::format("core {} ('{}') has no memory or no lanes", i, core.name));
    internal_check(core.top(MemoryOperand::I1) && core.top(MemoryOperand::O),
                   fmt::format("core {} ('{}') lacks a memory for I1 or O", i, core.name));
  }
  internal_check(!chip.offchip || chip.offchip->index() + 1 == chip.cores.size(),
                 "the off-chip core is not the last");
  internal_check(chip.routes.size() == chip.cores.size(), "routes were not made");
}

} // namespace monet
