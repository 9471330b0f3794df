// Chip: routes between cores, ports of the off-chip memory, shared memories, area and peak power.
// The readers build it; scheduling and cost models query it.
#include "monet/hardware/chip.hpp"

#include "base/shared/checked.hpp"
#include "hardware/shared/array_modes.hpp"

#include "monet/base/errors.hpp"
#include "monet/hardware/imc_array.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <tuple>

namespace monet {

namespace {

/// Last step of a route to a core: the link taken and the core before it.
struct Step {
  std::size_t hops = std::numeric_limits<std::size_t>::max();
  std::size_t helpers = 0;    ///< cores without an array on the route so far
  std::size_t buses = 0;      ///< so far
  std::int64_t narrowest = 0; ///< bits per cycle of the narrowest link so far
  std::size_t before = 0;
  LinkId link;
};

/// Whether the link carries data from core `from` to core `to`.
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

bool passes_on(const Chip& chip, CoreId core) {
  return core != chip.offchip && (chip.routers.empty() || chip.routers.at(core.index()));
}

/// Breadth-first search from one core; Chip::route defines the best route. Cores are tried in order
/// of discovery and links by id. Only a better route replaces another, so ties go to the lowest id.
class RouteSearch {
public:
  explicit RouteSearch(const Chip& chip) : chip_(chip), links_of_(chip.cores.size()) {}

  /// Computes routes of a limited number of hops from a core to all others, avoiding some links.
  void run(CoreId from, const std::vector<LinkId>& avoided,
           std::size_t max_hops = std::numeric_limits<std::size_t>::max()) {
    steps_.assign(chip_.cores.size(), {});
    exhausted_.assign(chip_.links.size(), false);
    for (const LinkId link : avoided)
      exhausted_[link.index()] = true;
    steps_[from.index()].hops = 0;
    steps_[from.index()].narrowest = std::numeric_limits<std::int64_t>::max();
    std::vector<CoreId> layer{from};
    for (std::size_t hops = 0; hops < max_hops && !layer.empty(); ++hops) {
      std::erase_if(layer, [&](CoreId here) { return here != from && !passes_on(chip_, here); });
      std::vector<CoreId> next;
      for (const CoreId here : layer)
        leave(here, here == from, next);
      // All cores of a bus in use have been reached; the next layer cannot improve on it.
      for (const CoreId here : layer) {
        for (const LinkId id : links_of(here))
          exhausted_[id.index()] =
              exhausted_[id.index()] || chip_.links[id.index()].reach == LinkReach::any_pair;
      }
      layer = std::move(next);
    }
  }

  std::vector<LinkId> route(CoreId from, CoreId to) const {
    std::vector<LinkId> route;
    if (steps_[to.index()].hops == std::numeric_limits<std::size_t>::max())
      return route;
    for (std::size_t at = to.index(); at != from.index(); at = steps_[at].before)
      route.push_back(steps_[at].link);
    std::reverse(route.begin(), route.end());
    return route;
  }

private:
  /// Links of a core, computed on first use because most searches visit few cores.
  const std::vector<LinkId>& links_of(CoreId core) {
    std::vector<LinkId>& links = links_of_[core.index()];
    if (!links.empty())
      return links;
    for (std::size_t l = 0; l < chip_.links.size(); ++l) {
      if (contains(chip_.links[l], core))
        links.emplace_back(l);
    }
    return links;
  }

  static bool contains(const Link& link, CoreId core) {
    return std::find(link.cores.begin(), link.cores.end(), core) != link.cores.end();
  }

  void leave(CoreId here, bool first, std::vector<CoreId>& next) {
    const Step from = steps_[here.index()];
    const bool helper = !first && chip_.cores[here.index()].kind != CoreKind::array;
    for (const LinkId id : links_of(here)) {
      if (exhausted_[id.index()])
        continue;
      const Link& link = chip_.links[id.index()];
      const Step way{from.hops + 1,
                     from.helpers + (helper ? 1U : 0U),
                     from.buses + (link.cores.size() > 2 ? 1U : 0U),
                     std::min(from.narrowest, link.bandwidth_bits_per_cycle),
                     here.index(),
                     id};
      for (const CoreId to : link.cores) {
        Step& known = steps_[to.index()];
        if (known.hops < way.hops || !carries(chip_, link, here, to))
          continue;
        if (known.hops > way.hops) {
          next.push_back(to);
          known = way;
        } else if (std::tuple(way.helpers, way.buses, -way.narrowest) <
                   std::tuple(known.helpers, known.buses, -known.narrowest)) {
          known = way;
        }
      }
    }
  }

  const Chip& chip_;
  std::vector<std::vector<LinkId>> links_of_;
  std::vector<Step> steps_;
  std::vector<bool> exhausted_;
};

/// Energy in pJ of one instance per cycle if every port moves a full word, leakage included.
double port_energy_pj(const Memory& memory) {
  double energy = memory.leakage_pj_per_cycle;
  for (const MemoryPort& port : memory.ports) {
    energy += port.type == PortType::read ? memory.read_energy_pj
              : port.type == PortType::write
                  ? memory.write_energy_pj
                  : std::max(memory.read_energy_pj, memory.write_energy_pj);
  }
  return energy;
}

/// Whether an earlier core shares this memory, so that it has been counted.
bool counted_before(const Chip& chip, MemoryPlace place) {
  return chip.place_of(place).core != place.core;
}

/// Whether two cores have the same memory; operands and ports may differ between the cores.
bool equal_memories(const Core& core, const Memory& memory, const Core& other_core,
                    const Memory& other) {
  return memory.name == other.name && memory.size == other.size &&
         instances(core, memory) == instances(other_core, other);
}

bool aliased(const Chip& chip, CoreId core) {
  return std::ranges::any_of(chip.memory_aliases, [core](const auto& one) {
    return std::ranges::find(one, core, &MemoryPlace::core) != one.end();
  });
}

bool earlier(const MemoryPlace& a, const MemoryPlace& b) {
  return std::pair(a.core, a.memory) < std::pair(b.core, b.memory);
}

} // namespace

const std::vector<LinkId>& Chip::route(CoreId from, CoreId to) const {
  return routes.at(from.index()).at(to.index());
}

bool Chip::connected(CoreId from, CoreId to) const {
  return memory_of(from) == memory_of(to) || !route(from, to).empty();
}

double Chip::area_mm2() const {
  double area = 0;
  for (std::size_t i = 0; i < compute_cores(); ++i) {
    area += cores[i].area_mm2();
    for (std::size_t m = 0; m < cores[i].memories.size(); ++m) {
      const Memory& memory = cores[i].memories[m];
      if (counted_before(*this, {CoreId(i), m}))
        area -= memory.area_mm2 * static_cast<double>(instances(cores[i], memory));
    }
  }
  return area;
}

std::optional<double> peak_power_w(const Chip& chip) {
  if (chip.frequency_hz <= 0)
    return std::nullopt;
  double picojoules = 0; // per cycle
  for (std::size_t i = 0; i < chip.cores.size(); ++i) {
    const Core& core = chip.cores[i];
    if (i < chip.compute_cores())
      picojoules += max_energy_pj(core);
    for (std::size_t m = 0; m < core.memories.size(); ++m) {
      const Memory& memory = core.memories[m];
      if (counted_before(chip, {CoreId(i), m}))
        continue;
      if (core.imc != nullptr && m == core.imc->cells)
        continue; // read as a part of the array, and not written while it computes
      const std::int64_t count = i < chip.compute_cores() ? instances(core, memory) : 1;
      picojoules += port_energy_pj(memory) * static_cast<double>(count);
    }
  }
  for (const Link& link : chip.links) {
    picojoules += link.energy_pj_per_cycle +
                  link.energy_pj_per_bit * static_cast<double>(link.bandwidth_bits_per_cycle);
  }
  constexpr double kJoules = 1e-12; // in a picojoule
  return picojoules * kJoules * chip.frequency_hz;
}

double leakage_per_cycle(const Chip& chip, CoreId id) {
  const Core& core = chip.cores[id.index()];
  double per_cycle = 0;
  for (std::size_t m = 0; m < core.memories.size(); ++m) {
    const Memory& memory = core.memories[m];
    if (counted_before(chip, {id, m}))
      continue;
    per_cycle += memory.leakage_pj_per_cycle * static_cast<double>(instances(core, memory));
  }
  return per_cycle;
}

void make_routes(Chip& chip) {
  const std::size_t count = chip.cores.size();
  chip.routes.assign(count, std::vector<std::vector<LinkId>>(count));
  std::vector<CoreId> memory;
  for (std::size_t core = 0; core < count; ++core)
    memory.push_back(chip.memory_of(CoreId(core)));
  RouteSearch search(chip);
  for (std::size_t from = 0; from < count; ++from) {
    search.run(CoreId(from), {});
    for (std::size_t to = 0; to < count; ++to) {
      if (memory[from] != memory[to])
        chip.routes[from][to] = search.route(CoreId(from), CoreId(to));
    }
  }
}

std::vector<LinkId> second_route(const Chip& chip, CoreId from, CoreId to) {
  const std::vector<LinkId>& first = chip.route(from, to);
  if (first.empty())
    return {};
  RouteSearch search(chip);
  search.run(from, first, first.size());
  return search.route(from, to);
}

void verify(const Chip& chip) {
  for (const Link& link : chip.links) {
    internal_check(link.bandwidth_bits_per_cycle > 0, "link '" + link.name + "' has no bandwidth");
    internal_check(link.latency_cycles >= 0, "link '" + link.name + "' delivers before it sends");
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
  internal_check(chip.routers.empty() || chip.routers.size() == chip.cores.size(),
                 "routers are not given per core");
  internal_check(chip.routes.size() == chip.cores.size(), "routes were not made");
}

CoreId Chip::memory_of(CoreId core) const {
  CoreId first = core;
  for (const auto& group : shared_memory) {
    if (std::find(group.begin(), group.end(), core) != group.end())
      first = std::min(first, *std::min_element(group.begin(), group.end()));
  }
  return first == core ? core : memory_of(first); // groups may overlap
}

MemoryPlace Chip::place_of(MemoryPlace place) const {
  const CoreId pool = memory_of(place.core);
  if (aliased(*this, place.core)) {
    MemoryPlace first = place;
    for (const auto& one : memory_aliases) {
      if (std::ranges::find(one, place) != one.end())
        first = std::min(first, *std::ranges::min_element(one, earlier), earlier);
    }
    return first == place ? place : place_of(first); // aliases may overlap
  }
  const Core& core = cores.at(place.core.index());
  const Memory& memory = core.memories.at(place.memory);
  for (std::size_t c = pool.index(); c < place.core.index(); ++c) {
    for (std::size_t m = 0; m < cores[c].memories.size(); ++m) {
      if (equal_memories(cores[c], cores[c].memories[m], core, memory) &&
          memory_of(CoreId(c)) == pool && !aliased(*this, CoreId(c)))
        return {CoreId(c), m};
    }
  }
  return place;
}

std::int64_t Chip::pool_bits(CoreId id) const {
  const CoreId pool = memory_of(id);
  std::vector<MemoryPlace> counted;
  std::int64_t bits = 0;
  for (std::size_t c = pool.index(); c < cores.size(); ++c) {
    if (memory_of(CoreId(c)) != pool)
      continue;
    const Core& core = cores[c];
    for (std::size_t m = 0; m < core.memories.size(); ++m) {
      const Memory& memory = core.memories[m];
      const bool outermost = std::ranges::any_of(
          memory.operands, [&](MemoryOperand operand) { return core.top(operand) == &memory; });
      const MemoryPlace place = place_of({CoreId(c), m});
      if (!outermost || std::ranges::find(counted, place) != counted.end())
        continue;
      counted.push_back(place);
      bits = checked_add(bits, checked_multiply(memory.size.value, instances(core, memory)));
    }
  }
  return bits;
}

} // namespace monet
