// Simulates dynamic tensor rematerialisation (DTR) within a budget; one of the recomputation
// heuristics.
#include "optimise/recompute/heuristics/dtr.hpp"

#include "base/shared/amounts.hpp"

#include "monet/base/ids.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace monet {

namespace {

constexpr std::int64_t kMaxTimes = 10; ///< maximum cost relative to the base cost
constexpr std::size_t kMaxRuns = 100;  ///< maximum runs per operator if they cost nothing
constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max() / (2 * kMaxTimes);

/// Last reader of each buffer, or its producer; for kept buffers the number of operators.
std::vector<std::uint32_t> last_readers(const RecomputeProblem& problem) {
  const auto ops = static_cast<std::uint32_t>(problem.ops.size());
  std::vector<std::uint32_t> last(problem.buffers.size(), ops);
  for (std::size_t b = 0; b < last.size(); ++b)
    if (problem.buffers[b].producer && !problem.buffers[b].kept)
      last[b] = *problem.buffers[b].producer;
  for (std::uint32_t i = 0; i < ops; ++i)
    for (const std::uint32_t b : problem.ops[i].reads)
      if (last[b] != ops)
        last[b] = i;
  return last;
}

/// Adjacent buffers: written and read by a common operator. Given buffers are omitted.
class Neighbours {
public:
  explicit Neighbours(const RecomputeProblem& problem)
      : parents_(problem.buffers.size()), children_(problem.buffers.size()) {
    for (const RecomputeProblem::Op& op : problem.ops)
      for (const std::uint32_t from : op.reads)
        for (const std::uint32_t to : op.writes)
          if (problem.buffers[from].producer) {
            parents_[to].push_back(from);
            children_[from].push_back(to);
          }
  }
  const std::vector<std::uint32_t>& parents(std::uint32_t b) const { return parents_[b]; }
  const std::vector<std::uint32_t>& children(std::uint32_t b) const { return children_[b]; }

private:
  std::vector<std::vector<std::uint32_t>> parents_;
  std::vector<std::vector<std::uint32_t>> children_;
};

/// Costs of connected sets of evicted buffers. A recomputed buffer subtracts its cost, but its
/// neighbours stay joined, as in the paper's approximation.
class Components {
public:
  explicit Components(std::size_t buffers) : of_(buffers, kNone) {}

  std::uint32_t find(std::uint32_t node) {
    while (parent_[node] != node)
      node = parent_[node] = parent_[parent_[node]];
    return node;
  }
  std::uint32_t of(std::uint32_t buffer) { return find(of_[buffer]); }
  std::int64_t cost(std::uint32_t root) const { return cost_[root]; }
  void add(std::uint32_t buffer, std::int64_t cost) {
    of_[buffer] = static_cast<std::uint32_t>(parent_.size());
    parent_.push_back(of_[buffer]);
    cost_.push_back(cost);
  }
  void join(std::uint32_t a, std::uint32_t b) {
    const std::uint32_t from = of(a);
    const std::uint32_t to = of(b);
    if (from == to)
      return;
    parent_[from] = to;
    cost_[to] += cost_[from];
  }
  void remove(std::uint32_t buffer, std::int64_t cost) { cost_[of(buffer)] -= cost; }

private:
  std::vector<std::uint32_t> of_; ///< per buffer: node since its last eviction
  std::vector<std::uint32_t> parent_;
  std::vector<std::int64_t> cost_;
};

class Simulator {
public:
  Simulator(const RecomputeProblem& problem, std::int64_t budget, RecomputeHeuristic heuristic,
            const SearchControl& control)
      : problem_(problem), control_(control), heuristic_(heuristic), budget_(budget),
        neighbours_(problem), buffers_(problem.buffers.size()), components_(problem.buffers.size()),
        max_cost_(kMaxTimes * std::min(problem.base_cost(), kLargest)),
        max_runs_(kMaxRuns * problem.ops.size()), seen_(problem.buffers.size(), 0) {
    for (const RecomputeProblem::Buffer& buffer : problem.buffers)
      usage_ += buffer.producer ? 0 : buffer.bytes;
  }

  /// Runs the simulation. Returns false if it is out of memory, too expensive or interrupted; see
  /// why_not.
  bool run(std::span<const std::uint32_t> released) {
    const auto ops = static_cast<std::uint32_t>(problem_.ops.size());
    std::vector<std::vector<std::uint32_t>> dropped(ops + 1);
    for (std::uint32_t b = 0; b < released.size(); ++b)
      if (problem_.buffers[b].producer)
        dropped[std::max(released[b], *problem_.buffers[b].producer)].push_back(b);
    for (std::uint32_t i = 0; i < ops; ++i) {
      if (!materialise(i))
        return false;
      for (const std::uint32_t b : problem_.ops[i].writes)
        buffers_[b].accessed = clock_;
      for (const std::uint32_t b : dropped[i])
        if (buffers_[b].here)
          evict(b);
    }
    for (std::uint32_t b = 0; b < buffers_.size(); ++b) {
      if (!problem_.buffers[b].kept || !problem_.buffers[b].producer)
        continue;
      if (!buffers_[b].here && !materialise(*problem_.buffers[b].producer))
        return false;
      lock(b);
    }
    return true;
  }
  RecomputePlan& plan() { return plan_; }
  const std::string& why_not() const { return why_not_; }

private:
  struct Buffer {
    std::int64_t accessed = -1; ///< clock at the last use
    std::int64_t ancestors = 0; ///< cost of evicted ancestors, unless stale
    std::uint32_t locks = 0;
    std::uint32_t in_pool = kNone; ///< index in the pool; kNone if not evictable
    bool here = false;
    bool made = false;
    bool stale = true;
  };
  struct Frame {
    std::uint32_t op;
    std::size_t next = 0; ///< next input to materialise
    bool started = false;
  };

  bool fail(std::string what) {
    why_not_ = std::move(what);
    return false;
  }
  bool evicted(std::uint32_t b) const { return buffers_[b].made && !buffers_[b].here; }
  std::int64_t cost(std::uint32_t b) const {
    return problem_.ops[*problem_.buffers[b].producer].cost;
  }
  bool repeatable(std::uint32_t b) const {
    return problem_.ops[*problem_.buffers[b].producer].repeatable;
  }

  void enter_pool(std::uint32_t b) {
    if (problem_.buffers[b].bytes == 0 || !repeatable(b))
      return;
    buffers_[b].in_pool = static_cast<std::uint32_t>(pool_.size());
    pool_.push_back(b);
  }
  void leave_pool(std::uint32_t b) {
    const std::uint32_t place = std::exchange(buffers_[b].in_pool, kNone);
    if (place == kNone)
      return;
    pool_[place] = pool_.back();
    buffers_[pool_[place]].in_pool = place;
    pool_.pop_back();
  }
  void lock(std::uint32_t b) {
    if (buffers_[b].locks++ == 0)
      leave_pool(b);
  }
  void unlock(std::uint32_t b) {
    if (--buffers_[b].locks == 0 && buffers_[b].here)
      enter_pool(b);
  }

  /// Invalidates ancestor costs of buffers that depend on this one through evicted buffers.
  void forget_ancestors(std::uint32_t b) {
    if (heuristic_ != RecomputeHeuristic::msps)
      return;
    ++mark_;
    stack_.assign(1, b);
    while (!stack_.empty()) {
      const std::uint32_t at = stack_.back();
      stack_.pop_back();
      for (const std::uint32_t child : neighbours_.children(at)) {
        if (!buffers_[child].made || seen_[child] == mark_)
          continue;
        seen_[child] = mark_;
        buffers_[child].stale = true;
        if (evicted(child))
          stack_.push_back(child);
      }
    }
  }
  void evict(std::uint32_t b) {
    leave_pool(b);
    buffers_[b].here = false;
    usage_ -= problem_.buffers[b].bytes;
    forget_ancestors(b);
    if (heuristic_ != RecomputeHeuristic::dtr)
      return;
    components_.add(b, cost(b));
    for (const auto* list : {&neighbours_.parents(b), &neighbours_.children(b)})
      for (const std::uint32_t other : *list)
        if (evicted(other))
          components_.join(other, b);
  }

  std::int64_t neighbourhood(std::uint32_t b) {
    roots_.clear();
    for (const auto* list : {&neighbours_.parents(b), &neighbours_.children(b)})
      for (const std::uint32_t other : *list)
        if (evicted(other))
          roots_.push_back(components_.of(other));
    std::ranges::sort(roots_);
    roots_.erase(std::unique(roots_.begin(), roots_.end()), roots_.end());
    std::int64_t sum = 0;
    for (const std::uint32_t root : roots_)
      sum += components_.cost(root);
    return sum;
  }
  std::int64_t evicted_ancestors(std::uint32_t b) {
    if (!buffers_[b].stale)
      return buffers_[b].ancestors;
    std::int64_t sum = 0;
    ++mark_;
    stack_.assign(1, b);
    while (!stack_.empty()) {
      const std::uint32_t at = stack_.back();
      stack_.pop_back();
      for (const std::uint32_t parent : neighbours_.parents(at)) {
        if (!evicted(parent) || seen_[parent] == mark_)
          continue;
        seen_[parent] = mark_;
        sum += cost(parent);
        stack_.push_back(parent);
      }
    }
    buffers_[b].stale = false;
    return buffers_[b].ancestors = sum;
  }
  double score(std::uint32_t b) {
    const auto bytes = static_cast<double>(problem_.buffers[b].bytes);
    const auto own = static_cast<double>(cost(b));
    const auto per = [](double what, double of) {
      return of > 0 ? what / of : std::numeric_limits<double>::infinity();
    };
    const double area = bytes * static_cast<double>(clock_ - buffers_[b].accessed);
    switch (heuristic_) {
    case RecomputeHeuristic::dtr:
      return per(own + static_cast<double>(neighbourhood(b)), area);
    case RecomputeHeuristic::dtr_local:
      return per(own, area);
    case RecomputeHeuristic::msps:
      return (own + static_cast<double>(evicted_ancestors(b))) / bytes;
    case RecomputeHeuristic::lru:
      return static_cast<double>(buffers_[b].accessed);
    default:
      return -bytes;
    }
  }
  bool make_room(std::int64_t bytes, std::uint32_t op) {
    while (usage_ + bytes > budget_) {
      std::uint32_t worst = kNone;
      double least = 0;
      for (const std::uint32_t b : pool_) {
        const double value = score(b);
        if (worst == kNone || value < least || (value == least && b < worst)) {
          worst = b;
          least = value;
        }
      }
      if (worst == kNone)
        return fail(fmt::format("out of memory at {}: {} too few", problem_.ops[op].name,
                                both_bytes(usage_ + bytes - budget_)));
      evict(worst);
    }
    return true;
  }
  bool compute(std::uint32_t id) {
    const RecomputeProblem::Op& op = problem_.ops[id];
    const std::int64_t bytes = op.scratch + problem_.written_bytes(id);
    if (control_.interrupted())
      return fail("interrupted");
    if (!make_room(bytes, id))
      return false;
    clock_ += op.cost;
    if (clock_ > max_cost_ || plan_.runs.size() >= max_runs_)
      return fail("more than ten times the cost of running everything once");
    plan_.runs.push_back(id);
    for (const std::uint32_t b : op.writes) {
      if (buffers_[b].here)
        continue; // the second copy is freed at once
      if (buffers_[b].made && heuristic_ == RecomputeHeuristic::dtr)
        components_.remove(b, op.cost);
      buffers_[b].here = buffers_[b].made = true;
      usage_ += problem_.buffers[b].bytes;
      forget_ancestors(b);
      if (buffers_[b].locks == 0)
        enter_pool(b);
    }
    return true;
  }
  /// Runs an operator after its missing inputs. Uses a stack in place of recursion, since chains
  /// are long.
  bool materialise(std::uint32_t id) {
    frames_.assign(1, Frame{id});
    while (!frames_.empty()) {
      Frame& frame = frames_.back();
      const std::vector<std::uint32_t>& reads = problem_.ops[frame.op].reads;
      if (!frame.started) {
        frame.started = true;
        for (const std::uint32_t b : reads) {
          if (!problem_.buffers[b].producer)
            continue;
          buffers_[b].accessed = clock_;
          if (buffers_[b].here)
            lock(b);
          else
            missing_.push_back(b);
        }
        frame.next = 0;
        absent_.push_back(std::exchange(missing_, {}));
      }
      std::vector<std::uint32_t>& absent = absent_.back();
      while (frame.next < absent.size() && buffers_[absent[frame.next]].here)
        lock(absent[frame.next++]);
      if (frame.next < absent.size()) {
        if (!repeatable(absent[frame.next]))
          return fail("an operator that must not run again has been released");
        frames_.push_back({*problem_.buffers[absent[frame.next]].producer});
        continue;
      }
      if (!compute(frame.op))
        return false;
      for (const std::uint32_t b : reads)
        if (problem_.buffers[b].producer)
          unlock(b);
      frames_.pop_back();
      absent_.pop_back();
    }
    return true;
  }

  const RecomputeProblem& problem_;
  const SearchControl& control_;
  RecomputeHeuristic heuristic_;
  std::int64_t budget_;
  Neighbours neighbours_;
  std::vector<Buffer> buffers_;
  Components components_;
  std::int64_t max_cost_;
  std::size_t max_runs_;
  std::int64_t usage_ = 0;
  std::int64_t clock_ = 0;
  std::vector<std::uint32_t> pool_; ///< evictable buffers
  RecomputePlan plan_;
  std::string why_not_;
  std::vector<Frame> frames_;
  std::vector<std::vector<std::uint32_t>> absent_; ///< missing inputs, per frame
  std::vector<std::uint32_t> missing_;
  std::vector<std::uint32_t> stack_;
  std::vector<std::uint32_t> roots_;
  std::vector<std::uint32_t> seen_; ///< per buffer: last walk that visited it
  std::uint32_t mark_ = 0;
};

} // namespace

HeuristicPlan simulate_dtr(const RecomputeProblem& problem, std::int64_t budget,
                           RecomputeHeuristic heuristic, const SearchControl& control,
                           std::span<const std::uint32_t> released) {
  std::vector<std::uint32_t> own;
  if (released.empty()) {
    own = last_readers(problem);
    released = own;
  }
  HeuristicPlan result;
  Simulator simulator(problem, budget, heuristic, control);
  if (!simulator.run(released)) {
    result.why_not = simulator.why_not();
    return result;
  }
  result.plan = std::move(simulator.plan());
  result.outcome = replay(problem, *result.plan);
  return result;
}

} // namespace monet
