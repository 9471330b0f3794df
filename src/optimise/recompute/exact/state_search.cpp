// Exact recomputation by A* over sets of live buffers; exact.cpp tries it first on small problems.
#include "optimise/recompute/exact/state_search.hpp"

#include "monet/base/ids.hpp"

#include <algorithm>
#include <bit>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

namespace monet {

namespace {

constexpr std::size_t kWork = 64; // maximum eviction choices per state

class States {
public:
  States(const RecomputeProblem& problem, std::int64_t budget, const SearchControl& control,
         const StateSearchOptions& options)
      : problem_(problem), options_(options), control_(control), room_(budget),
        ops_(problem.ops.size()) {}

  StateSearch run() {
    StateSearch result;
    if (!number_buffers() || control_.interrupted())
      return result;
    reach({0, 0}, {});
    while (!open_.empty()) {
      const auto [least, at] = open_.top();
      open_.pop();
      if (nodes_[at].closed)
        continue;
      nodes_[at].closed = true;
      if (nodes_[at].key.done == ops_.size() && (kept_ & ~nodes_[at].key.there) == 0) {
        result.complete = true;
        result.plan = plan_to(at);
        return result;
      }
      expand(at);
      if (nodes_.size() > options_.states || work_ > kWork * options_.states ||
          (++visits_ % 256 == 0 && control_.interrupted()))
        return result;
    }
    result.complete = true;
    return result;
  }

private:
  using Mask = std::uint64_t;
  struct Key {
    Mask there = 0;         ///< live buffers, among those with bits
    std::uint32_t done = 0; ///< number of first runs
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const {
      std::uint64_t h = (key.there ^ (std::uint64_t{key.done} << 57)) * 0x9e3779b97f4a7c15U;
      h ^= key.done;
      return static_cast<std::size_t>((h ^ (h >> 29)) * 0xbf58476d1ce4e5b9U);
    }
  };
  struct Node {
    Key key;
    std::int64_t cost = 0;
    std::uint32_t parent = kNone, run = kNone;
    bool closed = false;
  };
  /// Transition from a node by a run, with its total cost.
  struct Step {
    std::uint32_t from = kNone, run = kNone;
    std::int64_t cost = 0;
  };
  /// Operator in terms of buffers with bits.
  struct Op {
    Mask reads = 0, writes = 0;
    std::int64_t scratch = 0;
  };

  /// Numbers buffers with bytes and a producer; returns false if there are too many.
  bool number_buffers() {
    std::vector<std::uint32_t> bit(problem_.buffers.size(), kNone);
    for (std::uint32_t b = 0; b < problem_.buffers.size(); ++b) {
      const RecomputeProblem::Buffer& buffer = problem_.buffers[b];
      if (!buffer.producer) {
        room_ -= buffer.bytes;
      } else if (buffer.bytes > 0) {
        if (bytes_.size() == 64)
          return false;
        bit[b] = static_cast<std::uint32_t>(bytes_.size());
        kept_ |= buffer.kept ? Mask{1} << bit[b] : 0;
        bytes_.push_back(buffer.bytes);
      }
    }
    useful_.assign(ops_.size() + 1, kept_);
    for (std::uint32_t t = 0; t < ops_.size(); ++t) {
      ops_[t].scratch = problem_.ops[t].scratch;
      for (const std::uint32_t b : problem_.ops[t].reads)
        if (bit[b] != kNone)
          ops_[t].reads |= Mask{1} << bit[b];
      for (const std::uint32_t b : problem_.ops[t].writes)
        if (bit[b] != kNone)
          ops_[t].writes |= Mask{1} << bit[b];
    }
    Mask again = 0; // buffers read by repeatable operators
    for (std::uint32_t t = 0; t < ops_.size(); ++t)
      again |= problem_.ops[t].repeatable ? ops_[t].reads : 0;
    for (std::uint32_t t = static_cast<std::uint32_t>(ops_.size()); t-- > 0;)
      useful_[t] = useful_[t + 1] | ops_[t].reads;
    for (Mask& mask : useful_)
      mask |= again;
    return true;
  }

  std::int64_t bytes(Mask mask) const {
    std::int64_t sum = 0;
    for (; mask != 0; mask &= mask - 1)
      sum += bytes_[static_cast<std::size_t>(std::countr_zero(mask))];
    return sum;
  }

  void reach(const Key& key, const Step& step) {
    const auto [parent, run, cost] = step;
    const std::int64_t rest = options_.later.empty() ? 0 : options_.later[key.done];
    if (cost >= options_.below - rest)
      return;
    const auto [known, fresh] = index_.emplace(key, static_cast<std::uint32_t>(nodes_.size()));
    if (fresh) {
      nodes_.push_back({key, cost, parent, run, false});
    } else {
      Node& node = nodes_[known->second];
      if (cost >= node.cost)
        return;
      node.cost = cost;
      node.parent = parent;
      node.run = run;
      node.closed = false; // the heuristic need not be consistent
    }
    open_.emplace(cost + rest, known->second);
  }

  void expand(std::uint32_t at) {
    const Key key = nodes_[at].key;
    const std::int64_t cost = nodes_[at].cost;
    if (key.done < ops_.size())
      try_run(at, key, key.done, cost);
    for (std::uint32_t r = 0; r < key.done; ++r) {
      const Mask made = ops_[r].writes & ~key.there & useful_[key.done];
      if (made != 0 && problem_.ops[r].repeatable)
        try_run(at, key, r, cost + problem_.ops[r].cost);
    }
  }

  void try_run(std::uint32_t at, const Key& key, std::uint32_t op, std::int64_t cost) {
    if ((ops_[op].reads & ~key.there) != 0)
      return;
    const bool first = op == key.done;
    Key next{key.there | ops_[op].writes, key.done + (first ? 1U : 0U)};
    const Mask fixed = ops_[op].reads | ops_[op].writes;
    const std::int64_t over = bytes(next.there) + ops_[op].scratch - room_;
    drop({at, op, cost}, next, over, next.there & ~fixed);
  }

  /// Expands every way to free memory by evicting buffers that the run does not need.
  void drop(const Step& step, const Key& next, std::int64_t over, Mask may) {
    ++work_;
    if (over <= 0) {
      reach({next.there & useful_[next.done], next.done}, step);
      return;
    }
    if (bytes(may) < over || work_ > kWork * options_.states)
      return;
    while (may != 0) {
      const Mask one = may & (~may + 1);
      may &= may - 1;
      Key less = next;
      less.there &= ~one;
      drop(step, less, over - bytes(one), may);
    }
  }

  RecomputePlan plan_to(std::uint32_t at) const {
    RecomputePlan plan;
    for (; nodes_[at].parent != kNone; at = nodes_[at].parent)
      plan.runs.push_back(nodes_[at].run);
    std::ranges::reverse(plan.runs);
    return plan;
  }

  const RecomputeProblem& problem_;
  const StateSearchOptions& options_;
  const SearchControl& control_;
  std::int64_t room_;
  std::vector<Op> ops_;
  std::vector<std::int64_t> bytes_; ///< per bit
  std::vector<Mask> useful_;        ///< per number of first runs: buffers that may still be read
  Mask kept_ = 0;
  std::vector<Node> nodes_;
  std::unordered_map<Key, std::uint32_t, Hash> index_;
  using Open = std::pair<std::int64_t, std::uint32_t>;
  std::priority_queue<Open, std::vector<Open>, std::greater<>> open_;
  std::size_t visits_ = 0;
  std::size_t work_ = 0;
};

} // namespace

StateSearch search_states(const RecomputeProblem& problem, std::int64_t budget,
                          const SearchControl& control, const StateSearchOptions& options) {
  return States(problem, budget, control, options).run();
}

} // namespace monet
