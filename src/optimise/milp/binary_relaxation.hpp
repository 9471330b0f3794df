// Current node of a search over binary columns: bounds of columns, their implications, and the
// linear relaxation.
#pragma once

#include "optimise/milp/binary_search.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace monet {

/// Bounds of an integer object to branch on: a column or a sum of columns.
struct BinaryBound {
  std::uint32_t object = 0; ///< columns first, then sums
  double lower = 0, upper = 1;
};

class BinaryRelaxation {
public:
  using Bound = BinaryBound;

protected:
  BinaryRelaxation(const BinaryProgram& program, const SearchControl& control)
      : program_(program), control_(control) {}

  /// Builds the linear program, with cuts.
  void build(const TightRoot& root);
  void set(const Bound& bound);
  /// Solves the linear program with the current bounds.
  LpStatus solve(std::int64_t iterations);
  /// Lower bound at the current node: infinite if no solution remains, -infinite if the linear
  /// program was not solved. Its solution is in x_, implied bounds of columns in `news`.
  double relax(std::vector<Bound>& news);
  /// Fixes columns if one of their values cannot lead to a better solution. Returns false if no
  /// better solution exists.
  bool probe(double bound);
  /// Propagates bounds through the rows. Returns false if no solution remains.
  bool propagate(std::vector<Bound>& news);
  /// Returns false if the column cannot have the value.
  bool tighten_column(std::uint32_t column, bool up, std::vector<Bound>& news);
  void forget_queue();
  std::size_t open_columns() const;
  std::size_t columns() const { return program_.cost.size(); }

  BinaryProgram program_; // scaled
  const SearchControl& control_;
  double limit_ = kUnbounded; // maximum cost of solutions of interest
  LinearProgram lp_;
  std::vector<LinearRow> rows_;       // rows of lp_
  std::vector<double> lower_, upper_; // per object
  std::vector<double> x_;
  bool stuck_ = false; // the linear program could not be solved

private:
  void add_row(const LinearRow& row);
  bool add_broken();
  bool fix_by_price(double bound, std::vector<Bound>& news);
  bool propagate_row(std::uint32_t row, std::vector<Bound>& news);
  bool possible(std::uint32_t column, bool up, double bound, std::span<const double> prices,
                std::vector<Bound>& news);

  std::vector<std::uint32_t> sum_row_;              // row of lp_ per sum
  std::vector<std::vector<std::uint32_t>> rows_of_; // per column
  std::vector<std::uint32_t> changed_;              // objects whose bounds are not in lp_ yet
  std::vector<char> dirty_;
  std::vector<std::uint32_t> queue_; // rows to propagate
  std::vector<char> queued_;
};

} // namespace monet
