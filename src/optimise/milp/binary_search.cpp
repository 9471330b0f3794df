// Branch and cut over binary columns with reliability branching; exact recomputation solves its
// stage programs with it.
#include "optimise/milp/binary_relaxation.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <queue>
#include <utility>

namespace monet {

namespace {

constexpr double kWhole = 1e-6;         // tolerance of integrality
constexpr std::int64_t kTrial = 40;     // iterations of a strong-branching trial
constexpr std::size_t kTrials = 10;     // maximum candidates of a node
constexpr std::int32_t kReliable = 4;   // trials after which a candidate's history is used
constexpr std::size_t kStaleTrials = 5; // trials without a better candidate
constexpr int kDive = 400;              // maximum linear programs
constexpr int kRestarts = 6;
constexpr std::size_t kWorthwhile = 20; // share of newly fixed columns (1/20) for a new root
constexpr std::uint32_t kRoot = ~0U;

using Bound = BinaryBound;

struct Node {
  std::uint32_t parent = kRoot;
  std::vector<Bound> bounds; ///< tighter than the parent's
  double least = 0;          ///< lower bound on the cost of its solutions
};

/// Cost increases observed after raising or lowering an object by one.
struct History {
  std::array<double, 2> sum = {0, 0};
  std::array<std::int32_t, 2> count = {0, 0};
};

struct Candidate {
  std::uint32_t object = 0;
  double value = 0;
  double score = 0;
  bool known = false;
};

class Search : BinaryRelaxation {
public:
  Search(const BinaryProgram& program, const SearchControl& control, const BinaryOptions& options)
      : BinaryRelaxation(program, control), options_(options) {}

  MilpResult run() {
    scale();
    do {
      const TightRoot root = tighten_root(program_, limit_, control_);
      if (root.exhausted)
        return close(true);
      build(root);
      root_lower_ = lower_;
      root_upper_ = upper_;
      history_.assign(lower_.size(), {});
    } while (restart());
    if (exhausted_)
      return close(true);
    push(kRoot, {}, -kUnbounded);
    bool complete = true;
    while (!open_.empty() || next_ != kRoot) {
      if (stuck_ || result_.nodes >= options_.nodes || control_.interrupted() ||
          (!result_.values.empty() && result_.nodes - found_at_ >= options_.patience)) {
        complete = false;
        break;
      }
      visit(pop());
    }
    return close(complete && dropped_ == kUnbounded);
  }

private:
  using Open = std::pair<double, std::uint32_t>; // lower bound, node

  void scale() {
    double largest = 0;
    for (const double cost : program_.cost)
      largest = std::max(largest, std::abs(cost));
    scale_ = largest > 0 ? 0x1p10 / std::exp2(std::ilogb(largest)) : 1;
    for (double& cost : program_.cost)
      cost *= scale_;
    const double below = options_.cutoff * scale_;
    const double step = options_.step * scale_;
    if (below < kUnbounded)
      limit_ = step > 0 ? step * (std::ceil(options_.cutoff / options_.step - 1e-9) - 1 + 1e-3)
                        : below - 1e-6;
    const auto whole = [](LinearRow& row) {
      double size = 0;
      for (const LinearTerm& term : row.terms)
        size = std::max(size, std::abs(term.coefficient));
      if (size == 0)
        return;
      const double factor = 1 / std::exp2(std::ilogb(size));
      for (LinearTerm& term : row.terms)
        term.coefficient *= factor;
      row.lower *= factor;
      row.upper *= factor;
    };
    for (LinearRow& row : program_.rows)
      whole(row);
    for (LinearRow& row : program_.pool)
      whole(row);
  }

  /// Returns true if enough columns are fixed to solve the root again, otherwise false.
  bool restart() {
    std::vector<Bound> news;
    const std::size_t open_before = open_columns();
    const double bound = relax(news);
    exhausted_ = bound == kUnbounded || (bound != -kUnbounded && !probe(bound));
    forget_queue();
    if (exhausted_ || control_.interrupted())
      return false;
    root_lower_ = lower_;
    root_upper_ = upper_;
    const double limit = limit_;
    dive();
    if (limit_ < limit) {
      exhausted_ = bound > limit_ || !probe(relax(news));
      forget_queue();
      if (exhausted_)
        return false;
      root_lower_ = lower_;
      root_upper_ = upper_;
    }
    const std::size_t open = open_columns();
    if (++restarts_ >= kRestarts || (open_before - open) * kWorthwhile < open_before)
      return false;
    program_.lower.assign(lower_.begin(), lower_.begin() + static_cast<std::ptrdiff_t>(columns()));
    program_.upper.assign(upper_.begin(), upper_.begin() + static_cast<std::ptrdiff_t>(columns()));
    return true;
  }

  /// Sets columns that are nearly one, at least the largest. Returns false if no solution remains.
  bool raise_columns(std::vector<Bound>& news) {
    std::uint32_t largest = kRoot;
    std::vector<std::uint32_t> chosen;
    for (std::uint32_t j = 0; j < columns(); ++j) {
      if (lower_[j] == upper_[j] || std::abs(x_[j] - std::round(x_[j])) <= kWhole)
        continue;
      if (x_[j] > 0.9)
        chosen.push_back(j);
      if (largest == kRoot || x_[j] > x_[largest])
        largest = j;
    }
    if (chosen.empty())
      chosen.push_back(largest);
    for (const std::uint32_t j : chosen) {
      if (lower_[j] == upper_[j])
        continue;
      std::vector<Bound> trial;
      if (tighten_column(j, true, trial) && propagate(trial)) {
        news.insert(news.end(), trial.begin(), trial.end());
        continue;
      }
      forget_queue();
      for (const Bound& bound : trial)
        set({bound.object, 0, 1});
      forget_queue();
      if (!tighten_column(j, false, news) || !propagate(news))
        return false;
    }
    return true;
  }

  /// Dives from the root to find a first solution.
  void dive() {
    std::vector<Bound> news;
    for (int step = 0; step < kDive && !control_.interrupted(); ++step) {
      const double bound = relax(news);
      if (bound == kUnbounded || bound == -kUnbounded)
        break;
      if (candidates().empty()) {
        take(bound);
        break;
      }
      if (!raise_columns(news))
        break;
    }
    forget_queue();
    for (const Bound& bound : news)
      set({bound.object, root_lower_[bound.object], root_upper_[bound.object]});
    forget_queue();
  }

  void push(std::uint32_t parent, std::vector<Bound> bounds, double least) {
    nodes_.push_back({parent, std::move(bounds), least});
    open_.emplace(least, static_cast<std::uint32_t>(nodes_.size() - 1));
  }

  /// Returns the child kept for diving, or the node with the lowest bound.
  std::uint32_t pop() {
    if (next_ != kRoot)
      return std::exchange(next_, kRoot);
    const std::uint32_t node = open_.top().second;
    open_.pop();
    return node;
  }

  void go_to(std::uint32_t node) {
    std::vector<double> lower = root_lower_;
    std::vector<double> upper = root_upper_;
    for (std::uint32_t at = node; at != kRoot; at = nodes_[at].parent)
      for (const Bound& bound : nodes_[at].bounds) { // bounds only get tighter
        lower[bound.object] = std::max(lower[bound.object], bound.lower);
        upper[bound.object] = std::min(upper[bound.object], bound.upper);
      }
    for (std::uint32_t o = 0; o < lower.size(); ++o)
      set({o, lower[o], upper[o]});
  }

  std::vector<Candidate> candidates() const {
    std::vector<Candidate> list;
    const auto consider = [&](std::uint32_t object, double value) {
      if (std::abs(value - std::round(value)) > kWhole && lower_[object] != upper_[object])
        list.push_back({object, value, 0, false});
    };
    for (std::uint32_t j = 0; j < columns(); ++j)
      consider(j, x_[j]);
    for (std::uint32_t s = 0; s < program_.sums.size(); ++s) {
      double value = 0;
      for (const std::uint32_t j : program_.sums[s])
        value += x_[j];
      consider(static_cast<std::uint32_t>(columns() + s), value);
    }
    return list;
  }

  double score(double down, double up) const { return std::max(down, 1e-4) * std::max(up, 1e-4); }

  double estimate(const Candidate& c) const {
    const History& h = history_[c.object];
    const double part = c.value - std::floor(c.value);
    const auto gain = [&](std::size_t up) {
      const double each = h.count[up] > 0      ? h.sum[up] / h.count[up]
                          : all_.count[up] > 0 ? all_.sum[up] / all_.count[up]
                                               : 1.0;
      return each * (up != 0 ? 1 - part : part);
    };
    return score(gain(0), gain(1));
  }

  /// Lower bound after one more bound, from a few simplex iterations.
  double attempt(const Bound& trial, double bound) {
    const Bound before{trial.object, lower_[trial.object], upper_[trial.object]};
    set(trial);
    const LpStatus status = solve(kTrial);
    double least = bound;
    if (status == LpStatus::infeasible)
      least = kUnbounded;
    else if (status == LpStatus::optimal || status == LpStatus::limit)
      least = std::max(bound, lp_.safe_bound());
    set(before);
    forget_queue();
    return least > limit_ ? kUnbounded : least;
  }

  /// Selects a candidate; returns false if the node has changed or has no solution.
  bool pick(std::vector<Candidate>& list, double bound, std::vector<Bound>& news, Candidate& best,
            std::array<double, 2>& least) {
    for (Candidate& c : list) {
      const History& h = history_[c.object];
      c.known = std::min(h.count[0], h.count[1]) >= kReliable;
      c.score = estimate(c);
    }
    std::ranges::stable_sort(list, std::ranges::greater{}, &Candidate::score);
    best.score = -1;
    const std::vector<unsigned char> basis = lp_.basis();
    std::size_t trials = 0;
    std::size_t stale = 0;
    for (const Candidate& c : list) {
      if (trials >= kTrials || stale >= kStaleTrials || control_.interrupted())
        break;
      const double down = std::floor(c.value);
      std::array<double, 2> found = {bound, bound};
      double value = c.score;
      if (!c.known) {
        ++trials;
        const Bound below{c.object, lower_[c.object], down};
        const Bound above{c.object, down + 1, upper_[c.object]};
        found[0] = attempt(below, bound);
        lp_.set_basis(basis);
        found[1] = attempt(above, bound);
        lp_.set_basis(basis);
        if (found[0] == kUnbounded || found[1] == kUnbounded) {
          if (found[0] != kUnbounded || found[1] != kUnbounded) {
            const Bound rest = found[0] == kUnbounded ? above : below;
            set(rest);
            news.push_back(rest);
          }
          least = found;
          return false;
        }
        for (History* h : {&history_[c.object], &all_}) {
          h->sum[0] += (found[0] - bound) / (c.value - down);
          h->sum[1] += (found[1] - bound) / (down + 1 - c.value);
          ++h->count[0];
          ++h->count[1];
        }
        value = score(found[0] - bound, found[1] - bound);
      }
      ++stale;
      if (value > best.score) {
        best = c;
        best.score = value;
        least = found;
        stale = 0;
      }
    }
    return true;
  }

  /// Branches; returns false if the node must be relaxed again.
  bool branch(std::uint32_t node, double bound, std::vector<Bound>& news) {
    std::vector<Candidate> list = candidates();
    if (list.empty()) {
      take(bound);
      return true;
    }
    Candidate best;
    std::array<double, 2> least = {bound, bound};
    if (!pick(list, bound, news, best, least))
      return least[0] == kUnbounded && least[1] == kUnbounded;
    const double down = std::floor(best.value);
    std::array<Bound, 2> bounds = {Bound{best.object, lower_[best.object], down},
                                   Bound{best.object, down + 1, upper_[best.object]}};
    nodes_[node].bounds.insert(nodes_[node].bounds.end(), news.begin(), news.end());
    news.clear();
    // The nearer value is explored first.
    const std::size_t first = best.value - down > 0.5 ? 1 : 0;
    push(node, {bounds[1 - first]}, least[1 - first]);
    nodes_.push_back({node, {bounds[first]}, least[first]});
    next_ = static_cast<std::uint32_t>(nodes_.size() - 1);
    return true;
  }

  void take(double bound) {
    std::vector<double> values(x_.begin(), x_.end());
    double cost = 0;
    for (std::size_t j = 0; j < columns(); ++j) {
      values[j] = std::round(values[j]);
      cost += values[j] * program_.cost[j];
    }
    for (const LinearRow& row : rows_) {
      double sum = 0;
      double largest = 0;
      for (const LinearTerm& term : row.terms) {
        sum += term.coefficient * values[term.variable];
        largest = std::max(largest, std::abs(term.coefficient));
      }
      if (sum > row.upper + 1e-5 * largest || sum < row.lower - 1e-5 * largest) {
        dropped_ = std::min(dropped_, bound);
        return;
      }
    }
    if (cost > limit_ || bound > limit_)
      return;
    result_.values = std::move(values);
    result_.objective = cost / scale_;
    found_at_ = result_.nodes;
    const double step = options_.step * scale_;
    limit_ = step > 0 ? cost - step + 1e-3 * step : cost - 1e-6;
  }

  void visit(std::uint32_t node) {
    if (nodes_[node].least > limit_)
      return;
    go_to(node);
    ++result_.nodes;
    std::vector<Bound> news;
    for (;;) {
      const double bound = relax(news);
      if (bound == kUnbounded) {
        forget_queue();
        break;
      }
      if (control_.interrupted() || bound == -kUnbounded) {
        push(nodes_[node].parent, nodes_[node].bounds, nodes_[node].least); // still open
        break;
      }
      nodes_[node].least = std::max(nodes_[node].least, bound);
      if (branch(node, nodes_[node].least, news))
        break;
    }
    if (control_.progress)
      control_.tell({"milp", result_.nodes, 0, result_.objective, lower_bound() / scale_});
  }

  double lower_bound() const {
    double least = std::min(limit_, dropped_);
    if (!open_.empty())
      least = std::min(least, open_.top().first);
    if (next_ != kRoot)
      least = std::min(least, nodes_[next_].least);
    return least;
  }

  MilpResult close(bool complete) {
    result_.interrupted = control_.interrupted();
    complete = complete && !result_.interrupted;
    const double most = std::min(options_.cutoff, result_.objective);
    double bound = complete ? most : lower_bound() / scale_;
    if (options_.step > 0 && std::isfinite(bound)) {
      const double steps = bound / options_.step;
      bound = options_.step * std::ceil(steps - 1e-6 - 1e-9 * std::abs(steps));
    }
    result_.bound = std::min(bound, most);
    if (result_.values.empty())
      result_.status = complete ? MilpStatus::infeasible : MilpStatus::unknown;
    else
      result_.status =
          result_.bound >= result_.objective ? MilpStatus::optimal : MilpStatus::feasible;
    return std::move(result_);
  }

  const BinaryOptions& options_;
  double scale_ = 1; // scale of the costs
  std::vector<double> root_lower_, root_upper_;
  std::vector<History> history_;
  History all_; // history over all objects
  std::vector<Node> nodes_;
  std::priority_queue<Open, std::vector<Open>, std::greater<>> open_;
  std::uint32_t next_ = kRoot; // next node of the dive
  bool exhausted_ = false;     // proven at the root
  int restarts_ = 0;
  std::int64_t found_at_ = 0;   // number of nodes at the last solution
  double dropped_ = kUnbounded; // minimum bound of nodes with invalid rounded solutions
  MilpResult result_;
};

} // namespace

MilpResult search_binary(const BinaryProgram& program, const SearchControl& control,
                         const BinaryOptions& options) {
  return Search(program, control, options).run();
}

} // namespace monet
