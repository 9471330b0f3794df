// Finds the chain of runs and transfers that determines the latency of a finished schedule, by
// walking back from its end. verify() checks that the chain has no gap.
#include "schedule/shared/critical_path.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

namespace monet {

namespace {

/// Walks back through a timeline: why() finds the event for which a run or a transfer has waited.
class PathWalker {
public:
  PathWalker(const Timeline& timeline, const TrainingGraph& step, const Chip& chip)
      : timeline_(timeline), graph_(step.graph), chip_(chip), port_(offchip_port(chip)) {
    for (std::size_t i = 0; i < chip.cores.size(); ++i)
      pool_of_.push_back(chip.memory_of(CoreId(i)));
    list_ends();
    for (const Route& route : timeline.routes)
      narrowest_.push_back(narrowest_of(route));
  }

  CriticalPath walk() {
    CriticalPath path;
    std::int64_t time = timeline_.makespan.value; // the chain is known from here on
    Cause at;
    if (const auto last = ending_at(time); !last.empty())
      at.event = &last.front();
    OpId waiting = at.event != nullptr ? operator_of(*at.event) : OpId{};
    while (time > 0) {
      if (at.event == nullptr) {
        time = add_wait(path, time, waiting, at.event);
        continue;
      }
      const OpId own = operator_of(*at.event);
      const OpId counted = at.space ? waiting : own;
      if (at.event->run) {
        const TileRun& run = timeline_.runs[at.event->index];
        add_run(path, run, time, {counted, at.space});
        time = run.start.value;
        at = why(run);
      } else {
        const Transfer& transfer = timeline_.transfers[at.event->index];
        add_transfer(path, transfer, time, {counted, at.space});
        time = transfer.start.value;
        at = why(transfer);
      }
      waiting = own;
    }
    std::ranges::reverse(path.segments);
    for (const PathSegment& segment : path.segments)
      path.sums[static_cast<std::size_t>(segment.limit)] += segment.end - segment.start;
    return path;
  }

private:
  /// A run or a transfer, at one of its ends.
  struct Event {
    std::int64_t end = 0;
    std::uint32_t index = 0;
    bool run = false;
  };
  struct Cause {
    const Event* event = nullptr;
    bool space = false; ///< the event frees space
  };
  /// How the path counts an event.
  struct Use {
    OpId counted;       ///< the operator that its cycles count for
    bool space = false; ///< the path waits for the space that the event frees
  };
  struct Narrowest {
    LinkId link;
    bool port = false;
  };

  void list_ends() {
    for (std::size_t i = 0; i < timeline_.runs.size(); ++i)
      ends_.push_back({timeline_.runs[i].end.value, static_cast<std::uint32_t>(i), true});
    for (std::size_t i = 0; i < timeline_.transfers.size(); ++i)
      list_ends_of(timeline_.transfers[i], static_cast<std::uint32_t>(i));
    std::ranges::stable_sort(ends_, {}, &Event::end);
    runs_of_.resize(chip_.cores.size());
    for (std::size_t i = 0; i < ends_.size(); ++i) {
      if (ends_[i].run)
        runs_of_[timeline_.runs[ends_[i].index].core.index()].push_back(
            static_cast<std::uint32_t>(i));
    }
    for (const ResidencyInterval& stay : timeline_.stays) {
      if (stay.end != ResidencyInterval::kKept)
        freed_.emplace_back(timeline_.place_of(stay).memory, stay.end.value);
    }
    std::ranges::sort(freed_);
  }

  /// Lists the ends of a transfer: the time its links are free, and the arrival at each receiver.
  void list_ends_of(const Transfer& transfer, std::uint32_t index) {
    const Route& route = timeline_.route_of(transfer);
    ends_.push_back({transfer.end.value, index, false});
    for (std::size_t i = 0; i < route.latency.size(); ++i) {
      const auto earlier = std::span(route.latency).first(i);
      if (route.latency[i] > 0 && std::ranges::find(earlier, route.latency[i]) == earlier.end())
        ends_.push_back({transfer.end.value + route.latency[i], index, false});
    }
  }

  Narrowest narrowest_of(const Route& route) const {
    Narrowest narrowest;
    std::int64_t width = INT64_MAX;
    for (const LinkId link : route.links) {
      if (chip_.links[link.index()].bandwidth_bits_per_cycle < width) {
        width = chip_.links[link.index()].bandwidth_bits_per_cycle;
        narrowest.link = link;
      }
    }
    narrowest.port = (route.from == chip_.offchip && port_.read_bits_per_cycle <= width) ||
                     (receives(route, *chip_.offchip) && port_.write_bits_per_cycle <= width);
    return narrowest;
  }

  OpId operator_of(const Event& event) const {
    return event.run ? timeline_.runs[event.index].op : timeline_.transfers[event.index].op;
  }

  std::span<const Event> ending_at(std::int64_t time) const {
    return std::ranges::equal_range(ends_, time, {}, &Event::end);
  }

  CoreId pool(CoreId core) const { return pool_of_[core.index()]; }
  bool receives(const Route& route, CoreId memory) const {
    return std::ranges::any_of(route.to, [&](CoreId to) { return pool(to) == memory; });
  }
  /// True if the transfer's data arrive in the memory at `time`.
  bool arrives(const Transfer& t, CoreId memory, std::int64_t time) const {
    const Route& route = timeline_.route_of(t);
    for (std::size_t i = 0; i < route.to.size(); ++i) {
      if (pool(route.to[i]) == memory && t.end.value + route.latency_to(i) == time)
        return true;
    }
    return false;
  }
  bool reads(OpId op, TensorId tensor) const {
    const auto& operands = graph_.op(op).nest.operands;
    return std::ranges::any_of(operands, [&](const Access& a) { return a.tensor == tensor; });
  }
  bool reads_of(OpId reader, OpId maker) const {
    const auto& operands = graph_.op(reader).nest.operands;
    return std::ranges::any_of(
        operands, [&](const Access& a) { return graph_.tensor(a.tensor).producer == maker; });
  }

  /// The first event that ends at `time` and fulfils the condition; null if none exists.
  template <class Holds>
  const Event* first(std::int64_t time, Holds holds) const {
    const std::span<const Event> ended = ending_at(time);
    const auto found = std::ranges::find_if(ended, holds);
    return found != ended.end() ? &*found : nullptr;
  }
  template <class Holds>
  const Event* first_run(std::int64_t time, Holds holds) const {
    return first(time, [&](const Event& e) { return e.run && holds(timeline_.runs[e.index]); });
  }
  template <class Holds>
  const Event* first_transfer(std::int64_t time, Holds holds) const {
    return first(time,
                 [&](const Event& e) { return !e.run && holds(timeline_.transfers[e.index]); });
  }

  /// The event that freed space in the memory at `time`; null if none exists.
  const Event* who_freed(CoreId memory, std::int64_t time) const {
    if (!std::ranges::binary_search(freed_, std::pair(memory, time)))
      return nullptr;
    return first(time, [&](const Event& e) {
      if (e.run)
        return pool(timeline_.runs[e.index].core) == memory;
      const Route& route = timeline_.route_of(timeline_.transfers[e.index]);
      return pool(route.from) == memory || receives(route, memory);
    });
  }

  /// The event whose end the run waited for, found in the order that critical_path() documents;
  /// empty if none is known.
  Cause why(const TileRun& run) const {
    const std::int64_t start = run.start.value;
    const CoreId memory = pool(run.core);
    if (auto event = first_transfer(start, [&](const Transfer& t) {
          const bool kept = t.kind == TransferKind::fetch || t.kind == TransferKind::spill;
          return kept && arrives(t, memory, start) && reads(run.op, t.tensor);
        }))
      return {event};
    if (auto event = first_run(start, [&](const TileRun& r) {
          return reads_of(run.op, r.op) && (r.op != run.op || pool(r.core) != memory);
        }))
      return {event};
    if (auto event = first_run(start, [&](const TileRun& r) { return r.core == run.core; }))
      return {event};
    if (auto event = who_freed(memory, start))
      return {event, true};
    if (const Transfer* stream = stream_from(run)) {
      if (const Cause cause = why(*stream); cause.event != nullptr)
        return cause;
    }
    if (auto event = first(start, [](const Event&) { return true; }))
      return {event};
    return {};
  }

  /// The streamed operand that starts together with the run; null if none exists.
  const Transfer* stream_from(const TileRun& run) const {
    const auto begin =
        std::ranges::lower_bound(timeline_.transfers, run.start, {}, &Transfer::start);
    for (auto t = begin; t != timeline_.transfers.end() && t->start == run.start; ++t) {
      if (t->kind == TransferKind::stream && t->op == run.op &&
          receives(timeline_.route_of(*t), pool(run.core)))
        return &*t;
    }
    return nullptr;
  }

  bool share(const Route& a, const Route& b) const {
    const bool ports = (a.from == b.from && a.from == chip_.offchip) ||
                       (receives(a, *chip_.offchip) && receives(b, *chip_.offchip)) ||
                       (port_.shared && (a.from == chip_.offchip || receives(a, *chip_.offchip)) &&
                        (b.from == chip_.offchip || receives(b, *chip_.offchip)));
    return ports || std::ranges::any_of(a.links, [&](LinkId link) {
             return std::ranges::find(b.links, link) != b.links.end();
           });
  }

  /// The event whose end the transfer waited for; empty if none is known.
  Cause why(const Transfer& transfer) const {
    const std::int64_t start = transfer.start.value;
    const Route& route = timeline_.route_of(transfer);
    const std::optional<OpId> maker = graph_.tensor(transfer.tensor).producer;
    if (auto event = first_run(start, [&](const TileRun& r) {
          return maker == r.op && pool(r.core) == pool(route.from);
        }))
      return {event};
    if (auto event = first_transfer(start, [&](const Transfer& t) {
          return t.tensor == transfer.tensor && arrives(t, pool(route.from), start);
        }))
      return {event};
    if (auto event = first_transfer(start, [&](const Transfer& t) {
          return t.end == transfer.start && share(route, timeline_.route_of(t));
        }))
      return {event};
    if (transfer.kind == TransferKind::stream) {
      if (auto event = first_run(start, [&](const TileRun& r) {
            return pool(r.core) == pool(route.from) || receives(route, pool(r.core));
          }))
        return {event};
      if (auto event = run_of(transfer, route))
        return {event};
    }
    for (const CoreId to : route.to) {
      if (auto event = who_freed(pool(to), start))
        return {event, true};
    }
    if (auto event = who_freed(pool(route.from), start))
      return {event, true};
    return {};
  }

  /// The run during which the stream begins; null if none exists.
  const Event* run_of(const Transfer& stream, const Route& route) const {
    for (std::size_t core = 0; core < chip_.compute_cores(); ++core) {
      const CoreId memory = pool(CoreId(core));
      if (memory != pool(route.from) && !receives(route, memory))
        continue;
      const std::vector<std::uint32_t>& runs = runs_of_[core];
      const auto after = std::partition_point(runs.begin(), runs.end(), [&](std::uint32_t i) {
        return timeline_.runs[ends_[i].index].end <= stream.start;
      });
      if (after == runs.end())
        continue;
      const TileRun& run = timeline_.runs[ends_[*after].index];
      if (run.op == stream.op && run.start < stream.start)
        return &ends_[*after];
    }
    return nullptr;
  }

  void add_run(CriticalPath& path, const TileRun& run, std::int64_t end, Use use) const {
    PathSegment segment{run.start, {end},  use.space ? Limit::capacity : Limit::compute,
                        false,     run.op, use.counted,
                        run.core,  {},     {}};
    // A run longer than its computing waits for streamed operands: they account for its last part.
    const std::int64_t computed = run.start.value + timeline_.cost_of(run).latency.value;
    if (run.start.value < computed && computed < end) {
      PathSegment rest = segment;
      rest.start = {computed};
      const Event* last = first_transfer(run.end.value, [&](const Transfer& t) {
        return t.kind == TransferKind::stream && t.op == run.op;
      });
      const Narrowest narrowest =
          last ? narrowest_[timeline_.cost_of(timeline_.transfers[last->index]).route]
               : Narrowest{{}, true};
      rest.link = narrowest.link;
      if (!use.space)
        rest.limit = narrowest.port ? Limit::offchip : Limit::link;
      segment.end = {computed};
      path.segments.push_back(rest);
    }
    path.segments.push_back(segment);
  }

  void add_transfer(CriticalPath& path, const Transfer& t, std::int64_t end, Use use) const {
    const Narrowest narrowest = narrowest_[timeline_.cost_of(t).route];
    Limit limit = narrowest.port ? Limit::offchip : Limit::link;
    if (use.space || t.kind == TransferKind::spill)
      limit = Limit::capacity;
    path.segments.push_back({t.start,
                             {end},
                             limit,
                             true,
                             t.op,
                             use.counted,
                             timeline_.route_of(t).from,
                             narrowest.link,
                             t.tensor});
  }

  /// Adds a wait of `waiting` without known cause that ends at `time`. Returns its start, the last
  /// earlier end of an event, and sets `at` to that event.
  std::int64_t add_wait(CriticalPath& path, std::int64_t time, OpId waiting,
                        const Event*& at) const {
    const auto after = std::ranges::lower_bound(ends_, time, {}, &Event::end);
    at = nullptr;
    std::int64_t until = 0;
    if (after != ends_.begin()) {
      at = &*std::prev(after);
      until = at->end;
    }
    path.segments.push_back(
        {.start = {until}, .end = {time}, .limit = Limit::order, .counted = waiting});
    return until;
  }

  const Timeline& timeline_;
  const Graph& graph_;
  const Chip& chip_;
  OffchipPort port_;
  std::vector<CoreId> pool_of_;                     ///< per core: first core that shares its memory
  std::vector<Event> ends_;                         ///< sorted by end
  std::vector<std::vector<std::uint32_t>> runs_of_; ///< per core: indices into ends_
  std::vector<std::pair<CoreId, std::int64_t>> freed_; ///< (memory, time at which a tensor left it)
  std::vector<Narrowest> narrowest_;                   ///< per route
};

} // namespace

std::string_view name_of(Limit limit) {
  static constexpr std::array<std::string_view, kLimits> kNames{"compute", "link", "offchip",
                                                                "capacity", "order"};
  return kNames.at(static_cast<std::size_t>(limit));
}

CriticalPath critical_path(const Timeline& timeline, const TrainingGraph& step, const Chip& chip) {
  if (!chip.offchip || timeline.makespan.value == 0)
    return {};
  return PathWalker(timeline, step, chip).walk();
}

std::vector<LimitCycles> operator_cycles(const CriticalPath& path, std::size_t operators) {
  std::vector<LimitCycles> cycles(operators);
  for (const PathSegment& segment : path.segments)
    cycles.at(segment.counted.index()).at(static_cast<std::size_t>(segment.limit)) +=
        segment.end - segment.start;
  return cycles;
}

} // namespace monet
