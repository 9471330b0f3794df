// Tiles and timelines as plain lists, for checks that are to share nothing with the code they
// check.
#pragma once

#include "monet/schedule/schedule.hpp"

#include <vector>

namespace monet::testing {

struct PlainTile {
  OpId op;
  CoreId core;
  std::vector<Interval> ranges;
};

struct PlainEdge {
  TileId from;
  TileId to;
  TensorId tensor;
  std::int64_t bits = 0;

  friend auto operator<=>(const PlainEdge&, const PlainEdge&) = default;
};

struct PlainTiles {
  std::vector<PlainTile> tiles;
  std::vector<PlainEdge> edges;
  std::vector<std::size_t> rank; ///< per tile: its place in the order of scheduling
};

inline PlainTiles plain(const TileGraph& graph) {
  PlainTiles result;
  for (std::size_t t = 0; t < graph.tiles.size(); ++t) {
    const Tile& tile = graph.tiles[t];
    result.rank.push_back(graph.rank[t]);
    result.tiles.push_back({tile.op, tile.core, graph.ranges(TileId(t))});
    for (const TileEdge& edge : graph.edges_into(TileId(t)))
      result.edges.push_back({edge.from, TileId(t), edge.tensor, edge.bits.value});
  }
  return result;
}

struct PlainRun {
  TileId tile;
  CoreId core;
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::int64_t macs = 0;
  Energy energy;

  friend bool operator==(const PlainRun&, const PlainRun&) = default;
};

struct PlainTransfer {
  TransferKind kind = TransferKind::fetch;
  TensorId tensor;
  OpId op;
  CoreId from;
  std::vector<CoreId> to;
  std::int64_t bits = 0;
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::vector<LinkId> links;
  Energy link;
  Energy offchip;
  Energy onchip;
  std::vector<std::int64_t> latency; ///< per receiver, from `end` on; empty = none
  std::int64_t rows = 0;

  std::int64_t arrival(std::size_t receiver) const {
    return end + (latency.empty() ? 0 : latency[receiver]);
  }

  friend bool operator==(const PlainTransfer&, const PlainTransfer&) = default;
};

/// A change of what a memory holds.
struct PlainEvent {
  std::int64_t time = 0;
  CoreId memory;
  TensorId tensor;
  std::int64_t bits = 0;

  friend bool operator==(const PlainEvent&, const PlainEvent&) = default;
};

struct PlainTimeline {
  std::vector<PlainRun> runs;
  std::vector<PlainTransfer> transfers;
  std::vector<PlainEvent> memory; ///< in any order
  std::int64_t makespan = 0;
  Energy total;
};

inline PlainTimeline plain(const Timeline& timeline) {
  PlainTimeline result;
  for (const TileRun& run : timeline.runs) {
    const RunCost& cost = timeline.costs[run.cost];
    result.runs.push_back({run.tile, run.core, run.start.value, run.end.value, cost.macs,
                           cost.compute + cost.memory});
  }
  for (const Transfer& t : timeline.transfers) {
    const TransferCost& cost = timeline.transfer_costs[t.cost];
    const Route& route = timeline.routes[cost.route];
    result.transfers.push_back({t.kind, t.tensor, t.op, route.from, route.to, cost.bits.value,
                                t.start.value, t.end.value, route.links, cost.link_energy,
                                cost.offchip_energy, cost.onchip_energy, route.latency, cost.rows});
  }
  for (const ResidencyInterval& stay : timeline.stays) {
    const MemorySlot& place = timeline.places[stay.place];
    result.memory.push_back({stay.start.value, place.memory, stay.tensor, place.bits.value});
    if (stay.end != ResidencyInterval::kKept)
      result.memory.push_back({stay.end.value, place.memory, stay.tensor, -place.bits.value});
  }
  result.makespan = timeline.makespan.value;
  result.total = energy_of(timeline).total();
  return result;
}

} // namespace monet::testing
