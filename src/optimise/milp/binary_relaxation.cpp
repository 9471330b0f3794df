// State of a node of the binary search: bounds, propagation, probing and the linear relaxation;
// binary_search.cpp drives it.
#include "optimise/milp/binary_relaxation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace monet {

namespace {

constexpr double kBroken = 1e-6; // tolerance relative to a row's largest term
constexpr int kProbeRounds = 3;

} // namespace

void BinaryRelaxation::build(const TightRoot& root) {
  lp_ = LinearProgram();
  rows_.clear();
  queue_.clear();
  queued_.clear();
  sum_row_.clear();
  changed_.clear();
  rows_of_.assign(columns(), {});
  for (std::size_t j = 0; j < columns(); ++j)
    lp_.add_variable(program_.lower[j], program_.upper[j], program_.cost[j]);
  for (const LinearRow& row : program_.rows)
    add_row(row);
  for (const LinearRow& row : root.cuts)
    add_row(row);
  lower_ = program_.lower;
  upper_ = program_.upper;
  for (const std::vector<std::uint32_t>& sum : program_.sums) {
    LinearRow row;
    double most = 0;
    double least = 0;
    for (const std::uint32_t j : sum) {
      row.terms.push_back({j, 1.0});
      least += program_.lower[j];
      most += program_.upper[j];
    }
    row.lower = least;
    row.upper = most;
    sum_row_.push_back(static_cast<std::uint32_t>(rows_.size()));
    add_row(row);
    lower_.push_back(least);
    upper_.push_back(most);
  }
  dirty_.assign(lower_.size(), 0);
}

void BinaryRelaxation::add_row(const LinearRow& row) {
  const auto id = static_cast<std::uint32_t>(rows_.size());
  lp_.add_row(row.terms, row.lower, row.upper);
  for (const LinearTerm& term : row.terms)
    rows_of_[term.variable].push_back(id);
  rows_.push_back(row);
  queued_.push_back(1);
  queue_.push_back(id);
}

std::size_t BinaryRelaxation::open_columns() const {
  std::size_t count = 0;
  for (std::size_t j = 0; j < columns(); ++j)
    count += lower_[j] != upper_[j] ? 1U : 0U;
  return count;
}

void BinaryRelaxation::forget_queue() {
  for (const std::uint32_t r : queue_)
    queued_[r] = 0;
  queue_.clear();
}

/// Whether the column can have this value in a solution within the limit. `news`: implied bounds,
/// applied.
bool BinaryRelaxation::possible(std::uint32_t column, bool up, double bound,
                                std::span<const double> prices, std::vector<Bound>& news) {
  if (!tighten_column(column, up, news) || !propagate(news)) {
    forget_queue();
    return false;
  }
  double cost = bound;
  for (const Bound& n : news) {
    const double price = prices[n.object];
    cost += (price > 0) == (n.lower > 0.5) ? std::abs(price) : 0;
  }
  return cost <= limit_ + 1e-6 * std::max(1.0, std::abs(limit_));
}

/// Fixes columns if one of their values cannot lead to a better solution. Returns false if no
/// better solution exists.
bool BinaryRelaxation::probe(double bound) {
  const std::vector<double> prices(lp_.reduced_costs().begin(), lp_.reduced_costs().end());
  if (!(limit_ < kUnbounded))
    return true;
  for (int round = 0; round < kProbeRounds; ++round) {
    bool found = false;
    for (std::uint32_t j = 0; j < columns(); ++j) {
      for (const bool up : {true, false}) {
        if (lower_[j] == upper_[j])
          continue;
        std::vector<Bound> news;
        const bool may = possible(j, up, bound, prices, news);
        for (const Bound& n : news)
          set({n.object, 0, 1});
        forget_queue();
        if (may)
          continue;
        found = true;
        std::vector<Bound> fixed;
        if (!tighten_column(j, !up, fixed) || !propagate(fixed))
          return false;
      }
      if (control_.interrupted())
        return true;
    }
    if (!found)
      break;
  }
  return true;
}

void BinaryRelaxation::set(const Bound& bound) {
  const std::uint32_t o = bound.object;
  if (lower_[o] == bound.lower && upper_[o] == bound.upper)
    return;
  lower_[o] = bound.lower;
  upper_[o] = bound.upper;
  if (std::exchange(dirty_[o], 1) == 0)
    changed_.push_back(o);
  if (o < columns()) {
    for (const std::uint32_t r : rows_of_[o])
      if (std::exchange(queued_[r], 1) == 0)
        queue_.push_back(r);
    return;
  }
  const std::uint32_t r = sum_row_[o - columns()];
  rows_[r].lower = bound.lower;
  rows_[r].upper = bound.upper;
  if (std::exchange(queued_[r], 1) == 0)
    queue_.push_back(r);
}

/// Solves the linear program with the current bounds.
LpStatus BinaryRelaxation::solve(std::int64_t iterations) {
  for (const std::uint32_t o : changed_) {
    dirty_[o] = 0;
    if (o < columns())
      lp_.set_bounds(o, lower_[o], upper_[o]);
    else
      lp_.set_row_bounds(sum_row_[o - columns()], lower_[o], upper_[o]);
  }
  changed_.clear();
  return lp_.solve(control_, iterations);
}

bool BinaryRelaxation::tighten_column(std::uint32_t column, bool up, std::vector<Bound>& news) {
  const Bound bound{column, up ? 1.0 : lower_[column], up ? upper_[column] : 0.0};
  if (bound.lower > bound.upper)
    return false;
  if (bound.lower == lower_[column] && bound.upper == upper_[column])
    return true;
  set(bound);
  news.push_back(bound);
  return true;
}

bool BinaryRelaxation::propagate_row(std::uint32_t r, std::vector<Bound>& news) {
  const LinearRow& row = rows_[r];
  double least = 0;
  double most = 0;
  double largest = 0;
  for (const LinearTerm& term : row.terms) {
    const double a = term.coefficient * lower_[term.variable];
    const double b = term.coefficient * upper_[term.variable];
    least += std::min(a, b);
    most += std::max(a, b);
    largest = std::max(largest, std::abs(term.coefficient));
  }
  const double room = kBroken * largest;
  if (least > row.upper + room || most < row.lower - room)
    return false;
  if (least + largest <= row.upper + room && most - largest >= row.lower - room)
    return true;
  for (const LinearTerm& term : row.terms) {
    if (lower_[term.variable] == upper_[term.variable])
      continue;
    const double size = std::abs(term.coefficient);
    const bool raises = term.coefficient > 0;
    if (least + size > row.upper + room && !tighten_column(term.variable, !raises, news))
      return false;
    if (lower_[term.variable] != upper_[term.variable] && most - size < row.lower - room &&
        !tighten_column(term.variable, raises, news))
      return false;
  }
  return true;
}

/// Returns false if no solution remains.
bool BinaryRelaxation::propagate(std::vector<Bound>& news) {
  bool possible = true;
  while (!queue_.empty()) {
    const std::uint32_t r = queue_.back();
    queue_.pop_back();
    queued_[r] = 0;
    possible = possible && propagate_row(r, news);
  }
  return possible;
}

bool BinaryRelaxation::add_broken() {
  std::vector<LinearRow> broken = take_broken(program_.pool, x_);
  for (LinearRow& row : broken) {
    add_row(row);
    program_.rows.push_back(std::move(row)); // the next root includes it
  }
  return !broken.empty();
}

/// Fixes columns whose reduced costs rule out the other value. Returns true if any is newly fixed.
bool BinaryRelaxation::fix_by_price(double bound, std::vector<Bound>& news) {
  const std::span<const double> prices = lp_.reduced_costs();
  bool found = false;
  const double room = 1e-6 * std::max(1.0, std::abs(limit_));
  std::vector<std::pair<std::uint32_t, bool>> fixed;
  for (std::uint32_t j = 0; j < columns(); ++j)
    if (lower_[j] != upper_[j] && bound + std::abs(prices[j]) > limit_ + room &&
        x_[j] == (prices[j] > 0 ? lower_[j] : upper_[j]))
      fixed.emplace_back(j, prices[j] < 0);
  for (const auto& [j, up] : fixed)
    found = tighten_column(j, up, news) || found;
  return found;
}

/// Lower bound at the current node, infinite if no solution remains; its solution is in x_.
double BinaryRelaxation::relax(std::vector<Bound>& news) {
  double bound = -kUnbounded;
  for (;;) {
    if (!propagate(news))
      return kUnbounded;
    const LpStatus status = solve(std::numeric_limits<std::int32_t>::max());
    if (status == LpStatus::infeasible)
      return kUnbounded;
    if (status != LpStatus::optimal) {
      stuck_ = true;
      return -kUnbounded;
    }
    bound = lp_.safe_bound();
    if (bound > limit_)
      return kUnbounded;
    x_.assign(lp_.values().begin(), lp_.values().end());
    const bool fixed = limit_ < kUnbounded && fix_by_price(bound, news);
    if (!add_broken() && (!fixed || queue_.empty()))
      return bound;
    if (fixed && !propagate(news))
      return kUnbounded;
  }
}

} // namespace monet
