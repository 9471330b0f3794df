// The share of the off-chip memory's bandwidth that one of several streaming cores gets.
#include "monet/schedule/schedule.hpp"

#include <algorithm>

namespace monet {

namespace {

bool contains(const std::vector<LinkId>& links, LinkId id) {
  return std::ranges::find(links, id) != links.end();
}

/// One direction: bits per cycle of the port, or of the link on the way with the smallest share.
template <class Route>
double share(const Chip& chip, const std::vector<LinkId>& links,
             const std::vector<CoreId>& together, double port, Route route_of) {
  double least = port / static_cast<double>(std::max<std::size_t>(1, together.size()));
  for (const LinkId id : links) {
    const auto users = std::ranges::count_if(
        together, [&](CoreId other) { return contains(route_of(other), id); });
    const auto bandwidth = static_cast<double>(chip.links[id.index()].bandwidth_bits_per_cycle);
    least = std::min(least, bandwidth / static_cast<double>(std::max<std::ptrdiff_t>(1, users)));
  }
  return least;
}

/// pJ for one bit over a route.
double link_energy(const Chip& chip, const std::vector<LinkId>& links) {
  double pj = 0;
  for (const LinkId id : links) {
    const Link& link = chip.links[id.index()];
    pj += link.energy_pj_per_bit +
          link.energy_pj_per_cycle / static_cast<double>(link.bandwidth_bits_per_cycle);
  }
  return pj;
}

} // namespace

OffchipRate offchip_rate(const Chip& chip, CoreId core, const std::vector<CoreId>& together) {
  OffchipRate rate;
  if (!chip.offchip)
    return rate;
  const CoreId memory = *chip.offchip;
  const OffchipPort port = offchip_port(chip);
  const std::vector<LinkId>& in = chip.route(memory, core);
  const std::vector<LinkId>& out = chip.route(core, memory);
  const auto read = static_cast<double>(port.read_bits_per_cycle);
  const auto write = static_cast<double>(port.write_bits_per_cycle);
  rate.read_bits_per_cycle = share(
      chip, in, together,
      read, [&](CoreId other) -> const auto& { return chip.route(memory, other); });
  rate.write_bits_per_cycle = share(
      chip, out, together,
      write, [&](CoreId other) -> const auto& { return chip.route(other, memory); });
  rate.shared =
      port.shared || std::ranges::any_of(in, [&](LinkId id) { return contains(out, id); });
  rate.read_pj_per_bit = port.read_pj_per_bit + link_energy(chip, in);
  rate.write_pj_per_bit = port.write_pj_per_bit + link_energy(chip, out);
  return rate;
}

} // namespace monet
