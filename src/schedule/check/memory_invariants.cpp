// Checks that memories have room for what a timeline puts there, and that operands are there when
// tiles run; verify() in invariants.cpp calls it.
#include "schedule/check/parts.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/stop.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace monet {

namespace {

using Span = std::pair<std::int64_t, std::int64_t>;

/// Bits of each tensor in each memory, as steps: the bits from each time on.
using BitsOverTime = std::map<std::pair<CoreId, TensorId>, std::map<std::int64_t, std::int64_t>>;

/// Converts the change at each time into the bits from then on.
void sum_up(BitsOverTime& bits) {
  for (auto& [key, steps] : bits) {
    std::int64_t sum = 0;
    for (auto& [time, change] : steps) {
      sum += change;
      change = sum;
    }
  }
}

/// Minimum bits of the tensor in the memory during `span`.
std::int64_t min_bits(const BitsOverTime& bits, CoreId memory, TensorId tensor, Span span) {
  const auto found = bits.find({memory, tensor});
  if (found == bits.end())
    return 0;
  auto step = found->second.upper_bound(span.first);
  if (step == found->second.begin())
    return 0;
  std::int64_t least = std::prev(step)->second;
  for (; step != found->second.end() && step->first < span.second; ++step)
    least = std::min(least, step->second);
  return least;
}

class MemoryChecker {
public:
  MemoryChecker(const Timeline& timeline, const TileGraph& tiles, const Graph& graph,
                const Chip& chip)
      : timeline_(timeline), tiles_(tiles), graph_(graph), chip_(chip) {}

  void check_memories() {
    std::map<CoreId, std::int64_t> used;
    std::int64_t at = 0;
    for (const MemoryEvent& event : memory_events(timeline_)) {
      internal_check(event.time.value >= at, "memory events are not in order");
      at = event.time.value;
      std::int64_t& bits = used[event.memory];
      bits += event.delta.value;
      internal_check(bits >= 0 && bits <= capacity_of(event.memory),
                     fmt::format("memory of core {} holds {} bits at cycle {}",
                                 event.memory.index(), bits, at));
      held_[{event.memory, event.tensor}][at] += event.delta.value;
    }
    sum_up(held_);
    for (const auto& [key, steps] : held_) {
      for (const auto& [time, bits] : steps)
        internal_check(bits >= 0, "a tensor leaves a memory it is not in");
    }
    for (const auto& [core, bits] : used)
      internal_check(core == chip_.offchip || bits == 0, "a core's memory is not empty at the end");
  }

  /// Checks that every operand of a run is complete in its core's memory during the run, or is
  /// streamed.
  void check_presence() {
    const BitsOverTime on_the_way = bits_on_the_way();
    std::map<std::tuple<OpId, TensorId, CoreId>, std::vector<Span>> streams;
    for (const Transfer& t : timeline_.transfers) {
      if (t.kind != TransferKind::stream)
        continue;
      const Route& route = timeline_.route_of(t);
      const CoreId core = route.from == chip_.offchip ? route.to.front() : route.from;
      streams[{t.op, t.tensor, chip_.memory_of(core)}].emplace_back(t.start.value, t.end.value);
    }
    for (const TileRun& run : timeline_.runs) {
      check_stop();
      const CoreId memory = chip_.memory_of(run.core);
      const Span span{run.start.value, run.end.value};
      const Span start{span.first, span.first + 1};
      for (const Access& access : graph_.op(run.op).nest.operands) {
        const Tensor& tensor = graph_.tensor(access.tensor);
        std::int64_t needed = volume(region(access, tiles_.ranges(run.tile), tensor.shape));
        needed *= bits_of(tensor.type);
        if (access.mode == AccessMode::read && tensor.producer)
          needed = std::min(needed, made_for(run.tile, access.tensor));
        const std::int64_t there = std::min(min_bits(held_, memory, access.tensor, span),
                                            min_bits(held_, memory, access.tensor, start) -
                                                min_bits(on_the_way, memory, access.tensor, start));
        if (needed == 0 || there >= needed)
          continue;
        const auto found = streams.find({run.op, access.tensor, memory});
        const bool flows =
            found != streams.end() && std::ranges::any_of(found->second, [&](Span s) {
              return s.first >= span.first && s.second <= span.second;
            });
        internal_check(flows, fmt::format("'{}' is not there while '{}' runs on core {}",
                                          tensor.name, graph_.op(run.op).name, run.core.index()));
      }
    }
  }

private:
  std::int64_t capacity_of(CoreId core) const {
    if (core == chip_.offchip) {
      const std::int64_t bits = offchip_port(chip_).capacity.value;
      return bits > 0 ? bits : INT64_MAX;
    }
    return chip_.pool_bits(core);
  }

  /// Bits that are being sent to a memory, or have been sent and have not arrived. Streams are not
  /// counted.
  BitsOverTime bits_on_the_way() const {
    BitsOverTime bits;
    for (const Transfer& t : timeline_.transfers) {
      const Route& route = timeline_.route_of(t);
      const bool kept = t.kind == TransferKind::fetch || t.kind == TransferKind::spill;
      if (!kept || route.to.front() == chip_.offchip)
        continue;
      for (std::size_t i = 0; i < route.to.size(); ++i) {
        auto& steps = bits[{chip_.memory_of(route.to[i]), t.tensor}];
        steps[t.start.value] += timeline_.bits_of(t).value;
        steps[t.end.value + route.latency_to(i)] -= timeline_.bits_of(t).value;
      }
    }
    sum_up(bits);
    return bits;
  }

  /// Bits that the tile reads and other tiles write; the remaining bits are zeros.
  std::int64_t made_for(TileId tile, TensorId tensor) const {
    std::int64_t bits = 0;
    for (const TileEdge& edge : tiles_.edges_into(tile)) {
      if (edge.tensor == tensor)
        bits += edge.bits.value;
    }
    return bits;
  }

  const Timeline& timeline_;
  const TileGraph& tiles_;
  const Graph& graph_;
  const Chip& chip_;
  BitsOverTime held_;
};

} // namespace

void verify_memories(const Timeline& timeline, const TileGraph& tiles, const Graph& graph,
                     const Chip& chip) {
  MemoryChecker checker(timeline, tiles, graph, chip);
  checker.check_memories();
  checker.check_presence();
}

} // namespace monet
