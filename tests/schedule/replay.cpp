#include "schedule/replay.hpp"

#include "schedule/element_walk.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

namespace monet::testing {

namespace {

using Problem = std::optional<std::string>;
using fmt::format;

/// What is in the memories over time.
class Contents {
public:
  Contents(const PlainTimeline& timeline, const Chip& chip) : chip_(chip) {
    for (const PlainEvent& event : timeline.memory)
      steps_[{event.memory, event.tensor}][event.time] += event.bits;
  }

  /// The core under whose name the memory of this core is booked.
  CoreId memory_of(CoreId core) const {
    for (const auto& group : chip_.shared_memory) {
      if (std::find(group.begin(), group.end(), core) != group.end())
        return *std::min_element(group.begin(), group.end());
    }
    return core;
  }

  /// Fewest bits of the tensor that the core's memory holds at any moment of [from, to).
  std::int64_t held(CoreId core, TensorId tensor, std::int64_t from, std::int64_t to) const {
    const auto found = steps_.find({memory_of(core), tensor});
    if (found == steps_.end())
      return 0;
    std::int64_t now = 0;
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    bool inside = false;
    for (const auto& [time, change] : found->second) {
      if (time >= to)
        break;
      if (time > from && !inside)
        least = now;
      now += change;
      if (time >= from) {
        inside = true;
        least = std::min(least, now);
      }
    }
    return inside ? least : now;
  }

private:
  const Chip& chip_;
  std::map<std::pair<CoreId, TensorId>, std::map<std::int64_t, std::int64_t>> steps_;
};

std::int64_t bits_in(const Tensor& tensor, std::int64_t elements) {
  return storage_of(tensor.type, elements).value;
}

class Replay {
public:
  Replay(const PlainTimeline& timeline, const PlainTiles& tiles, const TrainingGraph& step,
         const Chip& chip)
      : timeline_(timeline), tiles_(tiles), graph_(step.graph), chip_(chip),
        contents_(timeline, chip) {}

  Problem first_problem() {
    using Check = Problem (Replay::*)();
    for (const Check check :
         {&Replay::runs, &Replay::dependencies, &Replay::cores, &Replay::routes, &Replay::hops,
          &Replay::rows, &Replay::links, &Replay::memories, &Replay::sources, &Replay::operands,
          &Replay::deliveries, &Replay::energy}) {
      if (Problem problem = (this->*check)())
        return problem;
    }
    return std::nullopt;
  }

private:
  std::string name(TensorId id) const { return graph_.tensor(id).name; }

  Problem runs() {
    run_of_.assign(tiles_.tiles.size(), nullptr);
    std::int64_t end = 0;
    for (const PlainRun& run : timeline_.runs) {
      if (run_of_.at(run.tile.index()) != nullptr)
        return format("tile {} runs twice", run.tile.index());
      run_of_[run.tile.index()] = &run;
      const PlainTile& tile = tiles_.tiles[run.tile.index()];
      std::int64_t macs = graph_.op(tile.op).nest.compute == ComputeKind::mac ? 1 : 0;
      for (const Interval& range : tile.ranges)
        macs *= range.end - range.begin;
      if (run.macs != macs || run.core != tile.core || run.start < 0 || run.end <= run.start)
        return format("the run of tile {} is not the tile's", run.tile.index());
      end = std::max(end, run.end);
    }
    for (const PlainTransfer& transfer : timeline_.transfers) {
      for (std::size_t i = 0; i < transfer.to.size(); ++i)
        end = std::max(end, transfer.arrival(i));
    }
    if (timeline_.runs.size() != tiles_.tiles.size())
      return format("{} of {} tiles run", timeline_.runs.size(), tiles_.tiles.size());
    if (end != timeline_.makespan)
      return format("all is done at {}, not {}", end, timeline_.makespan);
    return std::nullopt;
  }

  Problem dependencies() {
    for (const PlainEdge& edge : tiles_.edges) {
      if (run_of_[edge.to.index()]->start < run_of_[edge.from.index()]->end)
        return format("tile {} begins before tile {} ends", edge.to.index(), edge.from.index());
    }
    return std::nullopt;
  }

  /// One tile at a time, cycle by cycle.
  Problem cores() {
    std::map<std::pair<CoreId, std::int64_t>, int> changes;
    for (const PlainRun& run : timeline_.runs) {
      ++changes[{run.core, run.start}];
      --changes[{run.core, run.end}];
    }
    int now = 0;
    for (const auto& [at, change] : changes) {
      now += change;
      if (now > 1)
        return format("core {} runs {} tiles at {}", at.first.index(), now, at.second);
    }
    return std::nullopt;
  }

  bool crosses(const Link& link, CoreId from, CoreId to) const {
    const auto on = [&](CoreId core) {
      return std::find(link.cores.begin(), link.cores.end(), core) != link.cores.end();
    };
    if (from == to || !on(from) || !on(to))
      return false;
    switch (link.reach) {
    case LinkReach::any_pair:
      return true;
    case LinkReach::forward:
      return from == link.cores[0] && to == link.cores[1];
    case LinkReach::offchip_both:
      return from == *chip_.offchip || to == *chip_.offchip;
    case LinkReach::offchip_read:
      return from == *chip_.offchip;
    case LinkReach::offchip_write:
      return to == *chip_.offchip;
    }
    return false;
  }

  /// Every receiver can be reached over the links of the transfer, and the off-chip memory passes
  /// nothing on.
  Problem routes() {
    for (const PlainTransfer& t : timeline_.transfers) {
      if (t.bits <= 0 || t.start < 0 || t.end <= t.start)
        return format("transfer of '{}' at {} is empty", name(t.tensor), t.start);
      std::set<CoreId> reached{t.from};
      for (bool more = true; more;) {
        more = false;
        for (const LinkId id : t.links) {
          const Link& link = chip_.links[id.index()];
          for (std::size_t c = 0; c < chip_.cores.size(); ++c) {
            const bool hop = std::any_of(reached.begin(), reached.end(), [&](CoreId from) {
              return (from == t.from || from != *chip_.offchip) && crosses(link, from, CoreId(c));
            });
            more = (hop && reached.insert(CoreId(c)).second) || more;
          }
        }
      }
      for (const CoreId to : t.to) {
        if (!reached.contains(to) || to == t.from)
          return format("transfer of '{}' at {} does not reach core {}", name(t.tensor), t.start,
                        to.index());
      }
    }
    return std::nullopt;
  }

  /// Nobody has data sooner than the fastest chain of the transfer's links takes, and one receiver
  /// has them as soon as its way, which is all of the links, takes.
  Problem hops() {
    for (const PlainTransfer& t : timeline_.transfers) {
      std::int64_t sum = 0;
      for (const LinkId id : t.links)
        sum += chip_.links[id.index()].latency_cycles;
      for (std::size_t i = 0; i < t.to.size(); ++i) {
        const std::int64_t hops = t.arrival(i) - t.end;
        if (t.to.size() == 1 ? hops != sum : hops < fastest(t, t.to[i]) || hops > sum)
          return format("'{}' comes to core {} {} cycles after it was sent at {}", name(t.tensor),
                        t.to[i].index(), hops, t.end);
      }
    }
    return std::nullopt;
  }

  std::int64_t fastest(const PlainTransfer& t, CoreId to) const {
    std::map<CoreId, std::int64_t> reached{{t.from, 0}};
    for (bool more = true; more;) {
      more = false;
      for (const LinkId id : t.links) {
        const Link& link = chip_.links[id.index()];
        const std::map<CoreId, std::int64_t> before = reached;
        for (const auto& [from, after] : before) {
          for (std::size_t c = 0; c < chip_.cores.size(); ++c) {
            if ((from != t.from && from == *chip_.offchip) || !crosses(link, from, CoreId(c)))
              continue;
            const auto [known, added] = reached.emplace(c, after + link.latency_cycles);
            more = more || added || known->second > after + link.latency_cycles;
            known->second = std::min(known->second, after + link.latency_cycles);
          }
        }
      }
    }
    return reached.at(to);
  }

  /// The port gives a row's bits only after the row was opened, and opens as many at a time as
  /// there are banks. Looked at from the end of the transfer: it takes at least the time in which
  /// its bits pass and the first row opens, and the time in which the fullest bank opens all its
  /// rows one after the other.
  Problem rows() {
    const std::optional<DramRows> dram = offchip_port(chip_).rows;
    for (const PlainTransfer& t : timeline_.transfers) {
      const bool offchip = t.from == *chip_.offchip ||
                           std::find(t.to.begin(), t.to.end(), *chip_.offchip) != t.to.end();
      if (!dram || !offchip) {
        if (t.rows != 0)
          return format("transfer of '{}' at {} opens {} rows", name(t.tensor), t.start, t.rows);
        continue;
      }
      std::int64_t width = std::numeric_limits<std::int64_t>::max();
      for (const LinkId id : t.links)
        width = std::min(width, chip_.links[id.index()].bandwidth_bits_per_cycle);
      const std::int64_t in_fullest_bank = (t.rows + dram->banks - 1) / dram->banks;
      const bool enough = t.rows * dram->row_bits >= t.bits &&
                          (t.end - t.start - dram->t_row) * width >= t.bits &&
                          t.end - t.start >= in_fullest_bank * dram->t_row;
      if (!enough)
        return format("transfer of '{}' at {} opens {} rows too fast", name(t.tensor), t.start,
                      t.rows);
    }
    return std::nullopt;
  }

  struct Load {
    std::int64_t start = 0;
    std::int64_t end = 0;
    std::int64_t bits = 0;
  };

  /// In no window do a link's transfers that lie in it carry more than the link gives.
  Problem links() {
    std::vector<std::vector<Load>> loads(chip_.links.size() + 2);
    std::vector<std::int64_t> widths;
    for (const Link& link : chip_.links)
      widths.push_back(link.bandwidth_bits_per_cycle);
    const OffchipPort port = offchip_port(chip_);
    widths.push_back(port.read_bits_per_cycle);
    widths.push_back(port.write_bits_per_cycle);
    for (const PlainTransfer& t : timeline_.transfers) {
      std::set<std::size_t> used;
      for (const LinkId id : t.links)
        used.insert(id.index());
      const bool writes = std::find(t.to.begin(), t.to.end(), *chip_.offchip) != t.to.end();
      if (t.from == *chip_.offchip)
        used.insert(chip_.links.size());
      if (writes)
        used.insert(chip_.links.size() + (port.shared ? 0 : 1));
      for (const std::size_t i : used) {
        const std::int64_t width =
            i == chip_.links.size() && writes ? port.write_bits_per_cycle : widths[i];
        if (t.bits > width * (t.end - t.start))
          return format("transfer of '{}' at {} is faster than link {}", name(t.tensor), t.start,
                        i);
        loads[i].push_back({t.start, t.end, t.bits});
      }
    }
    for (std::size_t i = 0; i < loads.size(); ++i) {
      if (const auto at = overload(loads[i], i < widths.size() ? widths[i] : 0))
        return format("link {} carries too much from {}", i, *at);
    }
    return std::nullopt;
  }

  static std::optional<std::int64_t> overload(std::vector<Load>& loads, std::int64_t width) {
    std::sort(loads.begin(), loads.end(),
              [](const Load& a, const Load& b) { return a.end < b.end; });
    std::set<std::int64_t> starts;
    for (const Load& load : loads)
      starts.insert(load.start);
    for (const std::int64_t start : starts) {
      std::int64_t bits = 0;
      for (const Load& load : loads) {
        if (load.start < start)
          continue;
        bits += load.bits;
        if (bits > width * (load.end - start))
          return start;
      }
    }
    return std::nullopt;
  }

  std::int64_t capacity(CoreId core) const {
    if (core == *chip_.offchip)
      return std::numeric_limits<std::int64_t>::max();
    std::int64_t bits = 0;
    const Core& c = chip_.cores[core.index()];
    for (const Memory& memory : c.memories) {
      const bool top = c.top(MemoryOperand::I1) == &memory || c.top(MemoryOperand::I2) == &memory ||
                       c.top(MemoryOperand::O) == &memory;
      if (top)
        bits += memory.size.value * instances(c, memory);
    }
    return bits;
  }

  Problem memories() {
    std::map<CoreId, std::map<std::int64_t, std::int64_t>> changes;
    for (const PlainEvent& event : timeline_.memory)
      changes[event.memory][event.time] += event.bits;
    for (const auto& [core, steps] : changes) {
      std::int64_t now = 0;
      for (const auto& [time, change] : steps) {
        now += change;
        if (now < 0 || now > capacity(core))
          return format("memory of core {} holds {} bits at {}", core.index(), now, time);
      }
      if (core != *chip_.offchip && now != 0)
        return format("{} bits stay in core {}", now, core.index());
    }
    return std::nullopt;
  }

  /// What a transfer carries is where it comes from while it leaves, and there is room for it
  /// where it goes.
  Problem sources() {
    std::map<TensorId, std::vector<Load>> written;
    for (const PlainTransfer& t : timeline_.transfers) {
      const auto to = std::find(t.to.begin(), t.to.end(), *chip_.offchip);
      if (to != t.to.end())
        written[t.tensor].push_back(
            {t.start, t.arrival(static_cast<std::size_t>(to - t.to.begin())), t.bits});
    }
    for (const PlainTransfer& t : timeline_.transfers) {
      if (t.kind == TransferKind::stream)
        continue;
      if (t.from != *chip_.offchip) {
        if (contents_.held(t.from, t.tensor, t.start, t.end) < t.bits)
          return format("'{}' leaves core {} at {}, which does not hold it", name(t.tensor),
                        t.from.index(), t.start);
      } else if (graph_.tensor(t.tensor).producer) {
        std::int64_t there = 0;
        for (const Load& w : written[t.tensor])
          there += w.end <= t.start ? w.bits : 0;
        if (there < t.bits)
          return format("'{}' is read off-chip at {} with {} of {} bits written", name(t.tensor),
                        t.start, there, t.bits);
      }
      for (const CoreId to : t.to) {
        if (to != *chip_.offchip && contents_.held(to, t.tensor, t.start, t.end) < t.bits)
          return format("'{}' comes to core {} at {}, where there is no room for it",
                        name(t.tensor), to.index(), t.start);
      }
    }
    return std::nullopt;
  }

  /// Every operand is in the core's memory for as long as the tile runs, or flows by meanwhile.
  Problem operands() {
    std::map<std::pair<TileId, TensorId>, std::int64_t> made; // of what a tile reads
    for (const PlainEdge& edge : tiles_.edges)
      made[{edge.to, edge.tensor}] += edge.bits;
    for (const PlainRun& run : timeline_.runs) {
      const PlainTile& tile = tiles_.tiles[run.tile.index()];
      for (const Access& access : graph_.op(tile.op).nest.operands) {
        const Tensor& tensor = graph_.tensor(access.tensor);
        std::int64_t bits = bits_in(tensor, volume(region(access, tile.ranges, tensor.shape)));
        if (access.mode == AccessMode::read && tensor.producer)
          bits = std::min(bits, made[{run.tile, access.tensor}]); // the rest is zeros
        if (bits == 0 || contents_.held(run.core, access.tensor, run.start, run.end) >= bits)
          continue;
        if (!flows(access.tensor, run))
          return format("'{}' is not on core {} while tile {} of '{}' runs from {}", tensor.name,
                        run.core.index(), run.tile.index(), graph_.op(tile.op).name, run.start);
      }
    }
    return std::nullopt;
  }

  /// What one tile makes and a tile on another memory reads, or adds to, comes there in between.
  Problem deliveries() {
    struct Delivery {
      const PlainTransfer* transfer;
      std::int64_t arrival;
    };
    std::map<std::pair<CoreId, TensorId>, std::vector<Delivery>> into;
    for (const PlainTransfer& t : timeline_.transfers) {
      for (std::size_t i = 0; i < t.to.size(); ++i)
        into[{contents_.memory_of(t.to[i]), t.tensor}].push_back({&t, t.arrival(i)});
    }
    for (const PlainEdge& edge : tiles_.edges) {
      const PlainRun& from = *run_of_[edge.from.index()];
      const PlainRun& to = *run_of_[edge.to.index()];
      const CoreId memory = contents_.memory_of(to.core);
      if (contents_.memory_of(from.core) == memory)
        continue;
      std::int64_t bits = 0;
      for (const auto& [t, arrival] : into[{memory, edge.tensor}]) {
        const bool before = arrival <= to.start;
        const bool meanwhile =
            t->kind == TransferKind::stream && t->start >= to.start && arrival <= to.end;
        bits += t->start >= from.end && (before || meanwhile) ? t->bits : 0;
      }
      if (bits < edge.bits)
        return format("{} of {} bits of '{}' come from tile {} to tile {}", bits, edge.bits,
                      name(edge.tensor), edge.from.index(), edge.to.index());
    }
    return std::nullopt;
  }

  bool flows(TensorId tensor, const PlainRun& run) const {
    return std::any_of(
        timeline_.transfers.begin(), timeline_.transfers.end(), [&](const PlainTransfer& t) {
          const auto here = [&](CoreId core) {
            return contents_.memory_of(core) == contents_.memory_of(run.core);
          };
          bool arrives = false;
          for (std::size_t i = 0; i < t.to.size(); ++i)
            arrives = arrives || (here(t.to[i]) && t.arrival(i) <= run.end);
          return t.kind == TransferKind::stream && t.tensor == tensor && t.start >= run.start &&
                 t.end <= run.end && (here(t.from) || arrives);
        });
  }

  Problem energy() {
    std::int64_t units = 0;
    for (const PlainRun& run : timeline_.runs)
      units += run.energy.units;
    for (const PlainTransfer& t : timeline_.transfers) {
      units += t.link.units + t.offchip.units + t.onchip.units;
      if (const Problem problem = energy_of_transfer(t))
        return problem;
    }
    if (units != timeline_.total.units)
      return format("energies add up to {}, not {}", units, timeline_.total.units);
    return std::nullopt;
  }

  Problem energy_of_transfer(const PlainTransfer& t) const {
    double link = 0;
    for (const LinkId id : t.links) {
      const Link& l = chip_.links[id.index()];
      const auto bits = static_cast<double>(t.bits);
      link += bits * (l.energy_pj_per_cycle / static_cast<double>(l.bandwidth_bits_per_cycle) +
                      l.energy_pj_per_bit);
    }
    const OffchipPort port = offchip_port(chip_);
    double offchip = t.from == *chip_.offchip ? port.read_pj_per_bit : 0;
    if (std::find(t.to.begin(), t.to.end(), *chip_.offchip) != t.to.end())
      offchip += port.write_pj_per_bit;
    offchip *= static_cast<double>(t.bits);
    const bool near = t.link == Energy::from({link}) && t.offchip == Energy::from({offchip});
    if (!near)
      return format("transfer of '{}' at {} should cost {} pJ on links and {} pJ off-chip",
                    name(t.tensor), t.start, link, offchip);
    return std::nullopt;
  }

  const PlainTimeline& timeline_;
  const PlainTiles& tiles_;
  const Graph& graph_;
  const Chip& chip_;
  Contents contents_;
  std::vector<const PlainRun*> run_of_;
};

} // namespace

std::optional<std::string> impossible(const PlainTimeline& timeline, const PlainTiles& tiles,
                                      const TrainingGraph& step, const Chip& chip) {
  return Replay(timeline, tiles, step, chip).first_problem();
}

CompulsoryBits compulsory_bits(const TrainingGraph& step) {
  const Graph& graph = step.graph;
  CompulsoryBits bits;
  std::map<TensorId, std::int64_t> read;
  std::map<TensorId, std::int64_t> written;
  for (std::size_t o = 0; o < graph.operators().size(); ++o) {
    const LoopNest& nest = graph.operators()[o].nest;
    for (const Access& access : nest.operands) {
      const Tensor& tensor = graph.tensor(access.tensor);
      const auto elements = touched_elements(graph, OpId(o), full_tile(nest), access.tensor,
                                             access.mode != AccessMode::read);
      const std::int64_t size = bits_in(tensor, static_cast<std::int64_t>(elements.size()));
      const bool left = std::find(graph.outputs.begin(), graph.outputs.end(), access.tensor) !=
                            graph.outputs.end() ||
                        (tensor.alias_of && !graph.tensor(*tensor.alias_of).producer);
      if (access.mode == AccessMode::read && !tensor.producer)
        read[access.tensor] = std::max(read[access.tensor], size);
      if (access.mode != AccessMode::read && left)
        written[access.tensor] = std::max(written[access.tensor], size);
    }
  }
  for (const auto& [tensor, size] : read)
    bits.read += size;
  for (const auto& [tensor, size] : written)
    bits.written += size;
  return bits;
}

CompulsoryBits offchip_bits(const PlainTimeline& timeline, const Chip& chip) {
  CompulsoryBits bits;
  for (const PlainTransfer& t : timeline.transfers) {
    if (t.from == *chip.offchip)
      bits.read += t.bits;
    if (std::find(t.to.begin(), t.to.end(), *chip.offchip) != t.to.end())
      bits.written += t.bits;
  }
  return bits;
}

} // namespace monet::testing
