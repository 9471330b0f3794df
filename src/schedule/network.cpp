#include "schedule/network.hpp"

#include "monet/base/errors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace monet {

namespace {

/// pJ for moving so many bits into or out of a core's top memory, in words of the port's full
/// width.
double access_energy(const Core& core, MemoryOperand operand, Direction direction,
                     Direction fallback, Bits bits) {
  const Memory* memory = core.top(operand);
  if (memory == nullptr)
    return 0;
  const MemoryPort* port = port_of(*memory, operand, direction);
  if (port == nullptr)
    port = port_of(*memory, operand, fallback);
  const std::int64_t word = port ? std::max<std::int64_t>(1, port->bandwidth_max) : bits.value;
  const bool write = direction == Direction::fh || direction == Direction::fl;
  const double per_word = write ? memory->write_energy_pj : memory->read_energy_pj;
  return static_cast<double>(ceil_div(bits.value, word)) * per_word;
}

} // namespace

Network::Network(const Chip& chip) : chip_(chip) {
  if (!chip.offchip) {
    throw InfeasibleError(
        fmt::format("'{}' has no off-chip memory to hold the parameters and inputs", chip.name));
  }
  port_ = offchip_port(chip);
  timelines_.resize(chip.links.size() + (port_.shared ? 1 : 2));
  for (std::size_t from = 0; from < chip.cores.size(); ++from) {
    for (std::size_t to = 0; to < chip.cores.size(); ++to) {
      paths_.push_back(make_path(CoreId(from), CoreId(to)));
    }
  }
}

Network::Path Network::make_path(CoreId from, CoreId to) const {
  Path path;
  if (from == to || !chip_.connected(from, to))
    return path;
  path.direct = true;
  path.bits_per_cycle = std::numeric_limits<std::int64_t>::max();
  for (const LinkId id : chip_.route(from, to)) {
    const Link& link = chip_.links[id.index()];
    if (std::find(path.resources.begin(), path.resources.end(), id.index()) ==
        path.resources.end()) {
      path.resources.push_back(id.index());
    }
    path.bits_per_cycle = std::min(path.bits_per_cycle, link.bandwidth_bits_per_cycle);
  }
  if (from == *chip_.offchip) {
    path.resources.push_back(chip_.links.size());
    path.bits_per_cycle = std::min(path.bits_per_cycle, port_.read_bits_per_cycle);
  }
  if (to == *chip_.offchip) {
    path.resources.push_back(chip_.links.size() + (port_.shared ? 0 : 1));
    path.bits_per_cycle = std::min(path.bits_per_cycle, port_.write_bits_per_cycle);
  }
  if (path.resources.empty() || path.bits_per_cycle <= 0)
    path.direct = false;
  return path;
}

const Network::Path& Network::path(CoreId from, CoreId to) const {
  return paths_[from.index() * chip_.cores.size() + to.index()];
}

bool Network::direct(CoreId from, CoreId to) const {
  return path(from, to).direct;
}

std::int64_t Network::duration(CoreId from, CoreId to, Bits bits) const {
  return ceil_div(bits.value, path(from, to).bits_per_cycle);
}

std::int64_t Network::earliest(CoreId from, CoreId to, Bits bits, std::int64_t ready) const {
  return first_common_gap(timelines_, path(from, to).resources, ready, duration(from, to, bits));
}

Booking Network::reserve(const TransferRequest& request, std::int64_t ready) {
  internal_check(request.bits.value > 0, "a transfer of nothing");
  if (!direct(request.from, request.to)) {
    throw InfeasibleError(fmt::format("'{}' has no route from core {} ('{}') to core {} ('{}')",
                                      chip_.name, request.from.index(),
                                      chip_.cores[request.from.index()].name, request.to.index(),
                                      chip_.cores[request.to.index()].name));
  }
  Booking booking;
  booking.route = route(request.from, request.to);
  booking.start = earliest(request.from, request.to, request.bits, ready);
  booking.end = booking.start + duration(request.from, request.to, request.bits);
  for (const std::size_t resource : path(request.from, request.to).resources)
    timelines_[resource].occupy(booking.start, booking.end);
  add_energy(request, booking);
  return booking;
}

std::uint32_t Network::route(CoreId from, CoreId to) {
  auto& known = paths_[from.index() * chip_.cores.size() + to.index()].route;
  if (!known) {
    known = static_cast<std::uint32_t>(routes_.size());
    routes_.push_back({from, {to}, chip_.route(from, to)});
  }
  return *known;
}

void Network::add_energy(const TransferRequest& request, Booking& booking) const {
  const auto bits = static_cast<double>(request.bits.value);
  const auto cycles = static_cast<double>(booking.end - booking.start);
  double links = 0;
  for (const LinkId id : routes_[booking.route].links) {
    const Link& link = chip_.links[id.index()];
    links += cycles * link.energy_pj_per_cycle + bits * link.energy_pj_per_bit;
  }
  booking.link_energy = Energy::from({links});
  // What a streamed operand costs in the core's own memories is part of the core cost.
  const bool stream = request.kind == TransferKind::stream;
  double offchip = 0;
  double onchip = 0;
  if (request.from == *chip_.offchip) {
    offchip += bits * port_.read_pj_per_bit;
  } else if (!stream) {
    onchip += access_energy(chip_.cores[request.from.index()], MemoryOperand::O, Direction::th,
                            Direction::tl, request.bits);
  }
  if (request.to == *chip_.offchip) {
    offchip += bits * port_.write_pj_per_bit;
  } else if (!stream) {
    onchip += access_energy(chip_.cores[request.to.index()], request.operand, Direction::fh,
                            Direction::fl, request.bits);
  }
  booking.offchip_energy = Energy::from({offchip});
  booking.onchip_energy = Energy::from({onchip});
}

} // namespace monet
