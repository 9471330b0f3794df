// Mixed integer and linear programs, solved by CBC and Clp. The only door to them.
//
// Everything is minimised. One thread. Nothing is printed. A solve looks at the control's stop and
// deadline at each node and each LP iteration; what is between (a round of cuts) cannot be cut.
#pragma once

#include "monet/optimise/search.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <vector>

class ClpSimplex;

namespace monet {

inline constexpr double kUnbounded = std::numeric_limits<double>::infinity();

/// coefficient * variable.
struct LinearTerm {
  std::uint32_t variable = 0;
  double coefficient = 0;
};

/// lower <= sum of terms <= upper; either may be infinite. Each variable at most once.
struct LinearRow {
  std::vector<LinearTerm> terms;
  double lower = -kUnbounded;
  double upper = kUnbounded;
};

enum class MilpStatus : std::uint8_t {
  optimal,    ///< `objective` is the least, see MilpResult::bound
  feasible,   ///< a limit came first; `values` is the best found
  infeasible, ///< proven: there is no solution
  unknown,    ///< a limit came first and nothing was found, or there is no least cost
};

struct MilpResult {
  MilpStatus status = MilpStatus::unknown;
  std::vector<double> values; ///< one per variable, integers exact; empty without a solution
  double objective = kUnbounded;
  /// No solution costs less, to 1e-7 of the largest cost. Where all costs are on integer variables
  /// and multiples of one number, it is rounded up to the next multiple.
  double bound = -kUnbounded;
  std::int64_t nodes = 0;
  bool interrupted = false; ///< by the control's stop or deadline: bound and values vary with time
};

struct MilpOptions {
  std::int64_t nodes = std::numeric_limits<std::int32_t>::max(); ///< limit; the same on any machine
  bool cuts = true;
  bool heuristics = true;
  /// Solutions that cost this or more are of no interest (infinite: all are). With none below it
  /// the status is infeasible and the bound is the cutoff.
  double cutoff = kUnbounded;
  /// Good enough, as Certificate::gap: the status is then `feasible`, or `optimal` at gap 0.
  double gap = 0;
};

/// A mixed integer program: minimise costs * x, lower <= x <= upper, rows.
class MilpModel {
public:
  /// The variable's index. Bounds may be infinite.
  std::uint32_t add_variable(double lower, double upper, double cost, bool integer);
  std::uint32_t add_binary(double cost) { return add_variable(0, 1, cost, true); }
  /// The row's index.
  std::uint32_t add_row(std::span<const LinearTerm> terms, double lower, double upper);
  /// A solution to begin with, one value per variable. Ignored where it breaks a row.
  void set_start(std::vector<double> values) { start_ = std::move(values); }

  std::size_t variables() const { return cost_.size(); }
  std::size_t rows() const { return row_lower_.size(); }

  /// Does `values` keep every row, bound and integrality, to 1e-6 of each row's largest term?
  bool holds(std::span<const double> values) const;
  double objective(std::span<const double> values) const;

  MilpResult solve(const SearchControl& control, const MilpOptions& options = {}) const;

  /// Rows that only matter where they are broken: `broken` gets each solution found and returns
  /// rows that it breaks, none when it is fine; they are added to the model and it is solved
  /// again, at most `rounds` times. Bounds of every round hold.
  using BrokenRows = std::function<std::vector<LinearRow>(std::span<const double> values)>;
  MilpResult solve_lazily(const SearchControl& control, const MilpOptions& options,
                          const BrokenRows& broken, int rounds = 1000);

private:
  friend class CbcRun;
  std::vector<double> lower_, upper_, cost_;
  std::vector<char> integer_;
  std::vector<std::size_t> row_start_ = {0};
  std::vector<LinearTerm> terms_;
  std::vector<double> row_lower_, row_upper_;
  std::vector<double> start_;
};

enum class LpStatus : std::uint8_t {
  optimal,
  infeasible,
  unbounded,
  interrupted, ///< by the control
  limit,       ///< of iterations, or numerical trouble
};

/// A linear program that is solved again and again: rows and columns are added, bounds and costs
/// change, and each solve goes on from the last basis.
class LinearProgram {
public:
  LinearProgram();
  ~LinearProgram();
  LinearProgram(LinearProgram&&) noexcept;
  LinearProgram& operator=(LinearProgram&&) noexcept;

  /// The variable's index. Cheap: handed to the solver, all at once, by the next solve.
  std::uint32_t add_variable(double lower, double upper, double cost);
  std::uint32_t add_row(std::span<const LinearTerm> terms, double lower, double upper);
  /// A variable that appears in existing rows: LinearTerm::variable is the row here.
  std::uint32_t add_column(double lower, double upper, double cost,
                           std::span<const LinearTerm> in_rows);
  void set_bounds(std::uint32_t variable, double lower, double upper);
  void set_row_bounds(std::uint32_t row, double lower, double upper);
  /// Takes rows out (cuts that no longer bind); the others keep their order and move up.
  void remove_rows(std::span<const std::uint32_t> rows);

  std::size_t variables() const;
  std::size_t rows() const;

  /// At most `iterations` of the simplex method.
  LpStatus solve(const SearchControl& control,
                 std::int64_t iterations = std::numeric_limits<std::int32_t>::max());

  /// Of the last solve: valid until the next change.
  double objective() const;
  std::span<const double> values() const;
  std::span<const double> duals() const;         ///< of rows: cost per unit of the row's bound
  std::span<const double> reduced_costs() const; ///< cost minus duals * column

  /// Where the next solve begins, to come back to: valid until rows or columns are added.
  std::vector<unsigned char> basis() const;
  void set_basis(const std::vector<unsigned char>& basis);

  /// A bound that holds whatever the solver did: that of its duals, computed from the data with
  /// rounding errors taken off (Neumaier, Shcherbina 2004). -infinity where an unbounded variable
  /// has a reduced cost of the wrong sign: give variables finite bounds.
  double safe_bound() const;

private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The model stops, and sets `stopped`, once the control is interrupted. Both must outlive its
/// runs.
void stop_with(ClpSimplex& model, const SearchControl& control, bool& stopped);

} // namespace monet
