// solve_chain(): optimal recomputation of a chain of layers by dynamic programming over parts and
// memory; checkpoint_chain.cpp plans steps with it.
#include "optimise/shared/chain_dp.hpp"

#include "base/shared/checked.hpp"

#include "monet/base/errors.hpp"

#include <algorithm>
#include <limits>

namespace monet {

namespace {

/// Additional cost of a part of the chain, by the amount of memory. Below `from` the cost is only
/// known to be at least `floor`; from `end` on it is 0.
template <typename Cost>
struct Part {
  std::int32_t from = 0;
  std::int32_t end = 0;
  Cost floor = 0;
  std::size_t first = 0; ///< index of the end - from costs

  /// Whether only a lower bound is known.
  bool cut(std::int32_t memory, Cost infinite) const { return memory < from && floor < infinite; }
};

/// Depth of the first table in layers' memory below keeping everything.
constexpr std::int64_t kFirstDepth = 2;

/// Costs over a range of memory: an array, or one constant.
template <typename Cost>
struct Run {
  const Cost* costs = nullptr;
  Cost constant = 0;
  std::int32_t stop = 0; ///< end of the range of memory
};

// Most time is spent here, so wider registers are used if the processor has them.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__) &&       \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define MONET_WIDE __attribute__((target_clones("avx2", "default"), optimize("O3")))
#else
#define MONET_WIDE
#endif

/// best = min(best, a + b + plus)
MONET_WIDE void lower_both(std::int32_t* __restrict best, const std::int32_t* __restrict a,
                           const std::int32_t* __restrict b, std::int32_t count,
                           std::int32_t plus) {
  for (std::int32_t i = 0; i < count; ++i) {
    const std::int32_t sum = a[i] + b[i] + plus;
    best[i] = sum < best[i] ? sum : best[i];
  }
}
MONET_WIDE void lower_both(std::int64_t* __restrict best, const std::int64_t* __restrict a,
                           const std::int64_t* __restrict b, std::int32_t count,
                           std::int64_t plus) {
  for (std::int32_t i = 0; i < count; ++i) {
    const std::int64_t sum = a[i] + b[i] + plus;
    best[i] = sum < best[i] ? sum : best[i];
  }
}

/// best = min(best, a + plus)
MONET_WIDE void lower_one(std::int32_t* __restrict best, const std::int32_t* __restrict a,
                          std::int32_t count, std::int32_t plus) {
  for (std::int32_t i = 0; i < count; ++i) {
    const std::int32_t sum = a[i] + plus;
    best[i] = sum < best[i] ? sum : best[i];
  }
}
MONET_WIDE void lower_one(std::int64_t* __restrict best, const std::int64_t* __restrict a,
                          std::int32_t count, std::int64_t plus) {
  for (std::int32_t i = 0; i < count; ++i) {
    const std::int64_t sum = a[i] + plus;
    best[i] = sum < best[i] ? sum : best[i];
  }
}

#undef MONET_WIDE

/// Table of the costs of all parts. A part that does not end with the chain is the left side of a
/// split. Its costs are computed for up to `depth` less memory than keeping everything needs, and
/// bounded from below for less. A plan that uses no such bound is optimal; otherwise a deeper table
/// is needed. Costs from kInfinite on are not distinguished.
template <typename Cost>
class ChainTable {
public:
  static constexpr Cost kInfinite = std::numeric_limits<Cost>::max() / 4;

  ChainTable(std::span<const ChainLayer> layers, std::int64_t part_bytes, std::int32_t most,
             const SearchControl& control)
      : n_(static_cast<std::int32_t>(layers.size())), most_(most), control_(control),
        parts_(layers.size() * (layers.size() + 1) / 2), enough_(layers.size()),
        row_(static_cast<std::size_t>(most) + 1) {
    const auto in_parts = [&](std::int64_t bytes) {
      const std::int64_t parts = bytes / part_bytes + (bytes % part_bytes != 0 ? 1 : 0);
      return static_cast<std::int32_t>(std::min<std::int64_t>(parts, most + std::int64_t{1}));
    };
    forward_ = {0};
    for (const ChainLayer& layer : layers) {
      output_.push_back(in_parts(layer.bytes));
      tape_.push_back(in_parts(layer.tape_bytes));
      gradient_.push_back(in_parts(layer.gradient_bytes));
      forward_.push_back(forward_.back() + static_cast<Cost>(layer.forward_cost));
    }
    gradient_.back() = 0; // the last gradient is given
  }

  /// Average number of memory levels needed to keep a layer.
  std::int64_t layer_levels() const {
    std::int64_t sum = 0;
    for (std::int32_t i = 0; i < n_; ++i)
      sum += kept(i);
    return sum / n_ + 1;
  }

  /// Computes the table; returns false if the control stopped it.
  bool fill(std::int64_t depth) {
    costs_.clear();
    for (std::int32_t t = 0; t < n_; ++t) {
      for (std::int32_t s = t; s >= 0; --s) {
        if (s % 64 == 0 && control_.interrupted())
          return false;
        fill_part(s, t, t == n_ - 1 ? std::numeric_limits<std::int32_t>::max() : depth);
      }
    }
    return true;
  }

  /// Cost beyond running everything once; kInfinite without a plan, or if the plan is too long.
  Cost extra() const { return cost(part(0, n_ - 1), most_); }

  /// Writes the runs: forward runs as the layer, backward runs as n + layer. Returns false if a
  /// deeper table is needed.
  bool plan(std::vector<std::int32_t>& runs) const {
    struct Task {
      std::int32_t s, t, memory;
    };
    std::vector<Task> tasks = {{0, n_ - 1, most_}};
    while (!tasks.empty()) {
      const auto [s, t, m] = tasks.back();
      tasks.pop_back();
      if (s > t) { // backward part of layer t
        runs.push_back(n_ + t);
        continue;
      }
      if (s == t) {
        if (t == n_ - 1 || tape(t) > 0)
          runs.push_back(t);
        runs.push_back(n_ + t);
        continue;
      }
      const std::int32_t k = split(s, t, m);
      if (k > t)
        return false;
      for (std::int32_t j = s; j < std::max(k, s + 1); ++j)
        runs.push_back(j);
      if (k == s) { // the tape of layer s is kept
        tasks.push_back({s + 1, s, 0});
        tasks.push_back({s + 1, t, m - kept(s)});
      } else {
        tasks.push_back({s, k - 1, m});
        tasks.push_back({k, t, m - output(k - 1)});
      }
    }
    return true;
  }

private:
  std::size_t index(std::int32_t s, std::int32_t t) const { // ordered by t, then s
    const auto column = static_cast<std::size_t>(t);
    return column * (column + 1) / 2 + static_cast<std::size_t>(s);
  }
  const Part<Cost>& part(std::int32_t s, std::int32_t t) const { return parts_[index(s, t)]; }
  std::int32_t output(std::int32_t i) const { return output_[static_cast<std::size_t>(i)]; }
  std::int32_t tape(std::int32_t i) const { return tape_[static_cast<std::size_t>(i)]; }
  std::int32_t gradient(std::int32_t i) const {
    return i < 0 ? 0 : gradient_[static_cast<std::size_t>(i)];
  }
  Cost forward(std::int32_t s, std::int32_t k) const { ///< cost of layers [s, k)
    return forward_[static_cast<std::size_t>(k)] - forward_[static_cast<std::size_t>(s)];
  }
  Cost cost(const Part<Cost>& p, std::int32_t memory) const {
    if (memory < p.from)
      return p.floor;
    return memory >= p.end ? 0 : costs_[p.first + static_cast<std::size_t>(memory - p.from)];
  }
  /// Costs of the part with memory m - shift, up to m = end.
  Run<Cost> run(const Part<Cost>& p, std::int32_t m, std::int32_t shift, std::int32_t end) const {
    if (m - shift < p.from)
      return {nullptr, p.floor, std::min(end, p.from + shift)};
    if (m - shift < p.end)
      return {costs_.data() + p.first + (m - shift - p.from), 0, std::min(end, p.end + shift)};
    return {nullptr, 0, end};
  }
  std::int32_t kept(std::int32_t s) const { return output(s) + tape(s); }
  /// Memory that the backward part of layer s needs.
  std::int32_t backward_need(std::int32_t s) const {
    return kept(s) + gradient(s) + gradient(s - 1);
  }
  /// Memory held while the part's layers run forward: the gradient and output of its last layer.
  /// Parts that end with the chain have made neither.
  std::int32_t waiting(std::int32_t t) const { return t == n_ - 1 ? 0 : output(t) + gradient(t); }
  std::int32_t keep_need(std::int32_t s, std::int32_t t) const {
    return std::max(kept(s) + waiting(t), backward_need(s));
  }
  /// Memory to run layer j on the way to keeping a later layer.
  std::int32_t pass_need(std::int32_t s, std::int32_t j) const {
    return (j > s ? output(j - 1) : 0) + kept(j);
  }
  /// Additional cost to keep the input of layer k first: the layers before it run forward once
  /// more. The layer just before k counts only if it has a tape.
  Cost way(std::int32_t s, std::int32_t k) const { return forward(s, tape(k - 1) > 0 ? k : k - 1); }

  void fill_part(std::int32_t s, std::int32_t t, std::int64_t depth) {
    Part<Cost>& mine = parts_[index(s, t)];
    std::int64_t& enough = enough_[static_cast<std::size_t>(t)]; // for layers from s + 1, so far
    if (s == t) {
      enough = backward_need(s);
      mine = {std::min(backward_need(s), most_ + 1), 0, kInfinite, 0};
      mine.end = mine.from;
      return;
    }
    const Part<Cost>& rest = part(s + 1, t);
    enough = std::max<std::int64_t>(keep_need(s, t), enough + kept(s));
    const auto end = static_cast<std::int32_t>(std::min<std::int64_t>(enough, most_ + 1));
    const auto from = static_cast<std::int32_t>(std::clamp<std::int64_t>(enough - depth, 0, end));
    mine = {from, end, 0, costs_.size()};
    if (from == end) { // layer s adds no cost
      mine.floor = from == 0 ? kInfinite : cost(rest, most_);
      return;
    }
    std::fill(row_.begin() + from, row_.begin() + end, kInfinite);
    for (std::int32_t m = std::max(keep_need(s, t), from); m < end; ++m)
      row_[static_cast<std::size_t>(m)] = cost(rest, m - kept(s));
    lower_by_splits(s, t, from, end);
    while (mine.from < end && row_[static_cast<std::size_t>(mine.from)] >= kInfinite)
      ++mine.from;
    const bool all = from == 0 || mine.from > from; // whether smaller memory has no plan
    mine.floor = all ? kInfinite : row_[static_cast<std::size_t>(from)];
    costs_.insert(costs_.end(), row_.begin() + mine.from, row_.begin() + end);
  }

  void lower_by_splits(std::int32_t s, std::int32_t t, std::int32_t from, std::int32_t end) {
    std::int32_t pass = 0;
    for (std::int32_t k = s + 1; k <= t; ++k) {
      pass = std::max(pass, pass_need(s, k - 1) + waiting(t));
      const Cost plus = way(s, k);
      // Costs fall with memory, and the cost of the way only grows.
      while (end > from && row_[static_cast<std::size_t>(end - 1)] <= plus)
        --end;
      if (std::max(from, pass) >= end)
        return;
      lower_by_split(part(s, k - 1), part(k, t), output(k - 1), plus, std::max(from, pass), end);
    }
  }

  void lower_by_split(const Part<Cost>& left, const Part<Cost>& right, std::int32_t shift,
                      Cost plus, std::int32_t m, std::int32_t end) {
    m = std::max(m, shift);
    if (right.floor >= kInfinite)
      m = std::max(m, right.from + shift);
    if (left.floor >= kInfinite)
      m = std::max(m, left.from);
    while (m < end) {
      const Run<Cost> r = run(right, m, shift, end);
      const Run<Cost> l = run(left, m, 0, r.stop);
      const Cost sum = plus + l.constant + r.constant;
      Cost* best = row_.data() + m;
      if (l.costs != nullptr && r.costs != nullptr) {
        lower_both(best, l.costs, r.costs, l.stop - m, sum);
      } else if (l.costs != nullptr || r.costs != nullptr) {
        lower_one(best, l.costs != nullptr ? l.costs : r.costs, l.stop - m, sum);
      } else {
        for (Cost* last = row_.data() + l.stop; best<last&& * best> sum; ++best)
          *best = sum; // costs fall with memory
      }
      m = l.stop;
    }
  }

  /// Decision for a part of two or more layers: s to keep the output of layer s, otherwise the
  /// first layer whose input is kept; t + 1 if this table has no decision.
  std::int32_t split(std::int32_t s, std::int32_t t, std::int32_t m) const {
    const Cost target = cost(part(s, t), m);
    if (m >= keep_need(s, t) && !part(s + 1, t).cut(m - kept(s), kInfinite) &&
        cost(part(s + 1, t), m - kept(s)) == target)
      return s;
    std::int32_t pass = 0;
    for (std::int32_t k = s + 1; k <= t; ++k) {
      pass = std::max(pass, pass_need(s, k - 1) + waiting(t));
      if (m < pass)
        break;
      const Part<Cost>& left = part(s, k - 1);
      const Part<Cost>& right = part(k, t);
      const std::int32_t after = m - output(k - 1);
      if (!left.cut(m, kInfinite) && !right.cut(after, kInfinite) &&
          way(s, k) + cost(right, after) + cost(left, m) == target)
        return k;
    }
    return t + 1;
  }

  std::int32_t n_, most_;
  const SearchControl& control_;
  std::vector<std::int32_t> output_, tape_, gradient_;
  std::vector<Cost> forward_; // prefix sums
  std::vector<Part<Cost>> parts_;
  std::vector<std::int64_t> enough_; // memory to keep everything, by last layer
  std::vector<Cost> costs_, row_;
};

template <typename Cost>
void solve(std::span<const ChainLayer> layers, std::int64_t part_bytes, std::int32_t most,
           const SearchControl& control, RecomputeResult& result) {
  ChainTable<Cost> table(layers, part_bytes, most, control);
  const auto n = static_cast<std::uint32_t>(layers.size());
  std::vector<std::int32_t> runs;
  for (std::int64_t depth = kFirstDepth * table.layer_levels();; depth *= 2) {
    if (!table.fill(depth)) {
      result.interrupted = true;
      return;
    }
    if (table.extra() >= ChainTable<Cost>::kInfinite) {
      result.infeasible = true;
      return;
    }
    runs.clear();
    if (table.plan(runs))
      break;
  }
  RecomputePlan plan;
  for (const std::int32_t run : runs) {
    const auto op = static_cast<std::uint32_t>(run);
    plan.runs.push_back(op < n ? op : n + (2 * n - 1 - op));
  }
  result.outcome = replay(chain_problem(layers), plan);
  const double found = static_cast<double>(table.extra()) + result.bound;
  if (static_cast<double>(result.outcome.cost) != found)
    throw InternalError("chain: a plan that does not cost what was computed");
  result.plan = std::move(plan);
}

} // namespace

RecomputeProblem chain_problem(std::span<const ChainLayer> layers) {
  RecomputeProblem p;
  const auto n = static_cast<std::uint32_t>(layers.size());
  p.buffers.push_back({"input", 0, std::nullopt, false});
  for (std::uint32_t i = 0; i < n; ++i) { // 1 + 2 i: output, 2 + 2 i: tape
    const std::string name = std::to_string(i);
    p.buffers.push_back({"x" + name, layers[i].bytes, i, false});
    p.buffers.push_back({"tape" + name, layers[i].tape_bytes, i, false});
    p.ops.push_back({"f" + name,
                     layers[i].forward_cost,
                     0,
                     true,
                     {i == 0 ? 0 : 2 * i - 1},
                     {1 + 2 * i, 2 + 2 * i}});
  }
  std::uint32_t gradient = 0; // the last gradient is given
  for (std::uint32_t i = n; i-- > 0;) {
    const auto made = static_cast<std::uint32_t>(p.buffers.size());
    const auto op = static_cast<std::uint32_t>(p.ops.size());
    p.buffers.push_back(
        {"dx" + std::to_string(i), i == 0 ? 0 : layers[i - 1].gradient_bytes, op, i == 0});
    std::vector<std::uint32_t> reads = {i == 0 ? 0 : 2 * i - 1, 1 + 2 * i, 2 + 2 * i};
    if (gradient != 0)
      reads.push_back(gradient);
    p.ops.push_back({"b" + std::to_string(i), layers[i].backward_cost, 0, true, reads, {made}});
    gradient = made;
  }
  return p;
}

RecomputeResult solve_chain(std::span<const ChainLayer> layers, std::int64_t budget,
                            std::size_t levels, const SearchControl& control) {
  RecomputeResult result;
  result.method = "chain";
  std::int64_t longest = 0; // a plan runs each layer forward at most once per layer
  for (const ChainLayer& layer : layers) {
    result.bound += static_cast<double>(layer.forward_cost + layer.backward_cost);
    longest = checked_add(longest, layer.forward_cost);
  }
  if (layers.empty() || budget < 0) {
    result.infeasible = budget < 0;
    result.plan = layers.empty() && budget >= 0 ? std::optional(RecomputePlan{}) : std::nullopt;
    return result;
  }
  const auto parts =
      static_cast<std::int64_t>(std::clamp<std::size_t>(levels, 1, std::size_t{1} << 20));
  const std::int64_t part_bytes = std::max<std::int64_t>(1, budget / parts);
  const auto most = static_cast<std::int32_t>(budget / part_bytes);
  const auto n = static_cast<std::int64_t>(layers.size());
  const std::int32_t narrow = std::numeric_limits<std::int32_t>::max() / 16;
  if (longest < narrow)
    solve<std::int32_t>(layers, part_bytes, most, control, result);
  if (longest >= narrow || (result.infeasible && longest >= narrow / n)) {
    result.infeasible = false; // costs may exceed the narrow type's range
    solve<std::int64_t>(layers, part_bytes, most, control, result);
  }
  return result;
}

} // namespace monet
