// Entry of the schedule stage: places tiles one by one, with their transfers and memory. Uses
// TileQueue for the order, DataMover for transfers and Residency for memories.
#include "schedule/cost/run_cost.hpp"
#include "schedule/placement/data_mover.hpp"
#include "schedule/placement/tile_queue.hpp"
#include "schedule/placement/timeline_writer.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/stop.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace monet {

namespace {

/// Places all tiles of one step; see schedule().
class EventScheduler {
public:
  EventScheduler(const TileGraph& tiles, const TrainingGraph& step, const Chip& chip,
                 const TileCosts& costs, Priority priority, const TransferRules& rules)
      : tiles_(tiles), step_(step), chip_(chip), exact_overlap_(rules.exact_overlap),
        kinds_(make_kinds(tiles, step.graph, costs)), network_(chip, rules),
        pieces_(tiles, step.graph, chip, costs, kinds_), memory_(chip, tiles, pieces_, timeline_),
        mover_(tiles, step, chip, rules, {network_, memory_, pieces_, timeline_}),
        queue_(tiles, step.graph, pieces_, chip.cores.size(), priority),
        core_free_(chip.cores.size(), 0), may_stall_(priority == Priority::latency) {
    for (TileKind& kind : kinds_) {
      if (kind.problem != nullptr)
        kind.row = timeline_.add_cost(run_cost(*kind.problem, *kind.cost));
    }
    timeline_.expect(tiles.tiles.size(), pieces_.min_transfers(), pieces_.min_stays());
    seen_.resize(pieces_.sources().parts().size(), 0);
  }

  /// Makes run() call `hopeless` about 128 times with rising bounds; if it returns true, run()
  /// gives up.
  void watch(FloorTracker& floor, const std::function<bool(const ScheduleFloor&)>& hopeless) {
    floor_ = &floor;
    hopeless_ = &hopeless;
    timeline_.watch(floor);
  }

  Timeline run() {
    for (std::size_t placed = 0;;) {
      bool forced = false;
      auto tile = queue_.next();
      if (!tile) {
        const auto core = queue_.first_stalled();
        if (!core)
          break;
        queue_.resume(*core);
        tile = queue_.next();
        forced = true;
      }
      const std::int64_t missing = forced || !may_stall_ ? 0 : missing_room(*tile);
      if (missing > 0) {
        const CoreId core = tiles_.tiles[tile->index()].core;
        const PoolId pool = pieces_.pool_of(*tile);
        stalled_.push_back({core, pool, memory_.pool(pool).possible_room() + missing});
        queue_.stall(core);
        continue;
      }
      const std::size_t between = 1 + tiles_.tiles.size() / 128;
      if (floor_ != nullptr && placed++ % between == 0 && (*hopeless_)(floor_->floor()))
        return {.complete = false};
      check_stop();
      place(*tile);
      resume_cores();
    }
    internal_check(queue_.left() == 0, "tiles wait for each other");
    return finish();
  }

private:
  /// A core that is stalled until its pool can provide `room` bits.
  struct StalledCore {
    CoreId core;
    PoolId pool;
    std::int64_t room = 0;
  };
  /// A result of the tile that is being placed.
  struct Result {
    PieceId piece;
    const KindOutput* output = nullptr;
    Bits bits;
    std::optional<std::size_t> adds_to; ///< index of the need that becomes the result
    std::optional<CopyId> copy;
    bool takes_room() const { return !output->streamed && !adds_to; }
  };
  /// The tile that is being placed.
  struct Placement {
    TileId id;
    const TileKind* kind = nullptr;
    CoreId core;
    PoolId pool;
    std::int64_t start = 0;
    std::int64_t end = 0;
    std::int64_t written = 0;          ///< cycle from which streamed results are off-chip
    std::vector<OperandRequest> needs; ///< pieces that its core's memory must hold
    std::vector<PieceId> streams;      ///< pieces of other tiles that are streamed
    std::vector<PieceId> also_streams; ///< pieces that are streamed, but also kept
    std::vector<Result> results;
    std::vector<Bits> slices;     ///< per operand: working space if streamed; no stack's slices
    std::vector<Bits> read_again; ///< per operand: earlier tiles' sums, if streamed
  };

  /// Resumes the cores whose next tile now has the room that it waited for.
  void resume_cores() {
    std::erase_if(stalled_, [&](const StalledCore& waiting) {
      if (queue_.stalled(waiting.core) &&
          memory_.pool(waiting.pool).possible_room() >= waiting.room)
        queue_.resume(waiting.core);
      return !queue_.stalled(waiting.core);
    });
  }

  /// Bits of room that the tile has to wait for; 0 if it may be placed. A tile of a fused stack
  /// waits if it would evict data that its stack still needs: other tiles of the stack, placed
  /// first, free room.
  std::int64_t missing_room(TileId id) {
    if (!queue_.is_fused(id))
      return 0;
    const Pool& pool = memory_.pool(pieces_.pool_of(id));
    const std::int64_t room = pool.possible_room();
    if (pieces_.kind(id).max_bits.value <= room || pool.needed.empty())
      return 0;
    const std::uint32_t farthest = memory_.copy(CopyId(pool.needed.top().index())).next_use;
    if (farthest != Residency::kNever && farthest > queue_.last_rank(id))
      return 0;
    read_needs(id);
    std::int64_t wanted = p_.kind->working_space.value;
    for (const OperandRequest& need : p_.needs)
      wanted += need.missing.value;
    return wanted + room_of_results() - room;
  }

  /// Bits of results that need new room: neither streamed nor added to a piece in memory.
  std::int64_t room_of_results() const {
    std::int64_t bits = 0;
    for (const Result& result : p_.results)
      bits += result.takes_room() ? result.bits.value : 0;
    return bits;
  }

  /// Sets `p_` to the inputs and results of the tile.
  void read_needs(TileId id) {
    p_.id = id;
    p_.kind = &pieces_.kind(id);
    p_.core = tiles_.tiles[id.index()].core;
    p_.pool = pieces_.pool_of(id);
    p_.needs.clear();
    p_.streams.clear();
    p_.also_streams.clear();
    p_.results.clear();
    p_.read_again.assign(p_.kind->problem->operands.size(), Bits{0});
    mover_.serve(id, std::max(core_free_[p_.core.index()], queue_.ready(id)));
    for (std::size_t k = 0; k < p_.kind->outputs.size(); ++k) {
      const KindOutput& output = p_.kind->outputs[k];
      const PieceId piece = pieces_.output(id, k);
      p_.results.push_back(
          {piece, &output, pieces_.grows(piece) ? output.partial : output.bits, {}, {}});
    }
    for (const TileEdge& edge : tiles_.edges_into(id))
      add_need(edge);
    ++sight_;
    for (const SourceParts::Read& read : pieces_.sources().reads_of(p_.kind->op)) {
      const KindRead* of_kind = p_.kind->read_of(read.tensor);
      if (of_kind == nullptr || !of_kind->kept || p_.kind->problem->operands[read.operand].offchip)
        continue;
      for (const std::uint32_t part : pieces_.sources().parts_of(read, id)) {
        OperandRequest need;
        need.piece = pieces_.source(part);
        need.tensor = read.tensor;
        need.bits = pieces_.sources().parts()[part].bits;
        need.memory = of_kind->memory;
        if (seen_[part] != sight_) // else another operand of the tile reads it, too
          p_.needs.push_back(need);
        seen_[part] = sight_;
      }
    }
    for (OperandRequest& need : p_.needs)
      mover_.look_up(need);
  }

  void add_need(const TileEdge& edge) {
    const TileKind& maker = pieces_.kind(edge.from);
    const std::uint32_t k = *maker.output_of(edge.tensor);
    OperandRequest need;
    need.piece = pieces_.output(edge.from, k);
    need.tensor = edge.tensor;
    need.maker = edge.from;
    if (maker.op == p_.kind->op) {
      const auto own = p_.kind->output_of(edge.tensor);
      internal_check(own.has_value(), "a tile adds to what it does not write");
      Result& result = p_.results[*own];
      need.bits = maker.outputs[k].partial;
      need.memory = MemoryOperand::O;
      need.adds = true;
      if (result.output->streamed) {
        p_.streams.push_back(need.piece);
        p_.read_again[result.output->operand] += need.bits;
      } else {
        result.adds_to = p_.needs.size();
        p_.needs.push_back(need);
      }
      return;
    }
    const KindRead* read = p_.kind->read_of(edge.tensor);
    internal_check(read != nullptr, "an edge leads to a tile that does not read its tensor");
    if (!read->kept) {
      p_.streams.push_back(need.piece);
      return;
    }
    if (read->streamed)
      p_.also_streams.push_back(need.piece);
    need.bits = exact_overlap_ ? edge.bits : maker.outputs[k].bits;
    need.whole = need.bits >= maker.outputs[k].bits;
    need.memory = read->memory;
    p_.needs.push_back(need);
  }

  /// Places one tile: moves its operands, makes room, books its streams and its run.
  void place(TileId id) {
    read_needs(id);
    p_.start = std::max(core_free_[p_.core.index()], queue_.ready(id));
    set_slices();
    drop_large_pieces();
    p_.start = std::max(p_.start, mover_.gather(p_.needs));
    for (const PieceId piece : p_.streams)
      p_.start = std::max(p_.start, mover_.store(piece));
    for (const PieceId piece : p_.also_streams)
      p_.start = std::max(p_.start, mover_.store(piece));
    reserve_results();
    stream_operands();
    settle();
  }

  /// Sets the working space of each streamed operand: the bits that the core cost requests, limited
  /// to the free room.
  void set_slices() {
    std::int64_t left = memory_.pool(p_.pool).capacity - room_of_results();
    for (const OperandRequest& need : p_.needs)
      left -= need.bits.value;
    if (left < 0) {
      throw InfeasibleError(
          fmt::format("operands of '{}' exceed the memory of core '{}' by {} bits",
                      step_.graph.op(p_.kind->op).name, chip_.cores[p_.core.index()].name, -left));
    }
    const auto& operands = p_.kind->problem->operands;
    const auto& resident = p_.kind->cost->resident;
    p_.slices.assign(operands.size(), Bits{0});
    for (std::size_t i = 0; i < operands.size() && i < resident.size(); ++i) {
      if (!operands[i].offchip)
        continue;
      p_.slices[i] = {std::clamp<std::int64_t>(resident[i].value, 0, left)};
      left -= p_.slices[i].value;
    }
  }

  /// Evicts pieces of which the tile reads only a part if the tile does not fit otherwise; the
  /// largest excess first.
  void drop_large_pieces() {
    std::int64_t wanted = room_of_results();
    for (const Bits slice : p_.slices)
      wanted += slice.value;
    const auto excess = [&](const OperandRequest& need) {
      const std::int64_t more =
          need.copy ? memory_.copy(*need.copy).bits.value + need.missing.value - need.bits.value
                    : 0;
      return std::max<std::int64_t>(0, more);
    };
    for (const OperandRequest& need : p_.needs)
      wanted += need.bits.value + excess(need);
    const std::int64_t capacity = memory_.pool(p_.pool).capacity;
    if (wanted <= capacity)
      return;
    std::vector<std::pair<std::int64_t, std::size_t>> excesses;
    for (std::size_t i = 0; i < p_.needs.size(); ++i) {
      if (excess(p_.needs[i]) > 0)
        excesses.emplace_back(-excess(p_.needs[i]), i);
    }
    std::sort(excesses.begin(), excesses.end());
    for (std::size_t i = 0; i < excesses.size() && wanted > capacity; ++i) {
      OperandRequest& need = p_.needs[excesses[i].second];
      wanted += excesses[i].first;
      mover_.evict(*need.copy);
      need.copy.reset();
      need.missing = need.bits;
    }
  }

  /// Makes room for kept results and working space; delays the tile's start until the room is free.
  void reserve_results() {
    Bits total{0};
    TensorId last;
    const auto& operands = step_.graph.op(p_.kind->op).nest.operands;
    for (std::size_t i = 0; i < p_.slices.size(); ++i) {
      total += p_.slices[i];
      if (p_.slices[i].value > 0)
        last = operands[i].tensor;
    }
    for (const Result& result : p_.results) {
      if (!result.takes_room())
        continue;
      total += result.bits;
      last = result.output->tensor;
    }
    if (total.value == 0)
      return;
    p_.start = std::max(p_.start, mover_.make_room(total, last, p_.start));
  }

  /// Books the streams of the tile: reads in the order of operands, then writes, the last of which
  /// end no sooner than the computation. The tile starts with its first read and computes once its
  /// first bits can have arrived. It occupies its core until all reads have arrived and all writes
  /// have left.
  void stream_operands() {
    const auto& traffic = p_.kind->cost->offchip;
    std::int64_t reads_end = 0;
    std::int64_t first_hops = 0; // latency of the first read
    bool first = true;
    for (std::size_t i = 0; i < traffic.size(); ++i) {
      const Bits bits = traffic[i].read + p_.read_again[i];
      if (bits.value == 0)
        continue;
      const auto [booking, arrival] = mover_.stream(i, bits, false, p_.start);
      if (first) {
        p_.start = booking.start;
        first_hops = arrival - booking.end;
      }
      first = false;
      reads_end = std::max(reads_end, arrival);
    }
    const std::int64_t latency = std::max<std::int64_t>(1, p_.kind->cost->latency.value);
    p_.end = std::max(p_.start + first_hops + latency, reads_end);
    p_.written = 0;
    const std::int64_t computed = p_.end;
    for (std::size_t i = 0; i < traffic.size(); ++i) {
      if (traffic[i].write.value == 0)
        continue;
      const std::int64_t length = mover_.streaming_time(i, traffic[i].write, true);
      const auto [booking, arrival] =
          mover_.stream(i, traffic[i].write, true, std::max(p_.start, computed - length));
      p_.end = std::max(p_.end, booking.end);
      p_.written = std::max(p_.written, arrival);
    }
    p_.written = std::max(p_.written, p_.end);
  }

  /// Books memory and results at the tile's final times, and frees data that were read for the last
  /// time.
  void settle() {
    const auto& operands = step_.graph.op(p_.kind->op).nest.operands;
    const std::uint32_t rank = tiles_.rank[p_.id.index()];
    for (std::size_t i = 0; i < p_.slices.size(); ++i) {
      if (p_.slices[i].value > 0)
        memory_.occupy(p_.pool, operands[i].tensor, p_.slices[i], p_.start, p_.end);
    }
    for (const OperandRequest& need : p_.needs) {
      --memory_.copy(*need.copy).pins;
      memory_.touch(*need.copy, p_.end);
    }
    memory_.mark_placed(p_.id);
    for (Result& result : p_.results) {
      if (result.output->streamed)
        continue;
      if (result.adds_to) {
        OperandRequest& need = p_.needs[*result.adds_to];
        result.copy = need.copy;
        memory_.turn_into(*need.copy, result.piece, result.bits, p_.end, rank);
        need.copy.reset();
        continue;
      }
      result.copy =
          memory_.add(p_.pool, result.piece, result.output->tensor, result.bits, p_.start, rank);
      memory_.copy(*result.copy).available = p_.end;
      memory_.touch(*result.copy, p_.end);
    }
    for (const PieceId piece : p_.also_streams)
      mover_.touch_offchip(piece, p_.end);
    for (const OperandRequest& need : p_.needs)
      mover_.read_done(need.piece, need.copy);
    for (const PieceId piece : p_.streams) {
      mover_.touch_offchip(piece, p_.end);
      mover_.read_done(piece, std::nullopt);
    }
    for (const Result& result : p_.results)
      mover_.made(result.piece, result.copy, *result.output, p_.start, p_.written);
    core_free_[p_.core.index()] = p_.end;
    const TileRun run{p_.id, p_.kind->op, p_.core, p_.kind->row, {p_.start}, {p_.end}};
    timeline_.add_run(run);
    if (floor_ != nullptr)
      floor_->add_run(run, std::max<std::int64_t>(1, p_.kind->cost->latency.value));
    queue_.placed(p_.id, p_.end);
  }

  Timeline finish() {
    mover_.finish(offchip_port(chip_).capacity);
    Timeline timeline = timeline_.finish(network_);
    add_phases(step_, timeline);
    add_liveness(step_, timeline);
    for (std::size_t c = 0; c < chip_.cores.size(); ++c)
      timeline.leakage.push_back(Energy::from(
          {leakage_per_cycle(chip_, CoreId(c)) * static_cast<double>(timeline.makespan.value)}));
    return timeline;
  }

  const TileGraph& tiles_;
  const TrainingGraph& step_;
  const Chip& chip_;
  bool exact_overlap_;
  std::vector<TileKind> kinds_;
  TimelineWriter timeline_;
  Network network_;
  Pieces pieces_;
  Residency memory_;
  DataMover mover_;
  TileQueue queue_;
  std::vector<std::int64_t> core_free_;
  bool may_stall_; ///< false for priorities whose order frees room by itself
  std::vector<StalledCore> stalled_;
  std::vector<std::uint64_t> seen_; ///< per source part: sight_ of the last tile that read it
  std::uint64_t sight_ = 0;
  FloorTracker* floor_ = nullptr;
  const std::function<bool(const ScheduleFloor&)>* hopeless_ = nullptr;
  Placement p_;
};

} // namespace

Timeline schedule(const TileGraph& tiles, const TrainingGraph& step, const Chip& chip,
                  const TileCosts& costs, const ScheduleOptions& options) {
  EventScheduler scheduler(tiles, step, chip, costs, options.priority, options.rules);
  std::optional<FloorTracker> floor;
  if (options.hopeless)
    scheduler.watch(floor.emplace(tiles, step, chip, costs), options.hopeless);
  return scheduler.run();
}

} // namespace monet
