#include "schedule/event_scheduler.hpp"

#include "schedule/data_items.hpp"
#include "schedule/network.hpp"
#include "schedule/offchip_memory.hpp"
#include "schedule/residency.hpp"
#include "schedule/tile_queue.hpp"
#include "schedule/timeline_writer.hpp"

#include "monet/base/errors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

namespace monet {

namespace {

std::vector<const CoreProblem*> problems_of(const std::vector<TileCost>& costs) {
  std::vector<const CoreProblem*> problems;
  for (const TileCost& cost : costs)
    problems.push_back(cost.problem);
  return problems;
}

class EventScheduler {
public:
  EventScheduler(const TileGraph& tiles, const TrainingGraph& step, const Chip& chip,
                 const std::vector<TileCost>& costs)
      : tiles_(tiles), step_(step), graph_(step.graph), chip_(chip), costs_(costs), network_(chip),
        memory_(chip, tiles.tiles.size(), timeline_),
        data_(make_data_items(tiles, step.graph, problems_of(costs), memory_.pool_of())),
        offchip_(data_, step.graph), queue_(tiles, step.graph, chip.cores.size()),
        core_free_(chip.cores.size(), 0) {
    memory_.attach(data_);
    for (const Item& item : data_.items)
      readers_left_.push_back(item.readers);
  }

  Timeline run() {
    while (const auto tile = queue_.next())
      place(*tile);
    internal_check(queue_.left() == 0, "tiles wait for each other");
    return finish();
  }

private:
  /// Room in the core's memory: for a result, or (without an item) to work in.
  struct Space {
    TensorId tensor;
    std::optional<ItemId> item;
    Bits bits;
  };
  /// What is known about the tile being placed.
  struct Placement {
    TileId id;
    OpId op;
    CoreId core;
    PoolId pool;
    std::int64_t start = 0;
    std::int64_t end = 0;
    std::vector<CopyId> inputs;
    std::vector<Space> wanted; ///< results that stay, and working space of streamed operands
  };

  const TileData& data(TileId id) const { return data_.tiles[id.index()]; }
  const Item& item(ItemId id) const { return data_.items[id.index()]; }
  const CoreCost& cost(TileId id) const { return *costs_[id.index()].cost; }
  std::string name(TensorId id) const { return graph_.tensor(id).name; }

  Booking book(const TransferRequest& request, std::int64_t ready) {
    const Booking booking = network_.reserve(request, ready);
    timeline_.add_transfer(request, booking);
    return booking;
  }

  void place(TileId id) {
    const Tile& tile = tiles_.tiles[id.index()];
    Placement p{id, tile.op, tile.core, memory_.pool_of()[tile.core.index()]};
    p.start = std::max(core_free_[tile.core.index()], queue_.ready(id));
    const std::vector<Bits> slices = working_space(p);
    drop_large_pieces(p, slices);
    gather_inputs(p);
    for (const StreamedRead& stream : data(id).streams) {
      for (const ItemId piece : stream.pieces)
        p.start = std::max(p.start, store(p, piece));
    }
    reserve_outputs(p, slices);
    stream_operands(p);
    settle(p);
  }

  /// Bits of each streamed operand's working space: what the core cost asks for, as far as there is
  /// room.
  std::vector<Bits> working_space(const Placement& p) const {
    std::int64_t left = memory_.pool(p.pool).capacity;
    for (const ItemNeed& need : data(p.id).needs)
      left -= item(need.item).bits.value;
    for (const TileOutput& output : data(p.id).outputs) {
      if (!output.streamed)
        left -= item(output.piece).bits.value;
    }
    if (left < 0) {
      throw InfeasibleError(
          fmt::format("operands of '{}' exceed the memory of core '{}' by {} bits",
                      graph_.op(p.op).name, chip_.cores[p.core.index()].name, -left));
    }
    const auto& operands = costs_[p.id.index()].problem->operands;
    std::vector<Bits> slices(operands.size(), Bits{0});
    for (std::size_t i = 0; i < operands.size() && i < cost(p.id).resident.size(); ++i) {
      if (!operands[i].offchip)
        continue;
      slices[i] = {std::clamp<std::int64_t>(cost(p.id).resident[i].value, 0, left)};
      left -= slices[i].value;
    }
    return slices;
  }

  /// A piece on this core of which the tile reads a part takes more room than the part. When the
  /// tile would not fit for that reason, pieces go until it does; the largest excess first.
  void drop_large_pieces(const Placement& p, const std::vector<Bits>& slices) {
    struct Excess {
      std::int64_t bits;
      CopyId copy;
    };
    std::vector<Excess> excesses;
    std::vector<CopyId> counted;
    std::int64_t wanted = 0;
    for (const Bits slice : slices)
      wanted += slice.value;
    for (const TileOutput& output : data(p.id).outputs) {
      if (!output.streamed)
        wanted += item(output.piece).bits.value;
    }
    for (const ItemNeed& need : data(p.id).needs) {
      wanted += item(need.item).bits.value;
      const auto copy = held(need.item, p.pool);
      if (!copy || memory_.copy(*copy).item == need.item)
        continue;
      if (std::find(counted.begin(), counted.end(), *copy) != counted.end())
        continue;
      counted.push_back(*copy);
      excesses.push_back({memory_.copy(*copy).bits.value, *copy});
    }
    for (const Excess& excess : excesses)
      wanted += excess.bits;
    std::stable_sort(excesses.begin(), excesses.end(),
                     [](const Excess& a, const Excess& b) { return a.bits > b.bits; });
    for (const Excess& excess : excesses) {
      if (wanted <= memory_.pool(p.pool).capacity)
        return;
      wanted -= excess.bits;
      evict(p, excess.copy);
    }
  }

  /// The copy of an item, or of the piece it lies in, in a pool.
  std::optional<CopyId> held(ItemId id, PoolId pool) const {
    if (const auto copy = memory_.find(id, pool))
      return copy;
    const auto piece = item(id).piece;
    return piece ? memory_.find(*piece, pool) : std::nullopt;
  }

  void gather_inputs(Placement& p) {
    const auto& needs = data(p.id).needs;
    std::vector<std::optional<CopyId>> copies;
    for (const ItemNeed& need : needs) {
      copies.push_back(held(need.item, p.pool));
      if (copies.back())
        ++memory_.copy(*copies.back()).pins;
    }
    for (std::size_t i = 0; i < needs.size(); ++i) {
      if (!copies[i]) {
        copies[i] = fetch(p, needs[i]);
        ++memory_.copy(*copies[i]).pins;
      }
      p.start = std::max(p.start, memory_.copy(*copies[i]).available);
      p.inputs.push_back(*copies[i]);
    }
  }

  /// Brings an item to the tile's core, from wherever it arrives first.
  CopyId fetch(const Placement& p, const ItemNeed& need) {
    const Item& wanted = item(need.item);
    make_room(p, wanted.bits, wanted.tensor);
    const std::int64_t space = memory_.pool(p.pool).clock;
    const CoreId to = memory_.pool(p.pool).gateway;
    std::optional<CopyId> source = nearest_copy(need.item, to, space);
    const CoreId offchip = network_.offchip();
    std::optional<std::int64_t> stored = offchip_.stored_at(wanted.piece);
    if (!source && !stored)
      stored = store(p, *wanted.piece);
    std::int64_t ready = space;
    CoreId from = offchip;
    if (source && stored && network_.direct(offchip, to)) {
      const std::int64_t begin = arrival(offchip, to, wanted.bits, std::max(space, *stored));
      if (begin < arrival_from(*source, to, wanted.bits, space))
        source.reset();
    }
    if (source) {
      from = memory_.pool(memory_.copy(*source).pool).gateway;
      ready = std::max(ready, memory_.copy(*source).available);
    } else {
      ready = std::max(ready, *stored);
    }
    const Booking transfer = book(
        {TransferKind::fetch, wanted.tensor, p.op, from, to, wanted.bits, need.operand}, ready);
    if (source) {
      memory_.touch(*source, transfer.end);
    } else if (wanted.piece) {
      offchip_.touch(*wanted.piece, transfer.end);
    }
    const CopyId copy = memory_.add(p.pool, wanted.tensor, need.item, wanted.bits, transfer.start);
    memory_.copy(copy).available = transfer.end;
    memory_.touch(copy, transfer.end);
    return copy;
  }

  std::int64_t arrival(CoreId from, CoreId to, Bits bits, std::int64_t ready) const {
    return network_.earliest(from, to, bits, ready) + network_.duration(from, to, bits);
  }
  std::int64_t arrival_from(CopyId source, CoreId to, Bits bits, std::int64_t space) {
    const Copy& copy = memory_.copy(source);
    return arrival(memory_.pool(copy.pool).gateway, to, bits, std::max(space, copy.available));
  }

  /// The copy of the item or its piece on another core that could be here first.
  std::optional<CopyId> nearest_copy(ItemId id, CoreId to, std::int64_t space) {
    constexpr std::size_t kMostAsked = 8; // of many copies, the first made
    std::vector<CopyId> candidates = memory_.holders(id);
    if (const auto piece = item(id).piece; piece && *piece != id) {
      const auto& more = memory_.holders(*piece);
      candidates.insert(candidates.end(), more.begin(), more.end());
    }
    std::optional<CopyId> best;
    std::int64_t best_end = std::numeric_limits<std::int64_t>::max();
    std::size_t asked = 0;
    for (const CopyId candidate : candidates) {
      const CoreId from = memory_.pool(memory_.copy(candidate).pool).gateway;
      if (!network_.direct(from, to))
        continue;
      if (++asked > kMostAsked)
        break;
      const std::int64_t end = arrival_from(candidate, to, item(id).bits, space);
      if (end < best_end) {
        best = candidate;
        best_end = end;
      }
    }
    return best;
  }

  /// Sees to it that a piece is in the off-chip memory; the cycle from which it is.
  std::int64_t store(const Placement& p, ItemId piece) {
    if (const auto stored = offchip_.stored_at(piece))
      return *stored;
    for (const CopyId holder : memory_.holders(piece)) {
      return write(p, holder, TransferKind::write_back);
    }
    throw InternalError("a result is nowhere");
  }

  std::int64_t write(const Placement& p, CopyId id, TransferKind kind) {
    const Copy copy = memory_.copy(id);
    const Booking transfer = book({kind, copy.tensor, p.op, memory_.pool(copy.pool).gateway,
                                   network_.offchip(), copy.bits, MemoryOperand::O},
                                  copy.available);
    memory_.touch(id, transfer.end);
    offchip_.store(*copy.item, transfer.start, transfer.end);
    return transfer.end;
  }

  /// True when the copy can go without its data being lost.
  bool spare(CopyId id) {
    const Copy& copy = memory_.copy(id);
    if (copy.dead || !copy.item)
      return true;
    const auto piece = item(*copy.item).piece;
    if (piece != copy.item || offchip_.stored_at(piece))
      return true;
    for (const CopyId other : memory_.holders(*piece)) {
      if (other != id && !memory_.copy(other).dead)
        return true;
    }
    return false;
  }

  void evict(const Placement& p, CopyId id) {
    if (!spare(id))
      write(p, id, TransferKind::spill);
    memory_.remove(id);
  }

  void make_room(const Placement& p, Bits bits, TensorId tensor) {
    const Pool& pool = memory_.pool(p.pool);
    while (pool.capacity - pool.used < bits.value) {
      const auto victim = memory_.victim(p.pool);
      if (!victim) {
        throw InfeasibleError(
            fmt::format("'{}' of '{}' does not fit into core '{}': {} bits too many", name(tensor),
                        graph_.op(p.op).name, chip_.cores[p.core.index()].name,
                        bits.value - (pool.capacity - pool.used)));
      }
      evict(p, *victim);
    }
  }

  /// Makes room for results that stay and for working space; the tile starts when it is there.
  void reserve_outputs(Placement& p, const std::vector<Bits>& slices) {
    const auto& operands = graph_.op(p.op).nest.operands;
    for (std::size_t i = 0; i < slices.size(); ++i) {
      if (slices[i].value > 0)
        p.wanted.push_back({operands[i].tensor, std::nullopt, slices[i]});
    }
    for (const TileOutput& output : data(p.id).outputs) {
      const Item& made = item(output.piece);
      if (!output.streamed)
        p.wanted.push_back({made.tensor, output.piece, made.bits});
    }
    if (p.wanted.empty())
      return;
    Bits total{0};
    for (const Space& space : p.wanted)
      total += space.bits;
    make_room(p, total, p.wanted.back().tensor);
    p.start = std::max(p.start, memory_.pool(p.pool).clock);
  }

  /// Books what flows by: reads from the start on, in the order of operands, then writes, the last
  /// of which end no sooner than the computation. The tile starts with its first read and holds its
  /// core until all have ended.
  void stream_operands(Placement& p) {
    const auto& traffic = cost(p.id).offchip;
    const auto& operands = graph_.op(p.op).nest.operands;
    const CoreId core = memory_.pool(p.pool).gateway;
    std::int64_t reads_end = 0;
    bool first = true;
    for (std::size_t i = 0; i < traffic.size(); ++i) {
      if (traffic[i].read.value == 0)
        continue;
      const Booking transfer = book({TransferKind::stream, operands[i].tensor, p.op,
                                     network_.offchip(), core, traffic[i].read},
                                    p.start);
      if (first)
        p.start = transfer.start;
      first = false;
      reads_end = std::max(reads_end, transfer.end);
    }
    const std::int64_t latency = std::max<std::int64_t>(1, cost(p.id).latency.value);
    p.end = std::max(p.start + latency, reads_end);
    const std::int64_t computed = p.end;
    for (std::size_t i = 0; i < traffic.size(); ++i) {
      if (traffic[i].write.value == 0)
        continue;
      const std::int64_t length = network_.duration(core, network_.offchip(), traffic[i].write);
      const Booking transfer = book({TransferKind::stream, operands[i].tensor, p.op, core,
                                     network_.offchip(), traffic[i].write, MemoryOperand::O},
                                    std::max(p.start, computed - length));
      p.end = std::max(p.end, transfer.end);
    }
  }

  /// The tile's place in time is known: books the memory, frees what was read for the last time.
  void settle(Placement& p) {
    for (const Space& space : p.wanted) {
      const CopyId copy = memory_.add(p.pool, space.tensor, space.item, space.bits, p.start);
      memory_.copy(copy).available = p.end;
      memory_.touch(copy, p.end);
      if (!space.item)
        memory_.retire(copy);
    }
    for (const CopyId copy : p.inputs) {
      --memory_.copy(copy).pins;
      memory_.touch(copy, p.end);
    }
    memory_.mark_placed(p.id);
    for (const CopyId copy : p.inputs)
      release_if_unused(copy);
    for (const StreamedRead& stream : data(p.id).streams) {
      for (const ItemId piece : stream.pieces)
        offchip_.touch(piece, p.end);
    }
    for (const TileOutput& output : data(p.id).outputs)
      deliver(p, output);
    for (const ItemId piece : data(p.id).pieces) {
      if (--readers_left_[piece.index()] == 0)
        retire(piece);
    }
    core_free_[p.core.index()] = p.end;
    add_run(p);
    queue_.placed(p.id, p.end);
  }

  void deliver(const Placement& p, const TileOutput& output) {
    if (output.streamed) {
      offchip_.store(output.piece, p.start, p.end);
    } else if (item(output.piece).to_offchip) {
      write(p, *memory_.find(output.piece, p.pool), TransferKind::write_back);
    }
    if (readers_left_[output.piece.index()] == 0) {
      retire(output.piece);
    } else if (!output.streamed) {
      release_if_unused(*memory_.find(output.piece, p.pool));
    }
  }

  /// A copy that no later tile of this core reads can go, unless it is the only one.
  void release_if_unused(CopyId id) {
    memory_.refresh(id);
    if (memory_.copy(id).next_use == Residency::kNever && spare(id))
      memory_.retire(id);
  }

  /// The last tile that reads the piece is placed.
  void retire(ItemId piece) {
    for (const CopyId copy : memory_.holders(piece))
      memory_.retire(copy);
    offchip_.retire(piece);
  }

  void add_run(const Placement& p) {
    timeline_.add_run({p.id, p.op, p.core, run_cost(p), {p.start}, {p.end}});
  }

  /// Row of the run's cost: tiles with the same problem share it.
  std::uint32_t run_cost(const Placement& p) {
    const TileCost& given = costs_[p.id.index()];
    const auto [entry, added] = run_costs_.try_emplace({given.problem, given.cost}, 0);
    if (added) {
      RunCost row{Energy::from(given.cost->compute_energy), Energy::from(given.cost->memory_energy),
                  0, given.cost->variant};
      if (graph_.op(p.op).nest.compute == ComputeKind::mac) {
        row.macs = 1;
        for (const LoopDim& dim : given.problem->dims)
          row.macs *= dim.size;
      }
      entry->second = timeline_.add_cost(std::move(row));
    }
    return entry->second;
  }

  Timeline finish() {
    memory_.finish();
    offchip_.finish(network_.offchip(), offchip_port(chip_).capacity, timeline_);
    Timeline timeline = timeline_.finish(network_);
    add_phases(step_, timeline);
    add_liveness(step_, timeline);
    return timeline;
  }

  const TileGraph& tiles_;
  const TrainingGraph& step_;
  const Graph& graph_;
  const Chip& chip_;
  const std::vector<TileCost>& costs_;
  TimelineWriter timeline_;
  Network network_;
  Residency memory_;
  DataItems data_;
  OffchipMemory offchip_;
  TileQueue queue_;
  std::vector<std::int64_t> core_free_;
  std::vector<std::uint32_t> readers_left_; ///< per piece
  std::map<std::pair<const CoreProblem*, const CoreCost*>, std::uint32_t> run_costs_;
};

} // namespace

Timeline place_tiles(const TileGraph& tiles, const TrainingGraph& step, const Chip& chip,
                     const std::vector<TileCost>& costs) {
  return EventScheduler(tiles, step, chip, costs).run();
}

} // namespace monet
