// Prices groups of operators on a chip by closed forms: memory, off-chip traffic, cycles and their
// overlap. The search in covers.cpp calls it for every group.
#include "tiling/fusion_estimate/price.hpp"

#include "base/shared/checked.hpp"
#include "hardware/shared/array_modes.hpp"
#include "tiling/shared/grid.hpp"
#include "tiling/stacks/working_set.hpp"

#include "monet/base/stop.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace monet {

namespace {

/// Bits per cycle between the off-chip memory and all cores together: the width of its port or of
/// the narrowest link that every route contains, whichever is smaller.
double offchip_width(const Chip& chip, bool read) {
  const OffchipPort port = offchip_port(chip);
  std::int64_t width = read ? port.read_bits_per_cycle : port.write_bits_per_cycle;
  std::vector<std::size_t> users(chip.links.size(), 0);
  std::size_t ways = 0;
  for (std::size_t core = 0; core < chip.compute_cores(); ++core) {
    const CoreId from = read ? *chip.offchip : CoreId(core);
    const CoreId to = read ? CoreId(core) : *chip.offchip;
    if (!chip.connected(from, to))
      continue;
    ++ways;
    for (const LinkId link : chip.route(from, to))
      ++users[link.index()];
  }
  for (std::size_t link = 0; link < users.size(); ++link) {
    if (ways > 0 && users[link] == ways)
      width = std::min(width, chip.links[link].bandwidth_bits_per_cycle);
  }
  return static_cast<double>(std::max<std::int64_t>(1, width));
}

} // namespace

GroupPricer::GroupPricer(const Graph& graph, const Chip& chip, CoreLists cores)
    : graph_(graph), chip_(chip), cores_(std::move(cores)), room_(chip),
      known_(graph.operators().size()), seen_(graph.tensors().size(), 0) {
  std::map<std::vector<CoreId>, std::uint32_t> pools;
  for (const auto& list : cores_) {
    const auto next = static_cast<std::uint32_t>(pools.size());
    const auto [known, added] = pools.emplace(list, next);
    pool_.push_back(known->second);
    if (!added)
      continue;
    std::vector<bool> used(chip.cores.size(), false);
    std::vector<bool> counted(chip.cores.size(), false);
    std::int64_t bits = 0;
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (const CoreId core : list) {
      used[core.index()] = true;
      least = std::min(least, chip.pool_bits(core));
      const std::size_t memory = chip.memory_of(core).index();
      if (!counted[memory])
        bits = checked_add(bits, chip.pool_bits(core));
      counted[memory] = true;
    }
    used_.push_back(std::move(used));
    pool_bits_.push_back(bits);
    core_bits_.push_back(least);
    tile_bits_.push_back(room_.of_a_tile(list));
  }
  for (std::size_t core = 0; core < chip.compute_cores(); ++core)
    onchip_ = checked_add(onchip_, outermost_bits(chip.cores[core]));
  if (chip.offchip) {
    offchip_ = {offchip_width(chip, true), offchip_width(chip, false), offchip_port(chip).shared};
  }
  for (const Tensor& tensor : graph.tensors())
    bits_.push_back(static_cast<double>(size_of(tensor).value));
  busy_.resize(used_.size());
  measure_ways();
  slowdowns_.resize(known_.size());
}

std::string GroupPricer::key() const {
  std::string key =
      fmt::format("{} {} {} {}", offchip_.read, offchip_.write, offchip_.shared, onchip_);
  for (const std::uint32_t pool : pool_)
    key += fmt::format(",{}", pool);
  for (const Transport& way : ways_)
    key += fmt::format(" {} {}", way.parts, way.all);
  for (std::size_t op = 0; op < cores_.size(); ++op) {
    const bool modes = std::ranges::any_of(
        cores_[op], [&](CoreId id) { return !chip_.cores[id.index()].modes.empty(); });
    if (modes)
      key += fmt::format("m{} {}", weakest(op).lanes(), cycles_per_product(weakest(op)));
  }
  std::size_t known = 0; // number of pools written so far
  for (std::size_t op = 0; op < pool_.size(); ++op) {
    if (pool_[op] < known)
      continue;
    ++known;
    const auto& list = cores_[op];
    const Core& core = weakest(op);
    const PortWidths ports = ports_of(core);
    key += fmt::format(";{} {} {} {} {} {} {} {}", list.size(), core.lanes(),
                       cycles_per_product(core), core_bits_[pool_[op]], room_.of_a_tile(list),
                       room_.together(used_[pool_[op]]), ports.read, ports.write);
    key += ports.shared ? 's' : 'a';
    for (const auto& dimension : core.dataflow) {
      for (const Unrolling& unrolling : dimension)
        key += fmt::format(" {}{}", unrolling.dim, unrolling.factor);
    }
  }
  return key;
}

/// The core with the fewest products per cycle among those that may run the operator.
const Core& GroupPricer::weakest(std::size_t op) const {
  const auto running = [&](CoreId id) -> const Core& {
    return in_mode_for(chip_.cores[id.index()], graph_, graph_.op(OpId(op)));
  };
  return running(*std::ranges::min_element(
      cores_[op], {}, [&](CoreId id) { return products_per_cycle(running(id)); }));
}

/// Computes the bandwidth between pools. For different parts: all links that leave or enter a pool,
/// each counted once. For the same data to all cores: the narrowest link on the first routes or on
/// the second routes, whichever is wider.
void GroupPricer::measure_ways() {
  const std::size_t pools = used_.size();
  ways_.resize(pools * pools);
  const auto width = [&](LinkId link) {
    return static_cast<double>(chip_.links[link.index()].bandwidth_bits_per_cycle);
  };
  for (std::size_t from = 0; from < pools; ++from) {
    for (std::size_t to = 0; to < pools; ++to) {
      std::vector<bool> leaves(chip_.links.size(), false), enters(chip_.links.size(), false);
      double first = std::numeric_limits<double>::infinity();
      double second = first;
      for (std::size_t a = 0; a < chip_.compute_cores(); ++a) {
        for (std::size_t b = 0; b < chip_.compute_cores(); ++b) {
          if (a == b || !used_[from][a] || !used_[to][b] || !chip_.connected(CoreId(a), CoreId(b)))
            continue;
          const auto& route = chip_.route(CoreId(a), CoreId(b));
          if (route.empty())
            continue;
          leaves[route.front().index()] = true;
          enters[route.back().index()] = true;
          for (const LinkId link : route)
            first = std::min(first, width(link));
          const auto other = second_route(chip_, CoreId(a), CoreId(b));
          for (const LinkId link : other.empty() ? route : other)
            second = std::min(second, width(link));
        }
      }
      double out = 0, in = 0;
      for (std::size_t link = 0; link < leaves.size(); ++link) {
        out += leaves[link] ? width(LinkId(link)) : 0;
        in += enters[link] ? width(LinkId(link)) : 0;
      }
      const double unlimited = std::numeric_limits<double>::infinity();
      ways_[from * pools + to] = {std::min(in, out) > 0 ? std::min(in, out) : unlimited,
                                  std::max(first, second)};
    }
  }
}

/// Cycles to bring another operator's result to the reader's cores once; 0 if it is already there.
double GroupPricer::link_cycles(OpId reader, const Access& access, const Share& own) const {
  const OpId maker = *graph_.tensor(access.tensor).producer;
  const std::uint32_t from = pool_[maker.index()];
  const std::uint32_t to = pool_[reader.index()];
  const bool parted = own.cores == 1 || (own.dim && moved_by(access, *own.dim));
  if (from == to && parted)
    return 0;
  const Transport& way = ways_[from * used_.size() + to];
  return bits_[access.tensor.index()] / (parted ? way.parts : way.all);
}

bool GroupPricer::learn(OpId op, const GroupSlices::Member& slices, double cycles) {
  std::vector<MeasuredSlowdown>& known = slowdowns_[op.index()];
  if (std::ranges::find(known, slices.parts, &MeasuredSlowdown::parts) != known.end())
    return false;
  const Share& own = share(op, slices.parts);
  known.push_back({slices.parts, cycles / slices.slices / std::max(own.least, own.cycles)});
  return true;
}

/// Cycles of one slice, with the slowdown of the most similar recorded slices.
double GroupPricer::cycles(OpId op, const Share& own) const {
  const auto& parts = own.parts;
  double slowdown = 1;
  double closest = std::numeric_limits<double>::infinity();
  for (const MeasuredSlowdown& known : slowdowns_[op.index()]) {
    double distance = known.parts.size() == parts.size() ? 0 : 1000; // another loop
    for (std::size_t i = 0; i < std::min(parts.size(), known.parts.size()); ++i) {
      distance += known.parts[i].first == parts[i].first
                      ? std::abs(std::log2(static_cast<double>(known.parts[i].second) /
                                           static_cast<double>(parts[i].second)))
                      : 1000;
    }
    if (distance < closest) {
      closest = distance;
      slowdown = known.slowdown;
    }
  }
  return std::max(own.least, own.cycles) * slowdown;
}

/// Division of an operator that runs whole. Operands that the cut over cores does not move are
/// stored on, or streamed to, each core in full.
OperatorSpread GroupPricer::spread(OpId op) {
  const Share& own = share(op, {});
  const LoopNest& nest = graph_.op(op).nest;
  OperatorSpread spread{core_bits_[pool_[op.index()]] * own.cores, {}};
  for (const Access& access : nest.operands)
    spread.cores.push_back(own.dim && !moved_by(access, *own.dim) ? own.cores : 1);
  return spread;
}

/// Computes the bits that each member reads from and writes to off-chip, if the group keeps the
/// tensors it passes on. With `whole`: the bits of an operator that runs whole and alone.
void GroupPricer::traffic(const std::vector<OpId>& members, bool whole) {
  if (alone_.reads.empty()) { // not computed earlier: key() needs no traffic
    for (std::size_t op = 0; op < graph_.operators().size(); ++op)
      spread_.push_back(spread(OpId(op)));
    alone_ = step_traffic(graph_, pool_, pool_bits_, spread_);
  }
  ++sight_;
  uses_.assign(members.size(), {});
  const auto inside = [&](OpId op) { return std::ranges::binary_search(members, op); };
  for (std::size_t m = 0; m < members.size(); ++m) {
    const auto& operands = graph_.op(members[m]).nest.operands;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const TensorId id = operands[i].tensor;
      const Tensor& tensor = graph_.tensor(id);
      if (operands[i].mode != AccessMode::read) {
        const bool leaves = tensor.consumers.empty() || tensor.alias_of ||
                            !std::ranges::all_of(tensor.consumers, inside);
        if (leaves && alone_.stored[id.index()])
          uses_[m].written += bits_[id.index()];
        continue;
      }
      if (seen_[id.index()] == sight_ || (tensor.producer && inside(*tensor.producer)))
        continue;
      seen_[id.index()] = sight_;
      const StepTraffic::Source source = alone_.reads[members[m].index()][i];
      if (source == StepTraffic::Source::streamed && whole)
        uses_[m].read += bits_[id.index()] * std::max(1, operands[i].passes) *
                         static_cast<double>(spread_[members[m].index()].cores[i]);
      else if (source != StepTraffic::Source::chip)
        uses_[m].read += bits_[id.index()];
    }
  }
}

/// True if the slices of every member can be divided over its cores so that each part fits.
bool GroupPricer::tiles_fit(const NeighbourGroup& group, const GroupSlices& way) const {
  for (std::size_t m = 0; m < group.members.size(); ++m) {
    const OpId op = group.members[m];
    if (graph_.op(op).phase == Phase::update)
      continue; // cut until it fits
    const std::int64_t cores = std::ssize(cores_[op.index()]);
    const std::int64_t room = part(tile_bits_[pool_[op.index()]]);
    const GroupSlices::Member& member = way.members[m];
    if (member.whole <= room) // the common case
      continue;
    if (member.least > room)
      return false;
    const bool fits = std::ranges::any_of(member.splits, [&](const auto& split) {
      const std::int64_t left = room - split.fixed;
      return left >= 0 && ceil_div(split.moved, std::min(cores, split.extent)) <= left;
    });
    if (!fits)
      return false;
  }
  return true;
}

/// Usable bits of all cores that may run a member other than an update.
std::int64_t GroupPricer::together(const NeighbourGroup& group) {
  used_by_group_.assign(chip_.cores.size(), false);
  for (const OpId op : group.members) {
    if (graph_.op(op).phase == Phase::update)
      continue;
    const auto& own = used_[pool_[op.index()]];
    for (std::size_t c = 0; c < own.size(); ++c)
      used_by_group_[c] = used_by_group_[c] || own[c];
  }
  return part(room_.together(used_by_group_));
}

/// True if the operands that the group keeps fit. The cheapest ones are brought again for each
/// slice, if necessary, and add to the traffic.
bool GroupPricer::keep(const NeighbourGroup& group, const GroupSlices& way) {
  check_stop();
  std::int64_t left = together(group) - way.space.passing;
  if (left < 0)
    return false;
  kept_.clear();
  left_on_core_.clear();
  for (const std::int64_t bits : core_bits_)
    left_on_core_.push_back(part(bits - bits / 4));
  for (const GroupSpace::Kept& kept : way.space.kept) {
    const OpId op = group.members[kept.member];
    const Share& own = *shares_[kept.member];
    const bool parted = own.dim && moved_by(graph_.op(op).nest.operands[kept.operand], *own.dim);
    const std::int64_t copies = parted ? 1 : own.cores;
    kept_.push_back({&kept, pool_[op.index()], kept.bits * copies,
                     parted ? kept.bits / own.cores : kept.bits,
                     static_cast<double>(kept.bits) * (kept.times - 1) * (kept.made ? 2 : 1)});
    left -= kept_.back().bits;
    left_on_core_[kept_.back().pool] -= kept_.back().on_core;
  }
  if (left >= 0 && std::ranges::all_of(left_on_core_, [](std::int64_t bits) { return bits >= 0; }))
    return true;
  std::ranges::stable_sort(kept_, {}, [](const KeptItem& item) {
    return item.again / static_cast<double>(std::max<std::int64_t>(1, item.bits));
  });
  for (const KeptItem& item : kept_) {
    if (left >= 0 && left_on_core_[item.pool] >= 0)
      continue;
    left += item.bits;
    left_on_core_[item.pool] += item.on_core;
    Use& use = uses_[item.kept->member];
    if (item.kept->made) {
      use.read += item.again / 2;
      use.written += item.again / 2;
    } else {
      use.read += item.again;
    }
  }
  return left >= 0;
}

/// Adds the cycles of moving operands that are on the chip but not on the member's cores.
void GroupPricer::add_links(const std::vector<OpId>& members, std::size_t m) {
  const OpId reader = members[m];
  const auto& operands = graph_.op(reader).nest.operands;
  const Share& own = *shares_[m];
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const auto producer = graph_.tensor(operands[i].tensor).producer;
    if (operands[i].mode != AccessMode::read || !producer)
      continue;
    const bool inside = std::ranges::binary_search(members, *producer);
    if (inside || alone_.reads[reader.index()][i] == StepTraffic::Source::chip)
      uses_[m].links += link_cycles(reader, operands[i], own);
  }
}

/// Combines the members' use of cores, links and port. With n slices, all but 1/n of the possible
/// overlap between them is achieved.
GroupPrice GroupPricer::total(const NeighbourGroup& group, double slices) {
  std::ranges::fill(busy_, 0.0);
  double read = 0;
  double written = 0;
  double serial = 0;
  double linked = 0;
  for (std::size_t m = 0; m < uses_.size(); ++m) {
    const Use& use = uses_[m];
    read += use.read;
    written += use.written;
    busy_[pool_[group.members[m].index()]] += use.cycles;
    linked += use.links;
    serial += std::max({use.cycles, use.links, offchip_.cycles(use.read, use.written)});
  }
  // Two resources that are always busy delay each other: by 9 % if both are needed equally long.
  const double most =
      std::max({offchip_.cycles(read, written), linked, *std::ranges::max_element(busy_)});
  const auto weighed = [&](double cycles) { return std::pow(cycles / std::max(1.0, most), 8); };
  double sum = weighed(offchip_.cycles(read, written)) + weighed(linked);
  for (const double busy : busy_)
    sum += weighed(busy);
  const double together = std::min(serial, most * std::pow(sum, 1.0 / 8));
  return {together + (serial - together) / slices, read + written, 0};
}

std::optional<GroupPrice> GroupPricer::price(const NeighbourGroup& group, const GroupSlices& way) {
  const bool single = group.members.size() == 1 && way.most == 1;
  if (!single && !tiles_fit(group, way))
    return std::nullopt;
  traffic(group.members, single);
  shares_.clear();
  for (std::size_t m = 0; m < group.members.size(); ++m)
    shares_.push_back(&share(group.members[m], way.members[m].parts));
  if (!single && !keep(group, way))
    return std::nullopt;
  double tiles = 0;
  for (std::size_t m = 0; m < group.members.size(); ++m) {
    const GroupSlices::Member& member = way.members[m];
    uses_[m].cycles = cycles(group.members[m], *shares_[m]) * member.slices;
    add_links(group.members, m);
    tiles += member.slices * static_cast<double>(shares_[m]->cores);
  }
  GroupPrice price = total(group, way.most);
  price.tiles = tiles;
  return price;
}

GroupPrice GroupPricer::alone(OpId op) {
  GroupSlices whole;
  whole.members.resize(1);
  return *price({0, 0, 0, false, {op}}, whole);
}

} // namespace monet
