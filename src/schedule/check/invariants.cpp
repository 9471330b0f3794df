// Checks the invariants of a timeline. Recomputes them from the timeline's lists alone, without the
// scheduler's state; model_step() calls verify() after scheduling where stages are verified.
#include "schedule/check/parts.hpp"
#include "schedule/shared/bounds.hpp"
#include "schedule/shared/critical_path.hpp"
#include "workload/shared/operators.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/stop.hpp"
#include "monet/schedule/schedule.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace monet {

namespace {

using Span = std::pair<std::int64_t, std::int64_t>;

class Checker {
public:
  Checker(const Timeline& timeline, const TileGraph& tiles, const TrainingGraph& step,
          const Chip& chip)
      : timeline_(timeline), tiles_(tiles), step_(step), graph_(step.graph), chip_(chip) {}

  void check() {
    check_runs();
    check_cores();
    check_edges();
    check_order_of_operators();
    check_fetches();
    verify_transfers(timeline_, tiles_, graph_, chip_);
    verify_memories(timeline_, tiles_, graph_, chip_);
    check_outputs();
    check_phases();
    check_live();
    check_energy();
    check_bounds();
    check_critical_path();
  }

private:
  static void require(bool condition, const std::string& what) { internal_check(condition, what); }

  void check_runs() {
    require(timeline_.runs.size() == tiles_.tiles.size(), "not every tile runs once");
    run_of_.assign(tiles_.tiles.size(), nullptr);
    const TileRun* previous = nullptr;
    for (const TileRun& run : timeline_.runs) {
      const Tile& tile = tiles_.tiles.at(run.tile.index());
      require(run_of_[run.tile.index()] == nullptr, "a tile runs twice");
      run_of_[run.tile.index()] = &run;
      require(run.op == tile.op && run.core == tile.core, "a run is not that of its tile");
      require(run.start.value >= 0 && run.end > run.start, "a run takes no time");
      require(!previous ||
                  std::tuple(previous->start, previous->tile) <= std::tuple(run.start, run.tile),
              "runs are not in order");
      std::int64_t work = 1;
      for (const Interval& range : tiles_.ranges(run.tile))
        work *= range.size();
      const bool mac = graph_.op(run.op).nest.compute == ComputeKind::mac;
      require(timeline_.cost_of(run).macs == (mac ? work : 0), "a run's MACs are not its tile's");
      require((run.end - run.start) >= timeline_.cost_of(run).latency,
              "a run is shorter than its core takes");
      previous = &run;
    }
  }

  void check_cores() {
    std::map<CoreId, std::vector<Span>> spans;
    for (const TileRun& run : timeline_.runs)
      spans[run.core].emplace_back(run.start.value, run.end.value);
    for (auto& [core, busy] : spans) {
      std::ranges::sort(busy);
      for (std::size_t i = 1; i < busy.size(); ++i)
        require(busy[i].first >= busy[i - 1].second,
                fmt::format("core {} runs two tiles at once", core.index()));
    }
  }

  void check_edges() {
    for (std::size_t t = 0; t < tiles_.tiles.size(); ++t) {
      check_stop();
      for (const TileEdge& edge : tiles_.edges_into(TileId(t))) {
        require(run_of_[t]->start >= run_of_[edge.from.index()]->end,
                fmt::format("tile {} starts before tile {}, whose results it reads, ends", t,
                            edge.from.index()));
      }
    }
  }

  /// Checks that updates run last, except those fused with other operators, and that storage is
  /// overwritten after its last reader.
  void check_order_of_operators() {
    std::vector<Span> span(graph_.operators().size(), Span{INT64_MAX, 0});
    std::int64_t others_end = 0;
    for (const TileRun& run : timeline_.runs) {
      Span& of_op = span[run.op.index()];
      of_op.first = std::min(of_op.first, run.start.value);
      of_op.second = std::max(of_op.second, run.end.value);
      if (graph_.op(run.op).phase != Phase::update)
        others_end = std::max(others_end, run.end.value);
    }
    for (std::size_t i = 0; i < graph_.operators().size(); ++i) {
      const Operator& op = graph_.operators()[i];
      if (op.phase == Phase::update && !fused_with_others(OpId(i))) {
        require(span[i].first >= others_end,
                fmt::format("update '{}' starts before the rest has ended", op.name));
      }
      for (const auto& output : op.outputs) {
        if (!output || !graph_.tensor(*output).alias_of)
          continue;
        for (const OpId reader : graph_.tensor(*graph_.tensor(*output).alias_of).consumers) {
          require(reader.index() >= i || span[reader.index()].second <= span[i].first ||
                      overwritten_after_reading(*output, OpId(i), reader),
                  fmt::format("'{}' overwrites what '{}' still reads", op.name,
                              graph_.op(reader).name));
        }
      }
    }
  }

  /// Checks that a fetch from the host waits for the operator that its anti-dependence names.
  void check_fetches() {
    for (const AntiDependence& order : tiles_.anti_dependences) {
      if (!is_fetch(graph_.op(order.writer)))
        continue;
      const auto [first, last] = tiles_.tiles_of(order.writer);
      for (std::uint32_t t = first; t < last; ++t) {
        const auto [from, to] = tiles_.tiles_of(order.reader);
        for (std::uint32_t before = from; before < to; ++before)
          require(run_of_[t]->start >= run_of_[before]->end,
                  fmt::format("'{}' begins too early", graph_.op(order.writer).name));
      }
    }
  }

  /// True if both operators are in one stack and every tile of the writer starts after the reader's
  /// tiles whose regions it overlaps have ended.
  bool overwritten_after_reading(TensorId output, OpId writer, OpId reader) const {
    if (tiles_.stack_of[writer.index()] != tiles_.stack_of[reader.index()])
      return false;
    const std::vector<std::int64_t>& shape = graph_.tensor(output).shape;
    const auto regions = [&](OpId op, TensorId tensor, bool reads) {
      std::vector<std::pair<std::uint32_t, Box>> result;
      const auto [first, last] = tiles_.tiles_of(op);
      for (const Access& access : graph_.op(op).nest.operands) {
        if (access.tensor != tensor || (access.mode == AccessMode::read) != reads)
          continue;
        for (std::uint32_t t = first; t < last; ++t)
          result.emplace_back(t, region(access, tiles_.ranges(TileId(t)), shape));
      }
      return result;
    };
    const auto written = regions(writer, output, false);
    for (const auto& [r, read] : regions(reader, *graph_.tensor(output).alias_of, true)) {
      for (const auto& [w, box] : written) {
        if (volume(intersect(box, read)) > 0 && run_of_[r]->end > run_of_[w]->start)
          return false;
      }
    }
    return true;
  }

  bool fused_with_others(OpId update) const {
    for (std::size_t i = 0; i < graph_.operators().size(); ++i) {
      if (tiles_.stack_of[i] == tiles_.stack_of[update.index()] &&
          graph_.operators()[i].phase != Phase::update)
        return true;
    }
    return false;
  }

  /// Number of elements of the tensor that tiles write. Elements into which several tiles add, or
  /// that several tiles recompute, count once.
  std::int64_t made_of(TensorId id) const {
    const Tensor& tensor = graph_.tensor(id);
    if (!tensor.producer)
      return element_count(tensor);
    const auto [first, last] = tiles_.tiles_of(*tensor.producer);
    std::vector<bool> added_to(last - first, false);
    for (std::uint32_t t = first; t < last; ++t) {
      for (const TileEdge& edge : tiles_.edges_into(TileId(t))) {
        if (edge.tensor == id)
          added_to[edge.from.value - first] = true;
      }
    }
    const LoopNest& nest = graph_.op(*tensor.producer).nest;
    std::int64_t made = 0;
    for (const Access& access : nest.operands) {
      if (access.tensor != id || access.mode == AccessMode::read)
        continue;
      const bool rows = access.mode == AccessMode::write && !access.opaque &&
                        std::ranges::any_of(access.axes, &AxisExpr::data_dependent);
      if (rows) { // data-dependent positions: one element per iteration
        made += iterations(nest);
        continue;
      }
      std::int64_t pieces = 0;
      for (std::uint32_t t = first; t < last; ++t) {
        if (!added_to[t - first])
          pieces += volume(region(access, tiles_.ranges(TileId(t)), tensor.shape));
      }
      made += std::min(pieces, volume(region(access, full_tile(nest), tensor.shape)));
    }
    return made;
  }

  /// Checks that results that outlive the step are written off-chip.
  void check_outputs() {
    std::map<TensorId, std::int64_t> written;
    for (const Transfer& t : timeline_.transfers) {
      if (timeline_.route_of(t).to.front() == chip_.offchip)
        written[t.tensor] += timeline_.bits_of(t).value;
    }
    for (std::size_t i = 0; i < graph_.tensors().size(); ++i) {
      const Tensor& tensor = graph_.tensors()[i];
      const bool output = std::ranges::find(graph_.outputs, TensorId(i)) != graph_.outputs.end();
      const bool stored = tensor.alias_of && !graph_.tensor(*tensor.alias_of).producer;
      if (!tensor.producer || (!output && !stored))
        continue;
      require(written[TensorId(i)] >= made_of(TensorId(i)) * bits_of(tensor.type),
              fmt::format("'{}' is not written off-chip", tensor.name));
    }
  }

  void check_phases() {
    std::int64_t end = 0;
    for (const TileRun& run : timeline_.runs)
      end = std::max(end, run.end.value);
    for (const Transfer& t : timeline_.transfers)
      end = std::max(end, timeline_.arrival_of(t).value);
    require(timeline_.makespan.value == end, "the makespan is not the last end");
    std::int64_t at = 0;
    for (const PhaseSpan& phase : timeline_.phases) {
      require(phase.start.value == at && phase.end >= phase.start, "phases leave a gap or overlap");
      at = phase.end.value;
    }
    require(timeline_.runs.empty() || at == end, "phases do not cover the makespan");
  }

  /// Checks that byte-cycles summed over tensors equal those of the samples, and that the peak is
  /// the first largest sample.
  void check_live() {
    std::uint64_t by_tensor = 0; // sums wrap alike on both sides
    std::map<TensorId, std::vector<TensorId>> sharing;
    for (std::size_t i = 0; i < graph_.tensors().size(); ++i) {
      TensorId root(i);
      while (graph_.tensor(root).alias_of)
        root = *graph_.tensor(root).alias_of;
      sharing[root].push_back(TensorId(i));
    }
    for (const auto& [root, group] : sharing) {
      const Span life = life_of(root, group);
      const std::int64_t bytes = bytes_of(size_of(graph_.tensor(root)));
      if (life.second > life.first && !lies_in_host(graph_, root)) {
        by_tensor += static_cast<std::uint64_t>(bytes) *
                     static_cast<std::uint64_t>(life.second - life.first);
      }
    }
    std::uint64_t by_sample = 0;
    std::int64_t most = 0;
    const MemorySample* first_most = nullptr;
    for (std::size_t i = 0; i < timeline_.live.size(); ++i) {
      const MemorySample& sample = timeline_.live[i];
      const std::int64_t next = i + 1 < timeline_.live.size() ? timeline_.live[i + 1].time.value
                                                              : timeline_.makespan.value;
      require(next >= sample.time.value, "samples of memory are not in order");
      std::int64_t sum = 0;
      for (const std::int64_t bytes : sample.live) {
        require(bytes >= 0, "an owner has less than nothing");
        sum += bytes;
      }
      sum -= sample.live[static_cast<std::size_t>(MemoryOwner::offloaded_activations)];
      by_sample +=
          static_cast<std::uint64_t>(sum) * static_cast<std::uint64_t>(next - sample.time.value);
      if (sum > most) {
        most = sum;
        first_most = &sample;
      }
    }
    require(by_tensor == by_sample, "live memory differs from the sum over tensors");
    require(!first_most || (first_most->time == timeline_.peak.time &&
                            first_most->live == timeline_.peak.live),
            "the peak is not the first largest sample");
  }

  Span life_of(TensorId root, const std::vector<TensorId>& group) const {
    const Tensor& tensor = graph_.tensor(root);
    Span life{tensor.producer ? INT64_MAX : 0, 0};
    std::set<OpId> touching;
    for (const TensorId id : group) {
      const Tensor& member = graph_.tensor(id);
      touching.insert(member.consumers.begin(), member.consumers.end());
      if (member.producer)
        touching.insert(*member.producer);
      const bool output = std::ranges::find(graph_.outputs, id) != graph_.outputs.end();
      if (output)
        life.second = timeline_.makespan.value;
    }
    const bool kept = tensor.kind == TensorKind::parameter || tensor.kind == TensorKind::buffer ||
                      tensor.kind == TensorKind::optimizer_state;
    if (kept)
      life.second = timeline_.makespan.value;
    for (const OpId op : touching) {
      const auto [first, last] = tiles_.tiles_of(op);
      for (std::uint32_t t = first; t < last; ++t) {
        life.second = std::max(life.second, run_of_[t]->end.value);
        if (tensor.producer == op)
          life.first = std::min(life.first, run_of_[t]->start.value);
      }
    }
    return life;
  }

  void check_energy() {
    EnergySplit sum;
    for (const TileRun& run : timeline_.runs) {
      const RunCost& cost = timeline_.cost_of(run);
      require(cost.compute.units >= 0 && cost.memory.units >= 0, "a run costs negative energy");
      sum.compute += cost.compute;
      sum.onchip_memory += cost.memory;
    }
    for (const Transfer& t : timeline_.transfers) {
      const TransferCost& cost = timeline_.cost_of(t);
      require(cost.link_energy.units >= 0 && cost.offchip_energy.units >= 0 &&
                  cost.onchip_energy.units >= 0,
              "a transfer costs negative energy");
      sum.links += cost.link_energy;
      sum.offchip += cost.offchip_energy;
      sum.onchip_memory += cost.onchip_energy;
    }
    for (const Energy& leakage : timeline_.leakage) {
      require(leakage.units >= 0, "a memory leaks negative energy");
      sum.leakage += leakage;
    }
    require(sum.total() == energy_of(timeline_).total(), "energies do not add up");
  }

  /// Checks that the schedule does not beat the lower bounds.
  void check_bounds() {
    const Bounds bounds = lower_bounds(timeline_, tiles_, step_, chip_);
    require(timeline_.makespan >= bounds.latency(),
            fmt::format("the makespan of {} cycles is below its bounds: chain {}, core {} {}, "
                        "links of core {} {}, port {}",
                        timeline_.makespan.value, bounds.critical_path.value, bounds.core.index(),
                        bounds.busiest_core.value, bounds.links_of.index(),
                        bounds.busiest_links.value, bounds.offchip_port.value));
    const OffchipTotals traffic = offchip_traffic(timeline_, chip_);
    require(traffic.read >= bounds.offchip_read && traffic.written >= bounds.offchip_written,
            fmt::format("{} bits read and {} written off-chip, but {} and {} have to be",
                        traffic.read.value, traffic.written.value, bounds.offchip_read.value,
                        bounds.offchip_written.value));
  }

  /// Checks that the critical path leads from 0 to the makespan without a gap.
  void check_critical_path() {
    Cycles at{0};
    for (const PathSegment& segment : critical_path(timeline_, step_, chip_).segments) {
      require(segment.start == at && segment.end > at, "the critical path has a gap");
      at = segment.end;
    }
    require(at == timeline_.makespan, "the critical path is not as long as the makespan");
  }

  const Timeline& timeline_;
  const TileGraph& tiles_;
  const TrainingGraph& step_;
  const Graph& graph_;
  const Chip& chip_;
  std::vector<const TileRun*> run_of_; ///< per tile
};

} // namespace

void verify(const Timeline& timeline, const TileGraph& tiles, const TrainingGraph& step,
            const Chip& chip) {
  Checker(timeline, tiles, step, chip).check();
}

} // namespace monet
