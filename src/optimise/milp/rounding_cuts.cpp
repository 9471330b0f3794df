// Rounding and cover cuts of rows with binary columns; binary_root.cpp adds them to the cuts of
// CGL.
#include "optimise/milp/rounding_cuts.hpp"

#include <algorithm>
#include <cmath>

namespace monet {

namespace {

constexpr double kZero = 1e-9;
constexpr double kFraction = 0.02; // minimum distance of the side's fraction from 0 and 1
constexpr std::size_t kDivisors = 8;

/// Sum of rows: terms of columns, some complemented, and of slacks.
class Sum {
public:
  Sum(const RoundingRows& rows, std::span<const double> multipliers) : rows_(rows) {
    dense_.assign(rows.x.size(), 0);
    for (std::uint32_t r = 0; r < rows.rows.size(); ++r) {
      const double z = multipliers[r];
      if (std::abs(z) < kZero)
        continue;
      const LinearRow& row = rows.rows[r];
      for (const LinearTerm& term : row.terms)
        dense_[term.variable] += z * term.coefficient;
      const bool up = row.upper - rows.activity[r] <= rows.activity[r] - row.lower;
      const double side = up ? row.upper : row.lower;
      right_ += z * side;
      if (row.lower != row.upper)
        slacks_.push_back(
            {r, up ? z : -z, up ? side - rows.activity[r] : rows.activity[r] - side, up});
    }
    for (std::uint32_t j = 0; j < dense_.size(); ++j) {
      const double a = dense_[j];
      if (a == 0)
        continue;
      if (rows.lower[j] == rows.upper[j]) {
        right_ -= a * rows.lower[j];
        continue;
      }
      const bool flip = rows.x[j] > 0.5;
      right_ -= flip ? a : 0;
      terms_.push_back({j, flip ? -a : a, flip ? 1 - rows.x[j] : rows.x[j], flip});
    }
  }

  /// Violation of the cut with this divisor (negative for the negated sum) at the point; negative
  /// if there is no valid cut.
  double broken(double divisor) const {
    const double right = right_ / divisor;
    const double f = right - std::floor(right);
    if (f < kFraction || f > 1 - kFraction)
      return -1;
    double sum = -std::floor(right);
    double norm = 0;
    for (const Term& term : terms_) {
      const double c = rounded(term.a / divisor, f);
      sum += c * term.x;
      norm += c * c;
    }
    for (const Slack& slack : slacks_)
      sum += of_slack(slack, divisor, f) * slack.s;
    return norm > 0 ? sum / std::sqrt(norm) : -1;
  }

  /// The cut in terms of columns only.
  LinearRow cut(double divisor) const {
    std::vector<double> dense(dense_.size(), 0);
    const double right = right_ / divisor;
    const double f = right - std::floor(right);
    double side = std::floor(right);
    double size = std::abs(side) + 1;
    for (const Term& term : terms_) {
      const double c = rounded(term.a / divisor, f);
      dense[term.column] += term.flip ? -c : c;
      side -= term.flip ? c : 0;
      size += std::abs(c);
    }
    for (const Slack& slack : slacks_) {
      const double c = of_slack(slack, divisor, f);
      if (c == 0)
        continue;
      const LinearRow& row = rows_.rows[slack.row];
      side -= slack.up ? c * row.upper : -c * row.lower;
      size += std::abs(slack.up ? c * row.upper : c * row.lower);
      for (const LinearTerm& term : row.terms) {
        dense[term.variable] += slack.up ? -c * term.coefficient : c * term.coefficient;
        size += std::abs(c * term.coefficient);
      }
    }
    return finish(dense, side + 1e-11 * size);
  }

  std::vector<double> divisors() const {
    std::vector<double> list;
    for (const Term& term : terms_) {
      const double a = std::abs(term.a);
      if (term.x < 1e-6 || a < 1e-5)
        continue;
      if (std::ranges::none_of(list, [&](double d) { return std::abs(d - a) < 1e-6 * a; }))
        list.push_back(a);
      if (list.size() >= kDivisors)
        break;
    }
    list.push_back(1);
    return list;
  }

private:
  struct Term {
    std::uint32_t column = 0;
    double a = 0, x = 0;
    bool flip = false;
  };
  struct Slack {
    std::uint32_t row = 0;
    double a = 0, s = 0;
    bool up = false;
  };

  static double rounded(double a, double f) {
    const double down = std::floor(a);
    return down + std::max(0.0, a - down - f) / (1 - f);
  }
  double of_slack(const Slack& slack, double divisor, double f) const {
    const double a = slack.a / divisor;
    if (rows_.whole[slack.row] != 0)
      return rounded(a, f);
    return a < 0 ? a / (1 - f) : 0;
  }

  /// Moves small terms to the side.
  LinearRow finish(const std::vector<double>& dense, double side) const {
    double largest = 0;
    for (const double a : dense)
      largest = std::max(largest, std::abs(a));
    LinearRow row;
    for (std::uint32_t j = 0; j < dense.size(); ++j) {
      const double a = dense[j];
      if (a == 0)
        continue;
      if (std::abs(a) < 1e-6 * largest || rows_.lower[j] == rows_.upper[j])
        side -= std::min(a * rows_.lower[j], a * rows_.upper[j]);
      else
        row.terms.push_back({j, a});
    }
    row.upper = side + 1e-9 * largest;
    return row;
  }

  const RoundingRows& rows_;
  std::vector<double> dense_;
  std::vector<Term> terms_;
  std::vector<Slack> slacks_;
  double right_ = 0;
};

} // namespace

bool rounding_cut(const RoundingRows& rows, std::span<const double> multipliers, double least,
                  LinearRow& cut, double& broken) {
  double best = least;
  std::vector<double> negative;
  for (const bool minus : {false, true}) {
    if (minus) {
      negative.assign(multipliers.begin(), multipliers.end());
      for (double& z : negative)
        z = -z;
    }
    const Sum sum(rows, minus ? std::span<const double>(negative) : multipliers);
    double divisor = 0;
    const auto look = [&](double d) {
      if (const double b = sum.broken(d); b > best) {
        best = b;
        divisor = d;
      }
    };
    for (const double d : sum.divisors())
      look(d);
    if (divisor == 0)
      continue;
    const double first = divisor;
    for (const double part : {2.0, 4.0, 8.0})
      look(first / part);
    cut = sum.cut(divisor);
    broken = best;
  }
  return best > least;
}

namespace {

/// A positive term of a row: a column or its complement to one.
struct Weight {
  std::uint32_t column = 0;
  double a = 0, x = 0;
  bool flip = false;
  bool in = false; ///< in the cover
};

/// Marks a cover that the point violates. Returns its size, or 0 without a cover.
std::size_t find_cover(std::vector<Weight>& weights, double side, double room) {
  std::ranges::sort(weights, [](const Weight& p, const Weight& q) {
    const double left = (1 - p.x) * q.a;
    const double right = (1 - q.x) * p.a;
    return left != right ? left < right : p.column < q.column;
  });
  double sum = 0;
  std::size_t count = 0;
  for (Weight& weight : weights) {
    if (sum > side + room)
      break;
    weight.in = true;
    sum += weight.a;
    ++count;
  }
  if (!(sum > side + room))
    return 0;
  for (std::size_t i = count; i-- > 0;) // makes the cover minimal, keeping the largest values
    if (sum - weights[i].a > side + room) {
      weights[i].in = false;
      sum -= weights[i].a;
    }
  double missing = 0;
  count = 0;
  for (const Weight& weight : weights)
    if (weight.in) {
      missing += 1 - weight.x;
      ++count;
    }
  return missing < 1 ? count : 0;
}

} // namespace

bool cover_cut(const RoundingRows& rows, std::uint32_t row, bool up, double least, LinearRow& cut) {
  const LinearRow& from = rows.rows[row];
  double side = up ? from.upper : -from.lower;
  if (std::isinf(side))
    return false;
  std::vector<Weight> weights;
  double largest = 0;
  for (const LinearTerm& term : from.terms) {
    const double a = up ? term.coefficient : -term.coefficient;
    const std::uint32_t j = term.variable;
    largest = std::max(largest, std::abs(a));
    if (rows.lower[j] == rows.upper[j]) {
      side -= a * rows.lower[j];
      continue;
    }
    side -= a < 0 ? a : 0;
    weights.push_back({j, std::abs(a), a < 0 ? 1 - rows.x[j] : rows.x[j], a < 0, false});
  }
  const std::size_t size = side < 0 ? 0 : find_cover(weights, side, 1e-6 * largest);
  if (size < 2)
    return false;
  std::vector<double> sums; // prefix sums of the cover's largest coefficients
  for (const Weight& weight : weights)
    if (weight.in)
      sums.push_back(weight.a);
  std::sort(sums.rbegin(), sums.rend());
  for (std::size_t i = 1; i < sums.size(); ++i)
    sums[i] += sums[i - 1];
  cut = {};
  double right = static_cast<double>(size) - 1;
  double sum = 0;
  double norm = 0;
  for (const Weight& weight : weights) {
    const auto outweighed = std::ranges::upper_bound(sums, weight.a) - sums.begin();
    const double c = weight.in ? 1.0 : static_cast<double>(outweighed);
    if (c == 0)
      continue;
    sum += c * weight.x;
    norm += c * c;
    cut.terms.push_back({weight.column, weight.flip ? -c : c});
    right -= weight.flip ? c : 0;
  }
  cut.upper = right;
  return sum - (static_cast<double>(size) - 1) > least * std::sqrt(norm);
}

} // namespace monet
