#include "einsum_join.hpp"

#include "monet/base/errors.hpp"

#include <algorithm>
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

Key key_of(const State& state) {
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

/// How a group sees one tensor.
struct View {
  int level = kInDram;
  std::vector<Live::Loop> loops; ///< of the whole path
};

class Joiner {
public:
  Joiner(const std::vector<State>& before, const Shape& shape, const Rows& rows, const Uses& uses,
         const JoinLimits& limits, JoinStatistics& statistics)
      : before_(before), rows_(rows), uses_(uses), limits_(limits), statistics_(statistics) {
    views_.resize(rows.groups.size());
    for (std::size_t g = 0; g < rows.groups.size(); ++g) {
      const RowGroup& group = rows.groups[g];
      for (const Uses::Use& use : uses.uses) {
        View view{group.levels[use.operand], {}};
        for (const PathLoop& loop : group.path)
          view.loops.push_back({direct_axis(shape.operands[use.operand], loop.rank), loop.tile});
        views_[g].push_back(std::move(view));
      }
      index_[index_key(g)].push_back(static_cast<std::uint32_t>(g));
    }
  }

  std::vector<State> run(const SearchControl& control, bool& complete) {
    for (std::uint32_t s = 0; s < before_.size(); ++s) {
      const auto found = index_.find(index_key(before_[s]));
      if (found == index_.end())
        continue;
      for (const std::uint32_t g : found->second)
        join(s, g);
      if ((s & 15U) == 0 && control.interrupted()) {
        complete = false;
        break;
      }
    }
    std::size_t total = 0;
    for (State& state : after_) {
      thin(state);
      total += state.size();
    }
    statistics_.kept += static_cast<std::int64_t>(total);
    if (total > limits_.max_rows) {
      complete = false;
      drop(total);
    }
    return std::move(after_);
  }

private:
  static void append(Key& key, int level, std::span<const Live::Loop> loops) {
    key.push_back(level);
    for (int l = 0; l < level; ++l) {
      key.push_back(loops[static_cast<std::size_t>(l)].axis);
      key.push_back(loops[static_cast<std::size_t>(l)].tile);
    }
  }
  Key index_key(std::size_t group) const {
    Key key;
    for (std::size_t u = 0; u < uses_.uses.size(); ++u) {
      if (uses_.uses[u].before)
        append(key, views_[group][u].level, views_[group][u].loops);
    }
    return key;
  }
  Key index_key(const State& state) const {
    Key key;
    for (const Uses::Use& use : uses_.uses) {
      if (use.before) {
        const Live& live = find(state, use.tensor);
        append(key, live.level, live.loops);
      }
    }
    return key;
  }
  static const Live& find(const State& state, std::uint32_t tensor) {
    const auto at = std::lower_bound(state.live.begin(), state.live.end(), tensor,
                                     [](const Live& l, std::uint32_t t) { return l.tensor < t; });
    return *at;
  }
  const Uses::Use* use_of(std::uint32_t tensor) const {
    for (const Uses::Use& use : uses_.uses) {
      if (use.tensor == tensor)
        return &use;
    }
    return nullptr;
  }

  /// Loops that the tensors need which stay alive.
  std::size_t loops_after(const State& left, std::size_t g) const {
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

  bool compatible(const State& left, std::size_t g) const {
    const RowGroup& group = rows_.groups[g];
    if (left.loops() > group.path.size() || loops_after(left, g) > own_loops_after(g))
      return false;
    for (std::size_t l = 0; l < left.loops(); ++l) {
      if (left.trips[l] != group.path[l].trips)
        return false;
    }
    if (limits_.unordered)
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

  State key_after(const State& left, std::size_t g) const {
    const RowGroup& group = rows_.groups[g];
    const std::size_t loops = loops_after(left, g);
    State state;
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
          limits_.unordered || !use.made ? static_cast<std::size_t>(std::max(view.level, 0))
                                         : loops);
      live.loops.assign(view.loops.begin(), view.loops.begin() + known);
      state.live.push_back(std::move(live));
    }
    std::sort(state.live.begin(), state.live.end(),
              [](const Live& a, const Live& b) { return a.tensor < b.tensor; });
    return state;
  }

  void join(std::uint32_t s, std::uint32_t g) {
    ++statistics_.pairs;
    const State& left = before_[s];
    if (!compatible(left, g))
      return;
    ++statistics_.compatible;
    State fresh = key_after(left, g);
    const auto [at, inserted] =
        known_.try_emplace(key_of(fresh), static_cast<std::uint32_t>(after_.size()));
    if (inserted) {
      after_.push_back(std::move(fresh));
      thinned_.push_back(0);
    }
    const std::uint32_t to = at->second;
    prepare(left, g, after_[to].loops());
    for (std::uint32_t i = 0; i < left.size(); ++i) {
      for (std::uint32_t j = 0; j < rows_.groups[g].size(); ++j) {
        ++statistics_.joined;
        if (combine(left.row(i), rows_.groups[g].row(j))) {
          ++statistics_.fitting;
          after_[to].values.insert(after_[to].values.end(), out_.begin(), out_.end());
          after_[to].backs.push_back({s, i, g, j});
        }
      }
    }
    if (after_[to].size() > 2 * thinned_[to] + 1024) {
      thin(after_[to]);
      thinned_[to] = after_[to].size();
    }
  }

  /// What the rows' columns have to be corrected by: tensors of both sides count once.
  void prepare(const State& left, std::size_t g, std::size_t loops) {
    n_ = left.loops();
    m_ = rows_.groups[g].path.size();
    kept_ = loops;
    shift_.assign(m_ + 1, 0);
    for (const Live& live : left.live) {
      if (live.level == kInDram)
        continue;
      const auto level = static_cast<std::size_t>(live.level);
      const bool ours = use_of(live.tensor) != nullptr;
      const bool deepest = level == n_;
      // Below all shared loops both branches hold it, one after the other; above, it is on the path
      // already. One that this Einsum does not use stays beside it.
      const std::int64_t by = ours ? (deepest ? 0 : -live.bits) : (deepest ? live.bits : 0);
      for (std::size_t d = level; d <= m_; ++d)
        shift_[d] += by;
    }
    out_.resize(2 * loops + 2);
  }

  bool combine(const std::int64_t* left, const std::int64_t* right) {
    const std::int64_t* c = left + 1;      // C_0 .. C_n-1
    const std::int64_t* p = left + 1 + n_; // P_0 .. P_n
    const std::int64_t* held = right + 1;  // bits under at most d loops; held[m]: all
    const std::int64_t path = n_ > 0 ? c[n_ - 1] : 0;
    const std::int64_t here = path + held[m_] + shift_[m_];
    if (here > limits_.buffer_bits)
      return false;
    out_[0] = left[0] + right[0];
    std::int64_t* to_c = out_.data() + 1;
    std::int64_t* to_p = out_.data() + 1 + kept_;
    for (std::size_t d = 0; d < kept_; ++d)
      to_c[d] = (n_ > 0 ? c[std::min(d, n_ - 1)] : 0) + held[d] + shift_[d];
    std::fill(to_p, to_p + kept_ + 1, std::int64_t{0});
    for (std::size_t d = 0; d <= n_; ++d) {
      const std::int64_t peak = p[d] + (d > 0 && p[d] > 0 ? held[d - 1] + shift_[d - 1] : 0);
      std::int64_t& to = to_p[std::min(d, kept_)];
      to = std::max(to, peak);
    }
    to_p[kept_] = std::max(to_p[kept_], here);
    for (std::size_t d = 0; d <= kept_; ++d) {
      if (d < kept_) // what is held on the path is a peak as well
        to_p[d] = std::max(to_p[d], to_c[d]);
      if (to_p[d] > limits_.buffer_bits)
        return false;
    }
    return true;
  }

  static void thin(State& state) {
    std::vector<std::uint32_t> order;
    keep_pareto(state.values, state.stride(), order);
    std::vector<std::int64_t> values;
    std::vector<State::Back> backs;
    values.reserve(order.size() * state.stride());
    backs.reserve(order.size());
    for (const std::uint32_t i : order) {
      values.insert(values.end(), state.row(i), state.row(i) + state.stride());
      backs.push_back(state.backs[i]);
    }
    state.values = std::move(values);
    state.backs = std::move(backs);
  }

  /// Keeps an equal share of every state's rows, those with the least DRAM traffic.
  void drop(std::size_t total) {
    for (State& state : after_) {
      const std::size_t share = std::max<std::size_t>(1, state.size() * limits_.max_rows / total);
      if (share < state.size()) {
        state.values.resize(share * state.stride());
        state.backs.resize(share);
      }
    }
  }

  const std::vector<State>& before_;
  const Rows& rows_;
  const Uses& uses_;
  const JoinLimits& limits_;
  JoinStatistics& statistics_;
  std::vector<std::vector<View>> views_; ///< [group][use]
  std::map<Key, std::vector<std::uint32_t>> index_;
  std::vector<State> after_;
  std::vector<std::size_t> thinned_;
  std::unordered_map<Key, std::uint32_t, KeyHash> known_; ///< looked up only
  std::size_t n_ = 0;
  std::size_t m_ = 0;
  std::size_t kept_ = 0;
  std::vector<std::int64_t> shift_;
  std::vector<std::int64_t> out_;
};

} // namespace

std::vector<State> start() {
  State state;
  state.values = {0, 0};
  state.backs.push_back({0, 0, 0, 0});
  return {state};
}

std::vector<State> join(const std::vector<State>& before, const Shape& shape, const Rows& rows,
                        const Uses& uses, const JoinLimits& limits, const SearchControl& control,
                        JoinStatistics& statistics, bool& complete) {
  return Joiner(before, shape, rows, uses, limits, statistics).run(control, complete);
}

} // namespace monet::einsum
