#include "einsum_prices.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace monet::einsum {

namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

} // namespace

Prices::Prices(const PlanProblem& problem, const RunBounds& bounds) : problem_(problem) {
  const std::uint32_t count = problem.einsums;
  std::vector<std::uint32_t> index;
  std::vector<std::vector<std::uint32_t>> users(count); // stored tensors that an Einsum uses
  std::uint32_t uses = 0;
  double bits = 0;
  for (std::uint32_t k = 0; k < problem.stored.size(); ++k) {
    const Stored& stored = problem.stored[k];
    index.resize(std::max<std::size_t>(index.size(), stored.tensor + 1U), kNone);
    index[stored.tensor] = k;
    first_use_.push_back(uses);
    uses += static_cast<std::uint32_t>(stored.uses.size());
    bits += static_cast<double>(stored.bits);
    for (const std::uint32_t e : stored.uses)
      users[e].push_back(k);
  }
  unit_ =
      std::max(1.0, bits / static_cast<double>(std::max<std::size_t>(1, problem.stored.size())));
  capacity_.assign(count, 0);
  agreement_.assign(uses, 0);
  if (!bounds.capacity.empty()) {
    for (std::uint32_t e = 0; e < count; ++e)
      capacity_[e] = bounds.capacity[e] * unit_;
    agreement_ = bounds.agreement;
  }
  from_.assign(2 * count + 3, 0);
  for (const Run& run : problem.table.runs) {
    ++from_[2 * run.begin + (run.open_begin ? 1U : 0U) + 1];
    PricedRun priced;
    std::vector<bool> listed(problem.stored.size(), false);
    const auto each_use = [&](std::uint32_t k, std::vector<std::uint32_t>& list) {
      const std::vector<std::uint32_t>& at = problem.stored[k].uses;
      for (std::uint32_t u = 0; u < at.size(); ++u) {
        if (at[u] >= run.begin && at[u] < run.end)
          list.push_back(first_use_[k] + u);
      }
    };
    for (const Run::Crossing& crossing : run.crossing) {
      const std::uint32_t k = index[crossing.tensor];
      listed[k] = true;
      if (crossing.place != Place::buffer)
        continue;
      each_use(k, priced.in_buffer);
      priced.apart += problem.stored[k].bits;
    }
    for (std::uint32_t e = run.begin; run.open_begin && e < run.end; ++e) {
      for (const std::uint32_t k : users[e]) {
        if (listed[k] || problem.stored[k].uses.front() >= run.begin)
          continue;
        listed[k] = true;
        each_use(k, priced.free_uses);
        priced.apart += problem.stored[k].bits;
      }
    }
    runs_.push_back(std::move(priced));
  }
  for (std::size_t i = 1; i < from_.size(); ++i)
    from_[i] += from_[i - 1];
  compute();
  lead();
  best_ = value_;
}

double Prices::run_price(std::size_t r, std::uint32_t& point) const {
  const Run& run = problem_.table.runs[r];
  const PricedRun& priced = runs_[r];
  const double price = (above_[run.end] - above_[run.begin]) / unit_;
  double best = kInfinite;
  for (std::uint32_t p = 0; p < run.points.size(); ++p) {
    const double cost = static_cast<double>(run.points[p].dram) +
                        price * static_cast<double>(run.points[p].peak - priced.apart);
    if (cost < best) {
      best = cost;
      point = p;
    }
  }
  for (const std::uint32_t use : priced.in_buffer)
    best += agreement_[use];
  for (const std::uint32_t use : priced.free_uses)
    best += std::min(0.0, agreement_[use]);
  return best;
}

/// The least of all paths and of all places of each tensor, on their own, at these prices.
void Prices::compute() {
  const std::uint32_t count = problem_.einsums;
  above_.assign(count + 1, 0);
  for (std::uint32_t e = 0; e < count; ++e)
    above_[e + 1] = above_[e] + capacity_[e];
  rest_.assign(2 * count + 2, kInfinite);
  chosen_run_.assign(2 * count + 2, kNone);
  chosen_point_.assign(2 * count + 2, 0);
  rest_[2 * count] = 0;
  for (std::uint32_t at = 2 * count; at-- > 0;) {
    for (std::uint32_t r = from_[at]; r < from_[at + 1]; ++r) {
      const Run& run = problem_.table.runs[r];
      const double after = rest_[2 * run.end + (run.open_end ? 1U : 0U)];
      if (after == kInfinite)
        continue;
      std::uint32_t point = 0;
      const double cost = run_price(r, point) + after;
      if (cost < rest_[at]) {
        rest_[at] = cost;
        chosen_run_[at] = r;
        chosen_point_[at] = point;
      }
    }
  }
  after_ = rest_;
  stored_.assign(problem_.stored.size(), {});
  std::vector<double> unborn(count + 1, 0); // of tensors whose first use is there
  for (std::size_t k = 0; k < problem_.stored.size(); ++k) {
    const Stored& stored = problem_.stored[k];
    std::vector<double>& price = stored_[k];
    price.assign(count + 1, 0);
    const double bits = static_cast<double>(stored.bits) / unit_;
    std::size_t use = stored.uses.size();
    for (std::uint32_t at = stored.uses.back() + 1; at-- > stored.uses.front();) {
      price[at] = price[at + 1] + bits * capacity_[at];
      if (use > 0 && stored.uses[use - 1] == at)
        price[at] -= agreement_[first_use_[k] + --use];
    }
    unborn[stored.uses.front()] += std::min(0.0, price[stored.uses.front()]);
  }
  const double capacity = static_cast<double>(problem_.buffer_bits) / unit_;
  double later = 0;
  for (std::uint32_t at = count + 1; at-- > 0;) {
    later += unborn[at];
    const double shared = later - capacity * (above_[count] - above_[at]);
    rest_[2 * at] += shared;
    rest_[2 * at + 1] += shared;
  }
  constant_ = later - capacity * above_[count];
  value_ = rest_[0];
}

/// The least of all paths that lead to each place.
void Prices::lead() {
  before_.assign(rest_.size(), kInfinite);
  before_[0] = 0;
  for (std::uint32_t at = 0; at < 2 * problem_.einsums; ++at) {
    for (std::uint32_t r = from_[at]; r < from_[at + 1] && before_[at] != kInfinite; ++r) {
      const Run& run = problem_.table.runs[r];
      std::uint32_t point = 0;
      double& to = before_[2 * run.end + (run.open_end ? 1U : 0U)];
      to = std::min(to, before_[at] + run_price(r, point));
    }
  }
}

bool Prices::useful(std::size_t r, double most) const {
  const Run& run = problem_.table.runs[r];
  std::uint32_t point = 0;
  return before_[2 * run.begin + (run.open_begin ? 1U : 0U)] + run_price(r, point) +
             after_[2 * run.end + (run.open_end ? 1U : 0U)] + constant_ <=
         most + 1e-9 * (std::abs(most) + std::abs(constant_)) + 0.5;
}

RunBounds Prices::bounds(double most) const {
  RunBounds bounds{capacity_, agreement_, before_, after_, constant_, most, {}, {}};
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
  std::vector<bool> missing;
  for (const double before : bounds.before)
    missing.push_back(before == kInfinite);
  for (std::uint32_t at = 0; at < 2 * problem_.einsums; ++at) {
    for (std::uint32_t r = from_[at]; r < from_[at + 1] && bounds.before[at] != kInfinite; ++r) {
      const Run& run = problem_.table.runs[r];
      const std::uint32_t to = 2 * run.end + (run.open_end ? 1U : 0U);
      std::uint32_t point = 0;
      if (missing[to])
        bounds.before[to] = std::min(bounds.before[to], bounds.before[at] + run_price(r, point));
    }
  }
  for (std::uint32_t at = 2 * problem_.einsums; at-- > 0;) {
    if (bounds.after[at] != kInfinite)
      continue;
    for (std::uint32_t r = from_[at]; r < from_[at + 1]; ++r) {
      const Run& run = problem_.table.runs[r];
      std::uint32_t point = 0;
      bounds.after[at] =
          std::min(bounds.after[at],
                   bounds.after[2 * run.end + (run.open_end ? 1U : 0U)] + run_price(r, point));
    }
  }
}

/// By how much the cheapest choices break the rules that have prices; returns the sum of squares.
double Prices::slopes(std::vector<double>& capacity, std::vector<double>& agreement) const {
  capacity.assign(capacity_.size(), -static_cast<double>(problem_.buffer_bits) / unit_);
  agreement.assign(agreement_.size(), 0);
  const std::uint32_t goal = 2 * problem_.einsums;
  for (std::uint32_t at = 0; at != goal && chosen_run_[at] != kNone;) {
    const std::uint32_t r = chosen_run_[at];
    const Run& run = problem_.table.runs[r];
    const std::int64_t own = run.points[chosen_point_[at]].peak - runs_[r].apart;
    for (std::uint32_t e = run.begin; e < run.end; ++e)
      capacity[e] += static_cast<double>(own) / unit_;
    for (const std::uint32_t use : runs_[r].in_buffer)
      agreement[use] += 1;
    for (const std::uint32_t use : runs_[r].free_uses)
      agreement[use] += agreement_[use] < 0 ? 1 : 0;
    at = 2 * run.end + (run.open_end ? 1U : 0U);
  }
  for (std::size_t k = 0; k < problem_.stored.size(); ++k) {
    const Stored& stored = problem_.stored[k];
    if (stored_[k][stored.uses.front()] >= 0)
      continue;
    for (std::uint32_t e = stored.uses.front(); e <= stored.uses.back(); ++e)
      capacity[e] += static_cast<double>(stored.bits) / unit_;
    for (std::size_t u = 0; u < stored.uses.size(); ++u)
      agreement[first_use_[k] + u] -= 1;
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
  double length = 1.0;
  int since = 0;
  for (int step = 0; step < steps && !control.interrupted() && best_ < kInfinite; ++step) {
    const double squares = slopes(capacity, agreement);
    const double missing = static_cast<double>(upper) - value_;
    if (squares <= 0 || missing <= 0)
      break;
    const double by = length * missing / squares;
    for (std::size_t e = 0; e < capacity.size(); ++e)
      capacity_[e] = std::max(0.0, capacity_[e] + by * capacity[e]);
    for (std::size_t u = 0; u < agreement.size(); ++u)
      agreement_[u] += by * agreement[u];
    compute();
    if (value_ > best_) {
      since = value_ > best_ + 1e-4 * std::abs(best_) ? 0 : since + 1;
      best_ = value_;
      best_capacity = capacity_;
      best_agreement = agreement_;
    } else {
      ++since;
    }
    if (since >= 12) { // shorter steps, from the best
      since = 0;
      length *= 0.6;
      capacity_ = best_capacity;
      agreement_ = best_agreement;
      compute();
    }
  }
  capacity_ = std::move(best_capacity);
  agreement_ = std::move(best_agreement);
  compute();
  lead();
}

} // namespace monet::einsum
