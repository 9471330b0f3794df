// Builds the graph of joins, one layer of nodes per Einsum. Both searches of the mapper, by states
// (mapper.cpp) and by runs (runs.cpp), call this before joining rows.
#include "reference/einsum/graph.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>

namespace monet::einsum {

namespace {

using Key = std::vector<std::int64_t>;

struct KeyHash {
  std::size_t operator()(const Key& key) const {
    std::uint64_t hash = 0x9E3779B97F4A7C15ULL;
    for (const std::int64_t word : key) {
      hash ^= static_cast<std::uint64_t>(word);
      hash *= 0xBF58476D1CE4E5B9ULL;
      hash ^= hash >> 29;
    }
    return hash;
  }
};

Key key_of(const Node& state) {
  Key key(state.trips.begin(), state.trips.end());
  for (const Live& live : state.live) {
    key.push_back(-1 - static_cast<std::int64_t>(live.tensor));
    key.push_back(live.level);
    for (const Live::Loop& loop : live.loops) {
      key.push_back(loop.axis);
      key.push_back(loop.tile);
    }
  }
  return key;
}

/// The place of a tensor's tile according to a row group.
struct View {
  int level = kInDram;
  std::vector<Live::Loop> loops; ///< all loops of the path
};

class Joiner {
public:
  Joiner(const std::vector<Node>& before, const EinsumRows& einsum, const LayerRules& rules,
         LayerStatistics& statistics)
      : before_(before), rows_(einsum.rows), uses_(einsum.uses), allowed_(rules),
        statistics_(statistics) {
    views_.resize(rows_.groups.size());
    for (std::size_t g = 0; g < rows_.groups.size(); ++g) {
      const RowGroup& group = rows_.groups[g];
      for (const Uses::Use& use : uses_.uses) {
        View view{group.levels[use.operand], {}};
        for (const PathLoop& loop : group.path)
          view.loops.push_back(
              {direct_axis(einsum.shape.operands[use.operand], loop.rank), loop.tile});
        views_[g].push_back(std::move(view));
      }
      const auto seen = [&](std::size_t u) -> const View& { return views_[g][u]; };
      index_[index_key(seen)].push_back(static_cast<std::uint32_t>(g));
    }
  }

  Layer run(const SearchControl& control, bool& complete) {
    std::vector<const std::vector<std::uint32_t>*> fitting;
    std::size_t pairs = 0;
    for (const Node& node : before_) {
      const auto found = index_.find(index_key(
          [&](std::size_t u) -> const Live& { return find(node, uses_.uses[u].tensor); }));
      fitting.push_back(found == index_.end() ? nullptr : &found->second);
      pairs += fitting.back() == nullptr ? 0 : fitting.back()->size();
    }
    const std::size_t every = pairs / allowed_.max_pairs + 1;
    complete = complete && every == 1;
    for (std::uint32_t n = 0; n < before_.size(); n += static_cast<std::uint32_t>(every)) {
      if (fitting[n] == nullptr)
        continue;
      for (const std::uint32_t group : *fitting[n]) {
        if ((joined_++ & 1023U) == 0 && control.interrupted())
          return {};
        join(n, group);
      }
    }
    return std::move(layer_);
  }

private:
  /// Key of the places of all tensors that an earlier Einsum uses. `seen_of` returns the View or
  /// Live of a use.
  template <class SeenOf>
  Key index_key(const SeenOf& seen_of) const {
    Key key;
    for (std::size_t u = 0; u < uses_.uses.size(); ++u) {
      if (!uses_.uses[u].before)
        continue;
      const auto& seen = seen_of(u);
      key.push_back(seen.level);
      for (int l = 0; l < seen.level; ++l) {
        key.push_back(seen.loops[static_cast<std::size_t>(l)].axis);
        key.push_back(seen.loops[static_cast<std::size_t>(l)].tile);
      }
    }
    return key;
  }
  static const Live& find(const Node& state, std::uint32_t tensor) {
    return *std::ranges::lower_bound(state.live, tensor, {}, &Live::tensor);
  }
  const Uses::Use* use_of(std::uint32_t tensor) const {
    const auto found = std::ranges::find(uses_.uses, tensor, &Uses::Use::tensor);
    return found == uses_.uses.end() ? nullptr : &*found;
  }

  /// Minimum number of loops that stay shared, given the tensors that stay live.
  std::size_t loops_after(const Node& left, std::size_t g) const {
    std::size_t loops = 0;
    for (const Live& live : left.live) {
      if (use_of(live.tensor) == nullptr)
        loops = std::max(loops, static_cast<std::size_t>(std::max(live.level, 0)));
    }
    return std::max(loops, own_loops_after(g));
  }
  std::size_t own_loops_after(std::size_t g) const {
    int loops = 0;
    for (std::size_t u = 0; u < uses_.uses.size(); ++u) {
      if (uses_.uses[u].after)
        loops = std::max(loops, views_[g][u].level);
    }
    return static_cast<std::size_t>(loops);
  }

  bool compatible(const Node& left, std::size_t g) const {
    const RowGroup& group = rows_.groups[g];
    const std::size_t own = allowed_.relaxed ? group.path.size() : own_loops_after(g);
    if (left.trips.size() > group.path.size() || loops_after(left, g) > own)
      return false;
    for (std::size_t l = 0; l < left.trips.size(); ++l) {
      if (left.trips[l] != group.path[l].trips)
        return false;
    }
    if (allowed_.unordered)
      return true;
    for (std::size_t u = 0; u < uses_.uses.size(); ++u) {
      if (!uses_.uses[u].before)
        continue;
      const Live& live = find(left, uses_.uses[u].tensor);
      const View& view = views_[g][u];
      for (std::size_t l = static_cast<std::size_t>(std::max(live.level, 0)); l < live.loops.size();
           ++l) {
        if (live.loops[l].axis < 0 || live.loops[l] != view.loops[l])
          return false;
      }
    }
    return true;
  }

  Node key_after(const Node& left, std::size_t g, std::size_t loops) const {
    const RowGroup& group = rows_.groups[g];
    Node state;
    for (std::size_t l = 0; l < loops; ++l)
      state.trips.push_back(group.path[l].trips);
    for (const Live& live : left.live) {
      const Uses::Use* use = use_of(live.tensor);
      if (use != nullptr && !use->after)
        continue;
      state.live.push_back(live);
      if (live.loops.size() > loops)
        state.live.back().loops.resize(loops);
    }
    for (std::size_t u = 0; u < uses_.uses.size(); ++u) {
      const Uses::Use& use = uses_.uses[u];
      if (use.before || !use.after)
        continue;
      const View& view = views_[g][u];
      Live live{use.tensor, view.level, 0, {}};
      if (view.level != kInDram)
        live.bits = group.tile_bits[use.operand];
      const auto known = static_cast<std::ptrdiff_t>(
          allowed_.unordered || !use.made ? static_cast<std::size_t>(std::max(view.level, 0))
                                          : loops);
      live.loops.assign(view.loops.begin(), view.loops.begin() + known);
      state.live.push_back(std::move(live));
    }
    std::ranges::sort(state.live, {}, &Live::tensor);
    return state;
  }

  void join(std::uint32_t from, std::uint32_t group) {
    ++statistics_.pairs;
    if (!compatible(before_[from], group))
      return;
    ++statistics_.compatible;
    const std::size_t loops = loops_after(before_[from], group);
    add(from, group, key_after(before_[from], group, loops));
    if (allowed_.goes_on && loops == 0 && !rows_.groups[group].path.empty())
      add(from, group, key_after(before_[from], group, 1));
  }

  void add(std::uint32_t from, std::uint32_t group, Node fresh) {
    const auto [at, inserted] =
        known_.try_emplace(key_of(fresh), static_cast<std::uint32_t>(layer_.nodes.size()));
    if (inserted)
      layer_.nodes.push_back(std::move(fresh));
    layer_.edges.push_back({from, group, at->second});
  }

  const std::vector<Node>& before_;
  const Rows& rows_;
  const Uses& uses_;
  LayerRules allowed_;
  LayerStatistics& statistics_;
  std::vector<std::vector<View>> views_; ///< [group][use]
  std::map<Key, std::vector<std::uint32_t>> index_;
  Layer layer_;
  std::uint64_t joined_ = 0;                              ///< pairs
  std::unordered_map<Key, std::uint32_t, KeyHash> known_; ///< never iterated
};

} // namespace

Layer next_layer(const std::vector<Node>& before, const EinsumRows& einsum, const LayerRules& rules,
                 const SearchControl& control, LayerStatistics& statistics, bool& complete) {
  return Joiner(before, einsum, rules, statistics).run(control, complete);
}

namespace {

/// Unmarks all kept nodes except the `count` cheapest ones; nodes with everything in DRAM stay.
void mark_cheapest(const Layer& layer, const std::vector<std::int64_t>& tensor_bits,
                   std::size_t count, const std::vector<std::int64_t>& cost,
                   std::vector<bool>& keep) {
  std::vector<std::pair<std::int64_t, std::uint32_t>> order;
  for (std::uint32_t n = 0; n < layer.nodes.size(); ++n) {
    if (!keep[n])
      continue;
    std::int64_t least = cost[n];
    bool shares = false;
    for (const Live& live : layer.nodes[n].live) {
      least += live.level == kInDram ? tensor_bits[live.tensor] : 0;
      shares = shares || live.level != kInDram;
    }
    if (shares) // a node with everything in DRAM is always kept
      order.emplace_back(least, n);
  }
  std::ranges::sort(order);
  // Nodes are taken in turn from all sets of shared loops, the best of each first, because the cost
  // of a loop shows only in the Einsums that follow under it.
  std::map<std::vector<std::int64_t>, std::int64_t> ranks;
  for (auto& [rank, node] : order)
    rank = ranks[layer.nodes[node].trips]++;
  std::ranges::stable_sort(order, {}, [](const auto& item) { return item.first; });
  for (std::size_t i = count; i < order.size(); ++i)
    keep[order[i].second] = false;
}

} // namespace

std::size_t keep_cheapest(Layer& layer, const Rows& rows,
                          const std::vector<std::int64_t>& tensor_bits, const NodeLimits& promise,
                          std::vector<std::int64_t>& so_far) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> cost(layer.nodes.size(), most);
  for (const Edge& edge : layer.edges) // row 0 has the fewest DRAM bits
    cost[edge.to] = std::min(cost[edge.to], so_far[edge.from] + rows.groups[edge.group].row(0)[0]);
  so_far = std::move(cost);
  std::vector<bool> keep;
  for (std::size_t n = 0; n < layer.nodes.size(); ++n) {
    std::int64_t held = 0;
    for (const Live& live : layer.nodes[n].live)
      held += live.bits;
    keep.push_back(so_far[n] < promise.max_dram && held <= promise.buffer_bits);
  }
  const auto left = static_cast<std::size_t>(std::ranges::count(keep, true));
  if (left > promise.count)
    mark_cheapest(layer, tensor_bits, promise.count, so_far, keep);
  keep_marked(so_far, keep);
  keep_nodes(layer, keep);
  return left - layer.nodes.size();
}

void keep_nodes(Layer& layer, const std::vector<bool>& keep) {
  std::vector<std::uint32_t> place; // new index of each kept node
  std::uint32_t next = 0;
  for (const bool kept : keep)
    place.push_back(kept ? next++ : next);
  keep_marked(layer.nodes, keep);
  std::erase_if(layer.edges, [&](const Edge& edge) { return !keep[edge.to]; });
  for (Edge& edge : layer.edges)
    edge.to = place[edge.to];
}

void correction(const Node& node, const RowGroup& group, const Uses& uses,
                std::vector<std::int64_t>& shift) {
  const std::size_t loops = node.trips.size();
  shift.assign(group.path.size() + 1, 0);
  for (const Live& live : node.live) {
    if (live.level == kInDram)
      continue;
    const auto level = static_cast<std::size_t>(live.level);
    const bool deepest = level == loops;
    const bool ours = std::ranges::any_of(
        uses.uses, [&](const Uses::Use& use) { return use.tensor == live.tensor; });
    // A tile that the Einsum uses: below all shared loops each branch holds it in turn (no
    // correction); above, the path counts it already. Any other tile is held during the Einsum.
    const std::int64_t by = ours ? (deepest ? 0 : -live.bits) : (deepest ? live.bits : 0);
    for (std::size_t d = level; d < shift.size(); ++d)
      shift[d] += by;
  }
}

} // namespace monet::einsum
