// Chooses the tile that the event scheduler places next, by priority, edges and ordering rules.
#include "schedule/placement/tile_queue.hpp"

#include "monet/base/errors.hpp"

#include <algorithm>

namespace monet {

std::vector<bool> updates_that_wait(const TileGraph& tiles, const Graph& graph) {
  const auto& ops = graph.operators();
  std::uint32_t stacks = 0;
  for (const std::uint32_t stack : tiles.stack_of)
    stacks = std::max(stacks, stack + 1);
  std::vector<bool> mixed(stacks, false); // has operators other than updates
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].phase != Phase::update)
      mixed[tiles.stack_of[i]] = true;
  }
  std::vector<bool> waits(ops.size(), false);
  for (std::size_t i = 0; i < ops.size(); ++i)
    waits[i] = ops[i].phase == Phase::update && !mixed[tiles.stack_of[i]];
  return waits;
}

TileQueue::TileQueue(const TileGraph& tiles, const Graph& graph, const Pieces& pieces,
                     std::size_t cores, Priority priority)
    : tiles_(tiles), graph_(graph), pieces_(pieces), priority_(priority),
      blockers_(tiles.tiles.size(), 0), ready_(tiles.tiles.size(), 0), cores_(cores),
      order_(places_), gated_(tiles.operators.size()), waits_(updates_that_wait(tiles, graph)),
      left_(tiles.tiles.size()) {
  for (std::size_t t = 0; t < tiles.tiles.size(); ++t)
    blockers_[t] = static_cast<std::uint32_t>(tiles.edges_into(TileId(t)).size());
  for (const OperatorTiling& tiling : tiles.operators) {
    unfinished_.push_back(tiling.size());
    end_.push_back(0);
  }
  add_updates(graph);
  add_gates(graph);
  add_turns();
  for (std::size_t t = 0; t < tiles.tiles.size(); ++t) {
    if (blockers_[t] == 0)
      release(TileId(t));
  }
  begin_turns();
  find_fused_stacks();
}

/// Counts the operators of each stack and finds the last tiles of stacks.
void TileQueue::find_fused_stacks() {
  std::vector<std::uint32_t> operators;
  for (std::size_t i = 0; i < tiles_.operators.size(); ++i) {
    const std::uint32_t stack = tiles_.stack_of[i];
    operators.resize(std::max<std::size_t>(operators.size(), stack + 1), 0);
    ++operators[stack];
  }
  for (const std::uint32_t count : operators)
    fused_.push_back(count > 1);
  for (std::uint32_t t = 0; t < tiles_.tiles.size(); ++t) {
    const std::size_t own = stretch_of(TileId(t));
    last_rank_.resize(std::max(last_rank_.size(), own + 1), 0);
    last_rank_[own] = std::max(last_rank_[own], tiles_.rank[t]);
  }
}

/// Blocks the updates that wait for all other operators.
void TileQueue::add_updates(const Graph& graph) {
  for (std::size_t i = 0; i < graph.operators().size(); ++i)
    others_left_ += graph.operators()[i].phase == Phase::update ? 0 : 1;
  for (std::size_t i = 0; others_left_ > 0 && i < waits_.size(); ++i) {
    const auto [first, last] = tiles_.tiles_of(OpId(i));
    for (std::uint32_t t = first; waits_[i] && t < last; ++t)
      ++blockers_[t];
  }
}

/// Blocks tiles that overwrite storage until its earlier readers have ended.
void TileQueue::add_gates(const Graph& graph) {
  for (const AntiDependence& order : tiles_.anti_dependences) {
    const bool behind_barrier =
        waits_[order.writer.index()] && graph.op(order.reader).phase != Phase::update;
    for (const auto& [reader, writer] : order.tiles) {
      gated_tiles_.emplace_back(reader, writer);
      ++blockers_[writer.index()];
    }
    if (!order.tiles.empty() || behind_barrier)
      continue;
    gated_[order.reader.index()].push_back(order.writer);
    const auto [first, last] = tiles_.tiles_of(order.writer);
    for (std::uint32_t t = first; t < last; ++t)
      ++blockers_[t];
  }
  std::ranges::sort(gated_tiles_);
}

/// Blocks the tiles of a turn until the turn before is placed. An idle core would otherwise begin
/// with the next images, whose results would evict those of the present ones.
void TileQueue::add_turns() {
  for (std::size_t t = 0; t < tiles_.turn.size(); ++t) {
    const std::uint32_t turn = tiles_.turn[t];
    if (turn == TileGraph::kNoTurn)
      continue;
    if (turns_.size() <= turn)
      turns_.resize(turn + std::size_t{1});
    turns_[turn].emplace_back(t);
    blockers_[t] += turn > 0 ? 1 : 0;
  }
  for (const auto& tiles : turns_)
    turn_left_.push_back(tiles.size());
}

void TileQueue::begin_turns() {
  while (turn_ + 1 < turns_.size() && turn_left_[turn_] == 0) {
    for (const TileId tile : turns_[++turn_])
      unblock(tile, 0);
  }
}

/// Makes a tile available whose last blocker is gone.
void TileQueue::release(TileId tile) {
  const std::uint32_t rank = tiles_.rank[tile.index()];
  if (priority_ != Priority::latency) {
    const std::int64_t depth = tiles_.tiles[tile.index()].op.value;
    of_all_.emplace(priority_ == Priority::memory ? -depth : 0, rank);
    return;
  }
  const CoreId core = tiles_.tiles[tile.index()].core;
  cores_[core.index()].waiting.emplace(ready_[tile.index()], rank);
  refresh(core);
}

/// (start, rank) of the core's next tile; nullopt if it has none.
std::optional<TileQueue::Key> TileQueue::best(const CoreQueue& queue) const {
  if (!queue.runnable.empty())
    return Key(queue.free, queue.runnable.top());
  return queue.waiting.empty() ? std::nullopt : std::optional(queue.waiting.top());
}

/// Updates the core's next tile after a change of its queue.
void TileQueue::refresh(CoreId core) {
  CoreQueue& queue = cores_[core.index()];
  while (!queue.waiting.empty() && queue.waiting.top().first <= queue.free) {
    queue.runnable.push(queue.waiting.top().second);
    queue.waiting.pop();
  }
  const std::optional<Key> first = best(queue);
  if (first && first->second != queue.stalled)
    queue.stalled.reset();
  if (first && !queue.stalled) {
    order_.set({*first, core.value});
  } else {
    order_.erase(core.value);
  }
}

std::optional<TileId> TileQueue::next() const {
  if (priority_ != Priority::latency)
    return of_all_.empty() ? std::nullopt : std::optional(pieces_.order()[of_all_.top().second]);
  return order_.empty() ? std::nullopt : std::optional(pieces_.order()[order_.top().key.second]);
}

void TileQueue::stall(CoreId core) {
  cores_[core.index()].stalled = best(cores_[core.index()])->second;
  refresh(core);
}

void TileQueue::resume(CoreId core) {
  if (!stalled(core))
    return;
  cores_[core.index()].stalled.reset();
  refresh(core);
}

std::optional<CoreId> TileQueue::first_stalled() const {
  std::optional<CoreId> first;
  std::uint32_t rank = 0;
  for (std::size_t c = 0; c < cores_.size(); ++c) {
    const auto key = cores_[c].stalled ? best(cores_[c]) : std::nullopt;
    if (key && (!first || key->second < rank)) {
      first = CoreId(c);
      rank = key->second;
    }
  }
  return first;
}

void TileQueue::placed(TileId id, std::int64_t end) {
  const Tile& tile = tiles_.tiles[id.index()];
  const std::uint32_t rank = tiles_.rank[id.index()];
  if (priority_ != Priority::latency) {
    internal_check(!of_all_.empty() && of_all_.top().second == rank,
                   "a tile is placed out of turn");
    of_all_.pop();
  } else {
    CoreQueue& queue = cores_[tile.core.index()];
    if (!queue.runnable.empty()) {
      internal_check(queue.runnable.top() == rank, "a tile is placed out of turn");
      queue.runnable.pop();
    } else {
      internal_check(!queue.waiting.empty() && queue.waiting.top().second == rank,
                     "a tile is placed out of turn");
      queue.waiting.pop();
    }
    queue.free = end;
    refresh(tile.core);
  }
  --left_;
  for (std::size_t k = 0; k < pieces_.kind(id).outputs.size(); ++k) {
    for (const TileId reader : pieces_.readers(pieces_.output(id, k)))
      unblock(reader, end);
  }
  const auto gated =
      std::ranges::equal_range(gated_tiles_, id, {}, &std::pair<TileId, TileId>::first);
  for (const auto& [reader, writer] : gated)
    unblock(writer, end);
  if (tiles_.takes_turns(id)) {
    --turn_left_[tiles_.turn[id.index()]];
    begin_turns();
  }
  end_[tile.op.index()] = std::max(end_[tile.op.index()], end);
  if (--unfinished_[tile.op.index()] == 0)
    finish_operator(tile.op, end_[tile.op.index()]);
}

void TileQueue::unblock(TileId tile, std::int64_t at) {
  std::int64_t& ready = ready_[tile.index()];
  ready = std::max(ready, at);
  if (--blockers_[tile.index()] == 0)
    release(tile);
}

void TileQueue::unblock_operator(OpId op, std::int64_t at) {
  const auto [first, last] = tiles_.tiles_of(op);
  for (std::uint32_t t = first; t < last; ++t)
    unblock(TileId(t), at);
}

/// Unblocks the tiles that wait for the whole operator, and updates after the last other operator.
void TileQueue::finish_operator(OpId op, std::int64_t end) {
  for (const OpId after : gated_[op.index()])
    unblock_operator(after, end);
  if (graph_.op(op).phase == Phase::update)
    return;
  others_end_ = std::max(others_end_, end);
  if (--others_left_ > 0)
    return;
  for (std::size_t i = 0; i < waits_.size(); ++i) {
    if (waits_[i])
      unblock_operator(OpId(i), others_end_);
  }
}

} // namespace monet
