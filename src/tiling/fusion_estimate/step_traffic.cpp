// Computes the off-chip traffic of a step whose operators run whole, one after the other. price.cpp
// starts its group prices from it.
#include "tiling/fusion_estimate/price.hpp"

#include <algorithm>
#include <limits>

namespace monet {

namespace {

constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();

/// Walks over the operators in order and tracks which tensors each pool holds.
class Walk {
public:
  Walk(const Graph& graph, std::span<const std::uint32_t> pool, std::span<const std::int64_t> room,
       std::span<const OperatorSpread> spread)
      : graph_(graph), pool_(pool), spread_(spread), held_(room.size()),
        left_(room.begin(), room.end()), room_(room.begin(), room.end()),
        readers_(graph.tensors().size(), 0) {
    result_.stored.resize(graph.tensors().size(), false);
    for (const TensorId id : graph.outputs)
      result_.stored[id.index()] = true;
    for (std::size_t t = 0; t < graph.tensors().size(); ++t) {
      if (graph.tensors()[t].alias_of)
        result_.stored[t] = true;
    }
  }

  StepTraffic run() {
    for (std::size_t i = 0; i < graph_.operators().size(); ++i)
      step(i);
    return std::move(result_);
  }

private:
  std::int64_t bits(TensorId id) const { return size_of(graph_.tensor(id)).value; }

  /// Index of the next operator after `op` that reads the tensor; kNever if none exists.
  std::size_t next_use(TensorId id, std::size_t op) {
    const auto& readers = graph_.tensor(id).consumers;
    std::uint32_t& at = readers_[id.index()];
    while (at < readers.size() && readers[at].index() <= op)
      ++at;
    return at < readers.size() ? readers[at].index() : kNever;
  }

  bool held(TensorId id) const {
    return std::ranges::any_of(
        held_, [&](const auto& pool) { return std::ranges::find(pool, id) != pool.end(); });
  }

  void drop(std::size_t pool, TensorId id) {
    std::erase(held_[pool], id);
    left_[pool] += bits(id);
  }

  /// Evicts tensors, farthest next use first, until `wanted` bits are free. False if only pinned
  /// tensors remain.
  bool make_room(std::size_t pool, std::int64_t wanted, std::size_t op,
                 std::span<const TensorId> pinned) {
    while (left_[pool] < wanted) {
      std::optional<TensorId> last;
      std::size_t farthest = 0;
      for (const TensorId id : held_[pool]) {
        if (std::ranges::find(pinned, id) != pinned.end())
          continue;
        const std::size_t use = next_use(id, op);
        if (!last || use > farthest) {
          last = id;
          farthest = use;
        }
      }
      if (!last)
        return false;
      if (farthest != kNever && graph_.tensor(*last).producer)
        result_.stored[last->index()] = true;
      drop(pool, *last);
    }
    return true;
  }

  void step(std::size_t op) {
    const auto& operands = graph_.operators()[op].nest.operands;
    const std::size_t pool = pool_[op];
    // Operands are kept from smallest to largest while they fit; the others are streamed.
    std::vector<TensorId> own;
    std::vector<std::pair<std::int64_t, TensorId>> sizes; // bits on all cores together
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const TensorId id = operands[i].tensor;
      if (std::ranges::find(own, id) != own.end())
        continue;
      own.push_back(id);
      sizes.emplace_back(bits(id) * (spread_.empty() ? 1 : spread_[op].cores[i]), id);
    }
    std::ranges::stable_sort(sizes, {}, &std::pair<std::int64_t, TensorId>::first);
    std::vector<TensorId> kept;
    std::int64_t left = spread_.empty() ? room_[pool] : spread_[op].room;
    for (const auto& [size, id] : sizes) {
      if (size > left)
        break;
      left -= size;
      kept.push_back(id);
    }
    auto& reads = result_.reads.emplace_back(operands.size(), StepTraffic::Source::chip);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const TensorId id = operands[i].tensor;
      const bool stays = std::ranges::find(kept, id) != kept.end();
      if (operands[i].mode != AccessMode::read) {
        result_.stored[id.index()] = result_.stored[id.index()] || !stays;
      } else if (!stays) {
        reads[i] = StepTraffic::Source::streamed;
        result_.stored[id.index()] = result_.stored[id.index()] || graph_.tensor(id).producer;
      } else if (!held(id)) {
        reads[i] = StepTraffic::Source::fetched;
      }
    }
    for (const TensorId id : kept) {
      if (std::ranges::find(held_[pool], id) != held_[pool].end())
        continue;
      if (!make_room(pool, bits(id), op, own))
        continue;
      held_[pool].push_back(id);
      left_[pool] -= bits(id);
    }
    for (const TensorId id : own) {
      if (next_use(id, op) != kNever)
        continue;
      for (std::size_t p = 0; p < held_.size(); ++p) {
        if (std::ranges::find(held_[p], id) != held_[p].end())
          drop(p, id);
      }
    }
  }

  const Graph& graph_;
  std::span<const std::uint32_t> pool_;
  std::span<const OperatorSpread> spread_;
  std::vector<std::vector<TensorId>> held_; ///< per pool
  std::vector<std::int64_t> left_;          ///< bits per pool
  std::vector<std::int64_t> room_;
  std::vector<std::uint32_t> readers_; ///< per tensor: index of its next reader
  StepTraffic result_;
};

} // namespace

StepTraffic step_traffic(const Graph& graph, std::span<const std::uint32_t> pool,
                         std::span<const std::int64_t> room,
                         std::span<const OperatorSpread> spread) {
  return Walk(graph, pool, room, spread).run();
}

} // namespace monet
