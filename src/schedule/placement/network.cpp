// Plans transfers over shared links and the off-chip port, and books those that end first.
// data_mover.cpp requests them.
#include "schedule/placement/network.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>

namespace monet {

Network::Network(const Chip& chip, const TransferRules& rules) : chip_(chip), rules_(rules) {
  if (!chip.offchip) {
    throw InfeasibleError(
        fmt::format("'{}' has no off-chip memory to hold the parameters and inputs", chip.name));
  }
  port_ = offchip_port(chip);
  const auto add = [&](std::int64_t bandwidth) {
    timelines_.emplace_back(rules.share_links ? std::max<std::int64_t>(1, bandwidth) : 1);
  };
  for (const Link& link : chip.links) {
    add(link.bandwidth_bits_per_cycle);
    has_latency_ = has_latency_ || link.latency_cycles > 0;
  }
  // A shared port with two widths has the larger one in its timeline.
  add(port_.shared ? std::max(port_.read_bits_per_cycle, port_.write_bits_per_cycle)
                   : port_.read_bits_per_cycle);
  if (!port_.shared)
    add(port_.write_bits_per_cycle);
  read_port_counts_ = port_can_be_full(true);
  write_port_counts_ = port_can_be_full(false);
  to_offchip_.resize(chip_.links.size(), false);
  for_each_offchip_way([&](CoreId from, CoreId to, bool /*reads*/) {
    for (const LinkId id : chip_.route(from, to))
      to_offchip_[id.index()] = true;
  });
  ways_.resize(chip.cores.size() * chip.cores.size());
  for (const Core& core : chip.cores) {
    reads_.push_back(word_access(core, MemoryOperand::O, false));
    for (int operand = 0; operand < kMemoryOperands; ++operand)
      writes_.push_back(word_access(core, static_cast<MemoryOperand>(operand), true));
  }
}

/// Calls `visit(from, to, reads)` for the routes from the off-chip memory to each core and back.
template <class Visit>
void Network::for_each_offchip_way(Visit visit) const {
  for (std::size_t core = 0; core < chip_.compute_cores(); ++core) {
    for (const bool reads : {true, false}) {
      const CoreId from = reads ? offchip() : CoreId(core);
      const CoreId to = reads ? CoreId(core) : offchip();
      if (chip_.connected(from, to))
        visit(from, to, reads);
    }
  }
}

/// Maximum speed on the link that leaves the off-chip port its width.
std::int64_t Network::speed_beside_port(LinkId id) const {
  const std::int64_t width = chip_.links[id.index()].bandwidth_bits_per_cycle;
  const std::int64_t port = std::max(port_.read_bits_per_cycle, port_.write_bits_per_cycle);
  const bool both = rules_.share_links && to_offchip_[id.index()];
  return both && width / 2 >= port ? width - port : width;
}

/// False if a link no wider than the port is part of all its routes: this link is full before the
/// port.
bool Network::port_can_be_full(bool read) const {
  const bool both = port_.shared;
  std::optional<std::vector<LinkId>> common;
  const auto keep = [&](std::vector<LinkId> links) {
    if (common)
      std::erase_if(links, [&](LinkId id) {
        return std::find(common->begin(), common->end(), id) == common->end();
      });
    common = std::move(links);
  };
  for_each_offchip_way([&](CoreId from, CoreId to, bool reads) {
    if (!both && reads != read)
      return;
    keep(chip_.route(from, to));
    std::vector<LinkId> other = second_route(chip_, from, to);
    if (rules_.free_routing && !other.empty())
      keep(std::move(other));
  });
  std::int64_t width = read ? port_.read_bits_per_cycle : port_.write_bits_per_cycle;
  if (both)
    width = std::min(port_.read_bits_per_cycle, port_.write_bits_per_cycle);
  return !common || std::none_of(common->begin(), common->end(), [&](LinkId id) {
    return chip_.links[id.index()].bandwidth_bits_per_cycle <= width;
  });
}

bool Network::direct(CoreId from, CoreId to) const {
  const bool shut = (from == offchip() && port_.read_bits_per_cycle <= 0) ||
                    (to == offchip() && port_.write_bits_per_cycle <= 0);
  if (from == to || shut)
    return false;
  const std::vector<LinkId>& route = chip_.route(from, to);
  return !route.empty() &&
         (rules_.free_routing || route.size() <= 2 || from == offchip() || to == offchip());
}

void Network::add_path(CoreId from, std::span<const CoreId> to, Tree tree) {
  Path path;
  path.bits_per_cycle = std::numeric_limits<std::int64_t>::max();
  const bool writes = std::ranges::find(to, offchip()) != to.end();
  for (const LinkId id : tree.links) {
    path.resources.push_back(id.value);
    const bool between_cores = from != offchip() && !writes;
    path.bits_per_cycle = std::min(
        path.bits_per_cycle,
        between_cores ? speed_beside_port(id) : chip_.links[id.index()].bandwidth_bits_per_cycle);
  }
  const auto port = static_cast<std::uint32_t>(chip_.links.size());
  if (from == offchip()) {
    path.bits_per_cycle = std::min(path.bits_per_cycle, port_.read_bits_per_cycle);
    if (read_port_counts_)
      path.resources.push_back(port);
  }
  if (writes) {
    path.bits_per_cycle = std::min(path.bits_per_cycle, port_.write_bits_per_cycle);
    if (write_port_counts_)
      path.resources.push_back(port_.shared ? port : port + 1);
  }
  internal_check(path.bits_per_cycle > 0, "a way without bandwidth");
  Route& route = routes_.emplace_back(
      Route{from, {to.begin(), to.end()}, std::move(tree.links), std::move(tree.latency)});
  path.latency = route.longest_latency();
  paths_.push_back(std::move(path));
}

/// Adds a receiver with its route. A link that several receivers use is in the tree once.
void Network::add_to(Tree& tree, const std::vector<LinkId>& way) const {
  std::int64_t latency = 0;
  for (const LinkId id : way) {
    latency += chip_.links[id.index()].latency_cycles;
    if (std::ranges::find(tree.links, id) == tree.links.end())
      tree.links.push_back(id);
  }
  if (has_latency_)
    tree.latency.push_back(latency);
}

/// Adds the chip's routes to the receivers and, if they differ, alternative routes.
Network::Paths Network::add_ways(CoreId from, std::span<const CoreId> to) {
  Tree first;
  Tree second;
  for (const CoreId core : to) {
    if (!direct(from, core)) {
      throw InfeasibleError(fmt::format("'{}' has no route from core {} ('{}') to core {} ('{}')",
                                        chip_.name, from.index(), chip_.cores[from.index()].name,
                                        core.index(), chip_.cores[core.index()].name));
    }
    add_to(first, chip_.route(from, core));
    const std::vector<LinkId> other =
        rules_.free_routing ? second_route(chip_, from, core) : std::vector<LinkId>{};
    add_to(second, other.empty() ? chip_.route(from, core) : other);
  }
  Paths ways{static_cast<std::uint32_t>(paths_.size()), 1};
  const bool same = second.links == first.links;
  add_path(from, to, std::move(first));
  if (!same) {
    add_path(from, to, std::move(second));
    ways.count = 2;
  }
  return ways;
}

/// The paths of the request, added on first use.
Network::Paths Network::ways(const TransferRequest& request) {
  if (request.also.empty()) {
    Paths& known = ways_[request.from.index() * chip_.cores.size() + request.to.index()];
    if (known.count == 0)
      known = add_ways(request.from, {&request.to, 1});
    return known;
  }
  key_.assign(1, request.from);
  key_.push_back(request.to);
  key_.insert(key_.end(), request.also.begin(), request.also.end());
  std::sort(key_.begin() + 1, key_.end());
  const auto found = trees_.find(key_);
  if (found != trees_.end())
    return found->second;
  const Paths added = add_ways(request.from, std::span(key_).subspan(1));
  trees_.emplace(key_, added);
  return added;
}

std::int64_t Network::occupancy(const TransferRequest& request) {
  const Paths ways = this->ways(request);
  std::int64_t width = 0;
  for (std::uint32_t path = ways.first; path < ways.first + ways.count; ++path)
    width = std::max(width, paths_[path].bits_per_cycle);
  return port_.cycles({request.bits, request.rows, width});
}

std::int64_t Network::duration(const TransferRequest& request) {
  if (!has_latency_)
    return occupancy(request);
  const Paths ways = this->ways(request);
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (std::uint32_t path = ways.first; path < ways.first + ways.count; ++path) {
    const Path& way = paths_[path];
    least = std::min(least,
                     port_.cycles({request.bits, request.rows, way.bits_per_cycle}) + way.latency);
  }
  return least;
}

std::int64_t Network::soonest(const TransferRequest& request, std::int64_t ready) {
  const std::int64_t least = duration(request);
  return ready + (request.rows == 0 ? least : 0); // rows depend on pieces and speed
}

std::int64_t Network::arrival(const Booking& booking, CoreId receiver) const {
  if (!has_latency_)
    return booking.end;
  const Route& route = routes_[booking.route];
  const auto at = std::ranges::find(route.to, receiver);
  internal_check(at != route.to.end(), "a core asks for what is sent to others");
  return booking.end + route.latency_to(static_cast<std::size_t>(at - route.to.begin()));
}

namespace {

/// Minimum cycles of a piece; shorter gaps stay unused.
constexpr std::int64_t kShortestPiece = 32;

/// The lowest speed that takes no longer, in sixteenths of the full one. Sums of few different
/// speeds leave fewer unusable gaps.
std::int64_t speed_of(Bits bits, std::int64_t length, std::int64_t full) {
  const std::int64_t step = std::max<std::int64_t>(1, full / 16);
  return std::min(full, ceil_div(ceil_div(bits.value, length), step) * step);
}

} // namespace

/// Plan from `ready` on at the speed that is free on the whole route then. If it does not end
/// before `before`, its end is the maximum value.
Network::Plan Network::share_now(std::uint32_t path, const TransferRequest& request,
                                 std::int64_t ready, std::int64_t before) {
  Plan plan{ready, std::numeric_limits<std::int64_t>::max(), 0, path};
  std::int64_t free = paths_[path].bits_per_cycle;
  for (const std::uint32_t resource : paths_[path].resources)
    free = std::min(free, timelines_[resource].free_at(ready));
  if (free == 0)
    return plan;
  const std::int64_t length = port_.cycles({request.bits, request.rows, free});
  if (length >= before - ready)
    return plan;
  plan.share = speed_of(request.bits, ceil_div(request.bits.value, free), free);
  for (const std::uint32_t resource : paths_[path].resources) {
    if (!timelines_[resource].fits(ready, length, plan.share))
      return plan;
  }
  plan.end = ready + length;
  return plan;
}

/// First time at which all links of the path are free, as first_common_fit() finds it; skips times
/// known to be full.
std::int64_t Network::first_fit(std::uint32_t path, std::int64_t from, std::int64_t length,
                                std::int64_t share) {
  Path& way = paths_[path];
  if (way.resources.size() < 2 || share != way.bits_per_cycle)
    return first_common_fit(timelines_, way.resources, from, length, share);
  Path::Full& full = way.full[length];
  const bool known = from >= full.from && from <= full.until;
  const std::int64_t begin = known ? full.until : from;
  const std::int64_t at = first_common_fit(timelines_, way.resources, begin, length, share);
  if (known || (from < full.from && at >= full.from))
    full = {std::min(from, full.from), std::max(at, full.until)};
  else if (at - begin > full.until - full.from)
    full = {begin, at};
  return at;
}

/// The plan on one path that ends first: at full speed, at once at a lower speed, or in pieces.
Network::Plan Network::plan_on(std::uint32_t path, const TransferRequest& request,
                               std::int64_t ready) {
  const std::int64_t full = paths_[path].bits_per_cycle;
  const PortTransfer transfer{request.bits, request.rows, full};
  const std::int64_t streaming = transfer.streaming();
  const std::int64_t length = port_.cycles_of_part(transfer, streaming);
  const std::int64_t share = rules_.share_links ? speed_of(request.bits, streaming, full) : 1;
  const std::int64_t start = first_fit(path, ready, length, share);
  const Plan plan{start, start + length, share, path};
  if (start == ready || !rules_.share_links)
    return plan;
  const Plan slower = share_now(path, request, ready, plan.end);
  const Plan& one = slower.end < plan.end ? slower : plan;
  if (!rules_.pieces)
    return one;
  const Plan pieces = split(path, request, ready, one.end);
  return pieces.end < one.end ? pieces : one;
}

/// Plan in several pieces at full speed, in the first gaps of sufficient length. If it does not end
/// before `before`, its end is the maximum value.
Network::Plan Network::split(std::uint32_t path, const TransferRequest& request, std::int64_t ready,
                             std::int64_t before) {
  Plan plan{ready, std::numeric_limits<std::int64_t>::max(), 0, path};
  const auto& resources = paths_[path].resources;
  const std::int64_t full = paths_[path].bits_per_cycle;
  const PortTransfer transfer{request.bits, request.rows, full};
  std::int64_t left = transfer.streaming();
  const auto least = static_cast<std::int64_t>(
      std::bit_ceil(static_cast<std::uint64_t>(std::max(kShortestPiece, left / 8))));
  if (left < 2 * least || resources.empty())
    return plan;
  plan.share = full;
  std::int64_t at = ready;
  for (plan.pieces = 1;; ++plan.pieces) {
    const bool last = plan.pieces == kMaxPieces;
    const std::int64_t whole = port_.cycles_of_part(transfer, left);
    const std::int64_t wanted =
        last || left <= least ? whole : port_.cycles_of_part(transfer, least);
    at = first_fit(path, at, wanted, full);
    if (at + whole >= before)
      return plan;
    std::int64_t end = at + whole;
    for (const std::uint32_t resource : resources)
      end = std::min(end, timelines_[resource].free_until(at, full));
    if (end == at + whole) {
      plan.start = at;
      plan.end = end;
      return plan;
    }
    const std::int64_t part = port_.longest_part(transfer, end - at, left);
    plan.before[plan.pieces - 1] = {at, at + port_.cycles_of_part(transfer, part)};
    left -= part;
    at = end;
  }
}

Network::Plan Network::plan(const TransferRequest& request, std::int64_t ready) {
  if (!request.also.empty())
    return new_plan(request, ready);
  for (const Planned& known : planned_) {
    if (known.ready == ready && known.bits == request.bits && known.from == request.from &&
        known.to == request.to && known.rows == request.rows)
      return known.plan;
  }
  Planned& known = planned_[next_planned_++ % kPlansKept];
  known = {request.from, request.to, request.bits, request.rows, ready, new_plan(request, ready)};
  return known.plan;
}

/// The plan with the earliest arrival over all paths of the request.
Network::Plan Network::new_plan(const TransferRequest& request, std::int64_t ready) {
  const Paths ways = this->ways(request);
  Plan best = plan_on(ways.first, request, ready);
  if (ways.count == 2) {
    const std::uint32_t second = ways.first + 1;
    const std::int64_t arrival = best.end + paths_[ways.first].latency;
    const std::int64_t latency = paths_[second].latency;
    const std::int64_t soonest =
        ready + port_.cycles({request.bits, request.rows, paths_[second].bits_per_cycle}) + latency;
    if (soonest < arrival) {
      const Plan other = plan_on(second, request, ready);
      if (other.end + latency < arrival)
        best = other;
    }
  }
  return best;
}

std::int64_t Network::arrival(const TransferRequest& request, std::int64_t ready) {
  const Plan chosen = plan(request, ready);
  return chosen.end + paths_[chosen.path].latency;
}

std::span<const Booking> Network::reserve(const TransferRequest& request, std::int64_t ready) {
  internal_check(request.bits.value > 0, "a transfer of nothing");
  const Plan chosen = plan(request, ready);
  for (Planned& known : planned_)
    known.ready = -1;
  booked_.clear();
  const PortTransfer transfer{request.bits, request.rows, chosen.share};
  std::int64_t left = transfer.streaming();
  Bits before{0};
  for (std::uint32_t piece = 1; piece <= chosen.pieces; ++piece) {
    const bool last = piece == chosen.pieces;
    Booking& booking = booked_.emplace_back();
    booking.route = chosen.path;
    booking.start = last ? chosen.start : chosen.before[piece - 1].first;
    booking.end = last ? chosen.end : chosen.before[piece - 1].second;
    const std::int64_t part =
        last ? left : port_.longest_part(transfer, booking.end - booking.start, left);
    booking.bits = last ? request.bits - before : Bits{part * chosen.share};
    booking.rows = port_.rows_of_part(transfer, part);
    left -= part;
    for (const std::uint32_t resource : paths_[chosen.path].resources)
      timelines_[resource].book(booking.start, booking.end, chosen.share);
    add_energy(request, before, booking);
    before += booking.bits;
  }
  return booked_;
}

/// Sets the energies of a piece that follows the bits `before`. Words that two pieces share count
/// once.
void Network::add_energy(const TransferRequest& request, Bits before, Booking& booking) const {
  const auto bits = static_cast<double>(booking.bits.value);
  const auto words = [&](const WordAccess& cost) {
    return cost.of(before + booking.bits) - cost.of(before);
  };
  double links = 0;
  for (const LinkId id : routes_[booking.route].links) {
    const Link& link = chip_.links[id.index()];
    // Cycles count as if the link transferred at its full bandwidth.
    const auto bandwidth = static_cast<double>(link.bandwidth_bits_per_cycle);
    links += bits * (link.energy_pj_per_cycle / bandwidth + link.energy_pj_per_bit);
  }
  booking.link_energy = Energy::from({links});
  // The core cost includes the energy of streamed operands in the core's own memories.
  const bool stream = request.kind == TransferKind::stream;
  double offchip = 0;
  double onchip = 0;
  if (request.from == *chip_.offchip) {
    offchip += port_.energy_pj(bits, 0);
  } else if (!stream) {
    onchip += words(reads_[request.from.index()]);
  }
  for (const CoreId to : routes_[booking.route].to) {
    if (to == *chip_.offchip) {
      offchip += port_.energy_pj(0, bits);
    } else if (!stream) {
      onchip += words(writes_[to.index() * std::size_t{kMemoryOperands} +
                              static_cast<std::size_t>(request.operand)]);
    }
  }
  booking.offchip_energy = Energy::from({offchip});
  booking.onchip_energy = Energy::from({onchip});
}

} // namespace monet
