// Where a search over binary columns stands: bounds of columns, what follows from them, and the
// linear relaxation.
#pragma once

#include "optimise/milp/binary_search.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace monet {

/// Something with integer values that is branched on, a column or the sum of some, and its bounds.
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

  /// The linear program, with cuts.
  void build(const TightRoot& root);
  void set(const Bound& bound);
  /// With the bounds of where the search stands.
  LpStatus solve(std::int64_t iterations);
  /// The bound of where the search stands, infinite where nothing is left, -infinite where the
  /// linear program was not solved; x_ is its solution, news what follows for columns.
  double relax(std::vector<Bound>& news);
  /// Fixes columns one of whose values leaves nothing better. False where nothing is left at all.
  bool probe(double bound);
  /// What follows from the bounds. False where no solution is left.
  bool propagate(std::vector<Bound>& news);
  /// False where the column cannot have the value.
  bool tighten_column(std::uint32_t column, bool up, std::vector<Bound>& news);
  void forget_queue();
  std::size_t open_columns() const;
  std::size_t columns() const { return program_.cost.size(); }

  BinaryProgram program_; // scaled
  const SearchControl& control_;
  double limit_ = kUnbounded; // what a solution of interest costs at most
  LinearProgram lp_;
  std::vector<LinearRow> rows_;       // of lp_
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

  std::vector<std::uint32_t> sum_row_;              // of lp_, per sum
  std::vector<std::vector<std::uint32_t>> rows_of_; // per column
  std::vector<std::uint32_t> changed_; // objects whose bounds the linear program does not know
  std::vector<char> dirty_;
  std::vector<std::uint32_t> queue_; // rows to propagate
  std::vector<char> queued_;
};

} // namespace monet
