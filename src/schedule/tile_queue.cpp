#include "schedule/tile_queue.hpp"

#include "monet/base/errors.hpp"

#include <algorithm>

namespace monet {

TileQueue::TileQueue(const TileGraph& tiles, const Graph& graph, std::size_t cores)
    : tiles_(tiles), successors_(tiles.tiles.size()), blockers_(tiles.tiles.size(), 0),
      ready_(tiles.tiles.size(), 0), cores_(cores), gated_(tiles.operators.size()),
      left_(tiles.tiles.size()) {
  for (std::size_t t = 0; t < tiles.tiles.size(); ++t) {
    for (const TileEdge& edge : tiles.edges_into(TileId(t))) {
      successors_[edge.from.index()].emplace_back(t);
      ++blockers_[t];
    }
  }
  for (const OperatorTiling& op : tiles.operators) {
    unfinished_.push_back(op.size());
    end_.push_back(0);
  }
  add_gates(graph);
  for (std::size_t t = 0; t < tiles.tiles.size(); ++t) {
    if (blockers_[t] == 0)
      release(TileId(t), 0);
  }
  if (others_left_ == 0)
    open_updates();
}

void TileQueue::add_gates(const Graph& graph) {
  for (std::size_t i = 0; i < graph.operators().size(); ++i) {
    const Operator& op = graph.operators()[i];
    if (op.phase != Phase::update) {
      ++others_left_;
      continue;
    }
    updates_.push_back(OpId(i));
    const auto [first, last] = tiles_.tiles_of(OpId(i));
    for (std::uint32_t t = first; t < last; ++t)
      ++blockers_[t];
  }
  for (std::size_t i = 0; i < graph.operators().size(); ++i) {
    const Operator& op = graph.operators()[i];
    for (const auto& output : op.outputs) {
      if (!output || !graph.tensor(*output).alias_of)
        continue;
      for (const OpId reader : graph.tensor(*graph.tensor(*output).alias_of).consumers) {
        const bool behind_barrier =
            op.phase == Phase::update && graph.op(reader).phase != Phase::update;
        if (reader < OpId(i) && !behind_barrier)
          add_gate(reader, OpId(i));
      }
    }
  }
}

void TileQueue::add_gate(OpId before, OpId after) {
  auto& waiting = gated_[before.index()];
  if (!waiting.empty() && waiting.back() == after)
    return;
  waiting.push_back(after);
  const auto [first, last] = tiles_.tiles_of(after);
  for (std::uint32_t t = first; t < last; ++t)
    ++blockers_[t];
}

void TileQueue::release(TileId tile, std::int64_t at) {
  std::int64_t& ready = ready_[tile.index()];
  ready = std::max(ready, at);
  const CoreId core = tiles_.tiles[tile.index()].core;
  cores_[core.index()].waiting.emplace(ready, tile.value);
  refresh(core);
}

void TileQueue::refresh(CoreId core) {
  CoreQueue& queue = cores_[core.index()];
  while (!queue.waiting.empty() && queue.waiting.top().first <= queue.free) {
    queue.runnable.push(queue.waiting.top().second);
    queue.waiting.pop();
  }
  std::optional<Key> best;
  if (!queue.runnable.empty()) {
    best = {queue.free, queue.runnable.top()};
  } else if (!queue.waiting.empty()) {
    best = queue.waiting.top();
  }
  if (best == queue.best)
    return;
  if (queue.best)
    order_.erase(*queue.best);
  if (best)
    order_.insert(*best);
  queue.best = best;
}

std::optional<TileId> TileQueue::next() const {
  if (order_.empty())
    return std::nullopt;
  return TileId(std::get<1>(*order_.begin()));
}

void TileQueue::placed(TileId id, std::int64_t end) {
  const Tile& tile = tiles_.tiles[id.index()];
  CoreQueue& queue = cores_[tile.core.index()];
  if (!queue.runnable.empty()) {
    internal_check(queue.runnable.top() == id.value, "a tile is placed out of turn");
    queue.runnable.pop();
  } else {
    internal_check(!queue.waiting.empty() && queue.waiting.top().second == id.value,
                   "a tile is placed out of turn");
    queue.waiting.pop();
  }
  queue.free = end;
  --left_;
  refresh(tile.core);
  for (const TileId successor : successors_[id.index()]) {
    ready_[successor.index()] = std::max(ready_[successor.index()], end);
    if (--blockers_[successor.index()] == 0)
      release(successor, end);
  }
  end_[tile.op.index()] = std::max(end_[tile.op.index()], end);
  if (--unfinished_[tile.op.index()] == 0)
    finish_operator(tile.op, end_[tile.op.index()]);
}

void TileQueue::finish_operator(OpId op, std::int64_t end) {
  for (const OpId after : gated_[op.index()]) {
    const auto [first, last] = tiles_.tiles_of(after);
    for (std::uint32_t t = first; t < last; ++t) {
      ready_[t] = std::max(ready_[t], end);
      if (--blockers_[t] == 0)
        release(TileId(t), end);
    }
  }
  const bool update = std::binary_search(updates_.begin(), updates_.end(), op);
  if (update || others_left_ == 0)
    return;
  others_end_ = std::max(others_end_, end);
  if (--others_left_ == 0)
    open_updates();
}

void TileQueue::open_updates() {
  for (const OpId op : updates_) {
    const auto [first, last] = tiles_.tiles_of(op);
    for (std::uint32_t t = first; t < last; ++t) {
      ready_[t] = std::max(ready_[t], others_end_);
      if (--blockers_[t] == 0)
        release(TileId(t), others_end_);
    }
  }
}

} // namespace monet
