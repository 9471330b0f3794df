// Optimises Lagrange multipliers (prices) of a plan problem by a subgradient method. The planner
// (plan.cpp) uses the bounds.
#include "reference/einsum/prices.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace monet::einsum {

namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kFirstLength = 0.3; // fraction of the step that would close the gap
constexpr double kFading = 0.6;
constexpr int kPatience = 10;

} // namespace

/// Stored tensors of a problem by what uses them.
struct Prices::StoredIndex {
  std::vector<std::uint32_t> of_tensor;          ///< by tensor: index of the stored one
  std::vector<std::vector<std::uint32_t>> users; ///< by Einsum: stored tensors that it uses
};

Prices::Prices(const PlanProblem& problem, const RunBounds& bounds) : problem_(problem) {
  const std::uint32_t count = problem.einsums;
  StoredIndex index;
  index.users.resize(count);
  std::uint32_t uses = 0;
  double bits = 0;
  for (std::uint32_t k = 0; k < problem.stored.size(); ++k) {
    const Stored& stored = problem.stored[k];
    index.of_tensor.resize(std::max<std::size_t>(index.of_tensor.size(), stored.tensor + 1U),
                           kNone);
    index.of_tensor[stored.tensor] = k;
    first_use_.push_back(uses);
    uses += static_cast<std::uint32_t>(stored.uses.size());
    bits += static_cast<double>(stored.bits);
    for (const std::uint32_t e : stored.uses)
      index.users[e].push_back(k);
  }
  unit_ =
      std::max(1.0, bits / static_cast<double>(std::max<std::size_t>(1, problem.stored.size())));
  capacity_.assign(count, 0);
  agreement_.assign(2 * uses, 0);
  part_length_ = count / RunBounds::kParts + 1;
  for (std::size_t k = 0; k < problem.stored.size(); ++k) // all places agree at first
    std::fill_n(agreement_.begin() + first_use_[k], problem.stored[k].uses.size(),
                0.001 * static_cast<double>(problem.stored[k].bits));
  if (!bounds.capacity.empty()) {
    for (std::uint32_t e = 0; e < count; ++e)
      capacity_[e] = bounds.capacity[e] * unit_;
    agreement_ = bounds.agreement;
  }
  from_.assign(2 * count + 3, 0);
  for (const Run& run : problem.table.runs) {
    ++from_[2 * run.begin + (run.open_begin ? 1U : 0U) + 1];
    runs_.push_back(priced(run, index));
  }
  for (std::size_t i = 1; i < from_.size(); ++i)
    from_[i] += from_[i - 1];
  compute();
  lead();
  best_ = value_;
}

/// Collects the uses of stored tensors from which the run's price is computed.
PricedRun Prices::priced(const Run& run, const StoredIndex& index) const {
  PricedRun priced;
  std::vector<bool> listed(problem_.stored.size(), false);
  const auto each_use = [&](std::uint32_t k, std::vector<std::uint32_t>& list) {
    const std::vector<std::uint32_t>& at = problem_.stored[k].uses;
    for (std::uint32_t u = 0; u < at.size(); ++u) {
      if (at[u] >= run.begin && at[u] < run.end)
        list.push_back(first_use_[k] + u);
    }
  };
  for (const Run::Crossing& crossing : run.crossing) {
    const std::uint32_t k = index.of_tensor[crossing.tensor];
    listed[k] = true;
    if (crossing.place == StorageLevel::dram)
      continue;
    const std::size_t first = priced.agreed.size();
    each_use(k, priced.agreed);
    if (crossing.place == StorageLevel::buffer) {
      priced.stored_bits += problem_.stored[k].bits;
      continue;
    }
    for (std::size_t i = first; i < priced.agreed.size(); ++i)
      priced.agreed[i] += static_cast<std::uint32_t>(agreement_.size() / 2);
    priced.since = std::min(priced.since, problem_.stored[k].uses.front());
  }
  for (std::uint32_t e = run.begin; run.open_begin && e < run.end; ++e) {
    for (const std::uint32_t k : index.users[e]) {
      const Stored& stored = problem_.stored[k];
      if (listed[k] || (stored.uses.front() >= run.begin && stored.uses.back() < run.end))
        continue;
      listed[k] = true;
      each_use(k, priced.free_uses);
      priced.stored_bits += stored.bits;
    }
  }
  return priced;
}

double Prices::run_price(std::size_t r, std::uint32_t& point) const {
  const Run& run = problem_.table.runs[r];
  const PricedRun& priced = runs_[r];
  const double price = (above_[run.end] - above_[run.begin]) / unit_;
  double best = kInfinite;
  for (std::uint32_t p = 0; p < run.points.size(); ++p) {
    const double cost = static_cast<double>(run.points[p].dram) +
                        price * static_cast<double>(run.points[p].peak - priced.stored_bits);
    if (cost < best) {
      best = cost;
      point = p;
    }
  }
  for (const std::uint32_t use : priced.agreed)
    best += agreement_[use];
  for (const std::uint32_t use : priced.free_uses)
    best += std::min({0.0, agreement_[use], agreement_[agreement_.size() / 2 + use]});
  return best;
}

template <class Visit>
void Prices::each(std::uint32_t at, Visit visit) const {
  for (std::uint32_t r = from_[at]; r < from_[at + 1]; ++r) {
    const Run& run = problem_.table.runs[r];
    if (!run.open_begin) {
      visit(r, RunBounds::closed(run.begin), end_of(run, run.begin / part_length_));
      continue;
    }
    for (std::uint32_t part = 0; part <= run.begin / part_length_; ++part) {
      if (part * part_length_ <= runs_[r].since)
        visit(r, RunBounds::open(run.begin, part), end_of(run, part));
    }
  }
}

/// Minimises over all paths and, independently, over the places of each tensor at these prices.
void Prices::compute() {
  const std::uint32_t count = problem_.einsums;
  above_.assign(count + 1, 0);
  for (std::uint32_t e = 0; e < count; ++e)
    above_[e + 1] = above_[e] + capacity_[e];
  rest_.assign(RunBounds::closed(count + 1), kInfinite);
  chosen_run_.assign(rest_.size(), kNone);
  chosen_point_.assign(rest_.size(), 0);
  rest_[RunBounds::closed(count)] = 0;
  for (std::uint32_t at = 2 * count; at-- > 0;) {
    std::uint32_t last = kNone;
    std::uint32_t point = 0;
    double price = 0;
    each(at, [&](std::uint32_t r, std::size_t begin, std::size_t end) {
      if (rest_[end] == kInfinite)
        return;
      if (last != r)
        price = run_price(r, point);
      last = r;
      if (price + rest_[end] < rest_[begin]) {
        rest_[begin] = price + rest_[end];
        chosen_run_[begin] = r;
        chosen_point_[begin] = point;
      }
    });
  }
  after_ = rest_;
  stored_.assign(problem_.stored.size(), {});
  looped_.assign(problem_.stored.size(), {});
  std::vector<double> unborn(count + 1, 0); // minimum prices of tensors first used there
  for (std::size_t k = 0; k < problem_.stored.size(); ++k) {
    const Stored& stored = problem_.stored[k];
    std::vector<double>& price = stored_[k];
    price.assign(count + 1, 0);
    std::vector<double>& below = looped_[k];
    below.assign(count + 1, 0);
    const double bits = static_cast<double>(stored.bits) / unit_;
    std::size_t use = stored.uses.size();
    for (std::uint32_t at = stored.uses.back() + 1; at-- > stored.uses.front();) {
      price[at] = price[at + 1] + bits * capacity_[at];
      below[at] = below[at + 1];
      if (use > 0 && stored.uses[use - 1] == at) {
        price[at] -= agreement_[first_use_[k] + --use];
        below[at] -= agreement_[agreement_.size() / 2 + first_use_[k] + use];
      }
    }
    unborn[stored.uses.front()] +=
        std::min({0.0, price[stored.uses.front()], below[stored.uses.front()]});
  }
  const double capacity = static_cast<double>(problem_.buffer_bits) / unit_;
  double later = 0;
  for (std::uint32_t at = count + 1; at-- > 0;) {
    later += unborn[at];
    const double shared = later - capacity * (above_[count] - above_[at]);
    for (std::size_t i = RunBounds::closed(at); i < RunBounds::closed(at + 1); ++i)
      rest_[i] += shared;
  }
  constant_ = later - capacity * above_[count];
  value_ = rest_[0];
}

double Prices::run_price(std::size_t r) const {
  std::uint32_t point = 0;
  return run_price(r, point);
}

/// Computes the minimum price of the paths to each place, and of the paths through each run.
void Prices::lead() {
  before_.assign(rest_.size(), kInfinite);
  before_[0] = 0;
  for (std::uint32_t at = 0; at < 2 * problem_.einsums; ++at) {
    each(at, [&](std::uint32_t r, std::size_t begin, std::size_t end) {
      if (before_[begin] != kInfinite)
        before_[end] = std::min(before_[end], before_[begin] + run_price(r));
    });
  }
  around_.assign(problem_.table.runs.size(), kInfinite);
  for (std::uint32_t at = 0; at < 2 * problem_.einsums; ++at) {
    each(at, [&](std::uint32_t r, std::size_t begin, std::size_t end) {
      around_[r] = std::min(around_[r], before_[begin] + after_[end]);
    });
  }
}

bool Prices::useful(std::size_t r, double most) const {
  return around_[r] + run_price(r) + constant_ <=
         most + 1e-9 * (std::abs(most) + std::abs(constant_)) + 0.5;
}

RunBounds Prices::bounds(double most) const {
  RunBounds bounds{capacity_, agreement_, before_, after_, constant_, most, part_length_, {}, {}};
  for (double& price : bounds.capacity)
    price /= unit_;
  for (std::size_t k = 0; k < problem_.stored.size(); ++k) {
    const std::uint32_t t = problem_.stored[k].tensor;
    bounds.bits.resize(t + 1U, 0);
    bounds.first_use.resize(t + 1U, 0);
    bounds.bits[t] = problem_.stored[k].bits;
    bounds.first_use[t] = first_use_[k];
  }
  return bounds;
}

void Prices::fill(RunBounds& bounds) const {
  const std::vector<double> before = bounds.before, after = bounds.after; // infinite: unknown
  const auto lower = [&](double& to, double from, std::uint32_t r) {
    if (from != kInfinite)
      to = std::min(to, from + run_price(r));
  };
  for (std::uint32_t at = 0; at < 2 * problem_.einsums; ++at) {
    each(at, [&](std::uint32_t r, std::size_t begin, std::size_t end) {
      if (before[end] == kInfinite)
        lower(bounds.before[end], bounds.before[begin], r);
    });
  }
  for (std::uint32_t at = 2 * problem_.einsums; at-- > 0;) {
    each(at, [&](std::uint32_t r, std::size_t begin, std::size_t end) {
      if (after[begin] == kInfinite)
        lower(bounds.after[begin], bounds.after[end], r);
    });
  }
}

/// Computes the subgradient: the violations of the priced constraints by the cheapest choices.
/// Returns the sum of squares.
double Prices::slopes(std::vector<double>& capacity, std::vector<double>& agreement) const {
  capacity.assign(capacity_.size(), -static_cast<double>(problem_.buffer_bits) / unit_);
  agreement.assign(agreement_.size(), 0);
  const std::size_t goal = RunBounds::closed(problem_.einsums);
  const std::size_t half = agreement.size() / 2;
  for (std::size_t at = 0; at != goal && chosen_run_[at] != kNone;) {
    const std::uint32_t r = chosen_run_[at];
    const Run& run = problem_.table.runs[r];
    const std::int64_t own = run.points[chosen_point_[at]].peak - runs_[r].stored_bits;
    for (std::uint32_t e = run.begin; e < run.end; ++e)
      capacity[e] += static_cast<double>(own) / unit_;
    for (const std::uint32_t use : runs_[r].agreed)
      agreement[use] += 1;
    for (const std::uint32_t use : runs_[r].free_uses) {
      const double least = std::min({0.0, agreement_[use], agreement_[half + use]});
      if (least < 0)
        agreement[least == agreement_[use] ? use : half + use] += 1;
    }
    const auto part = run.open_begin
                          ? static_cast<std::uint32_t>(at - RunBounds::open(run.begin, 0))
                          : run.begin / part_length_;
    at = end_of(run, part);
  }
  for (std::size_t k = 0; k < problem_.stored.size(); ++k) {
    const Stored& stored = problem_.stored[k];
    const double whole = stored_[k][stored.uses.front()];
    const double below = looped_[k][stored.uses.front()];
    if (std::min(whole, below) >= 0)
      continue;
    for (std::uint32_t e = stored.uses.front(); whole <= below && e <= stored.uses.back(); ++e)
      capacity[e] += static_cast<double>(stored.bits) / unit_;
    for (std::size_t u = 0; u < stored.uses.size(); ++u)
      agreement[(whole <= below ? 0 : half) + first_use_[k] + u] -= 1;
  }
  double squares = 0;
  for (std::size_t e = 0; e < capacity.size(); ++e) {
    if (capacity_[e] <= 0 && capacity[e] < 0)
      capacity[e] = 0;
    squares += capacity[e] * capacity[e];
  }
  for (const double slope : agreement)
    squares += slope * slope;
  return squares;
}

void Prices::improve(std::int64_t upper, int steps, const SearchControl& control) {
  std::vector<double> best_capacity = capacity_;
  std::vector<double> best_agreement = agreement_;
  std::vector<double> capacity;
  std::vector<double> agreement;
  std::vector<double> along_capacity(capacity_.size(), 0); // decaying sums of earlier slopes
  std::vector<double> along_agreement(agreement_.size(), 0);
  double length = kFirstLength;
  int since = 0;
  for (int step = 0; step < steps && !control.interrupted() && best_ < kInfinite; ++step) {
    slopes(capacity, agreement);
    const double missing = static_cast<double>(upper) - best_;
    double squares = 0;
    const auto fade = [&](std::vector<double>& along, const std::vector<double>& slope) {
      for (std::size_t i = 0; i < slope.size(); ++i) {
        along[i] = kFading * along[i] + (1 - kFading) * slope[i];
        squares += along[i] * along[i];
      }
    };
    fade(along_capacity, capacity);
    fade(along_agreement, agreement);
    if (squares <= 1e-12 || missing <= 0)
      break;
    const double by = length * missing / squares;
    for (std::size_t e = 0; e < capacity_.size(); ++e)
      capacity_[e] = std::max(0.0, capacity_[e] + by * along_capacity[e]);
    for (std::size_t u = 0; u < agreement_.size(); ++u)
      agreement_[u] += by * along_agreement[u];
    compute();
    ++since;
    if (value_ > best_) {
      since = value_ > best_ + 1e-4 * std::abs(best_) ? 0 : since;
      best_ = value_;
      best_capacity = capacity_;
      best_agreement = agreement_;
    }
    if (since >= kPatience) { // no improvement: shorten steps
      since = 0;
      length *= 0.7;
    }
  }
  capacity_ = std::move(best_capacity);
  agreement_ = std::move(best_agreement);
  compute();
  lead();
}

} // namespace monet::einsum
