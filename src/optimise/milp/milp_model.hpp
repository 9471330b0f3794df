// Mixed integer and linear programs, solved by CBC, Clp or MONET's branch and cut; the only
// interface to these solvers.
//
// All programs are minimised on one thread, without output. A solve checks the control's stop and
// deadline at each node and each LP iteration; work in between (a round of cuts) is not
// interrupted.
#pragma once

#include "monet/optimise/search.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

class ClpSimplex;

namespace monet {

inline constexpr double kUnbounded = std::numeric_limits<double>::infinity();

/// Term of a row: coefficient * variable.
struct LinearTerm {
  std::uint32_t variable = 0;
  double coefficient = 0;
};

/// Row: lower <= sum of terms <= upper. Either bound may be infinite; each variable occurs at most
/// once.
struct LinearRow {
  std::vector<LinearTerm> terms;
  double lower = -kUnbounded;
  double upper = kUnbounded;
};

enum class MilpStatus : std::uint8_t {
  optimal,    ///< `objective` is the minimum, see MilpResult::bound
  feasible,   ///< limit reached; `values` is the best solution found
  infeasible, ///< proven to have no solution
  unknown,    ///< limit reached without a solution, or unbounded
};

struct MilpResult {
  MilpStatus status = MilpStatus::unknown;
  std::vector<double> values; ///< one per variable, integers exact; empty without a solution
  double objective = kUnbounded;
  /// Lower bound on the cost, to 1e-7 of the largest cost. If all costs are on integer variables
  /// and multiples of one number, it is rounded up to the next multiple.
  double bound = -kUnbounded;
  std::int64_t nodes = 0;
  bool interrupted = false; ///< by stop or deadline; bound and values then vary with time
};

enum class MilpSolver : std::uint8_t {
  cbc,
  /// search_binary(), for columns of 0 and 1. It ignores the start, `cuts`, `heuristics` and `gap`.
  branch_and_cut,
};

struct MilpOptions {
  MilpSolver solver = MilpSolver::cbc;
  std::int64_t nodes =
      std::numeric_limits<std::int32_t>::max(); ///< limit, independent of the machine
  bool cuts = true;
  bool heuristics = true;
  /// Solutions of this cost or more are ignored (infinite: none). If no solution is below it, the
  /// status is infeasible and the bound is the cutoff.
  double cutoff = kUnbounded;
  /// Acceptable gap, as Certificate::gap: the status is then `feasible`, or `optimal` at gap 0.
  double gap = 0;
  // The rest is only for branch and cut.
  std::int64_t patience =
      std::numeric_limits<std::int64_t>::max(); ///< maximum nodes after a solution
  double step = 0; ///< all costs of solutions are multiples of it; 0 if unknown
};

/// Mixed integer program: minimise costs * x with lower <= x <= upper and rows.
class MilpModel {
public:
  /// Adds a variable and returns its index. Bounds may be infinite.
  std::uint32_t add_variable(double lower, double upper, double cost, bool integer);
  std::uint32_t add_binary(double cost) { return add_variable(0, 1, cost, true); }
  /// Adds a row and returns its index.
  std::uint32_t add_row(std::span<const LinearTerm> terms, double lower, double upper);
  /// Adds rows that solutions rarely violate. Branch and cut adds them to its programs once they
  /// are violated.
  void add_pool(std::vector<LinearRow> rows);
  /// Adds a set of columns whose sum branch and cut also branches on.
  void add_sum(std::vector<std::uint32_t> columns) { sums_.push_back(std::move(columns)); }
  /// Sets an initial solution, one value per variable; ignored if it violates a row.
  void set_start(std::vector<double> values) { start_ = std::move(values); }

  std::size_t variables() const { return cost_.size(); }
  std::size_t rows() const { return row_lower_.size(); }

  /// Whether `values` satisfies every row, bound and integrality, to 1e-6 of each row's largest
  /// term.
  bool holds(std::span<const double> values) const;
  double objective(std::span<const double> values) const;

  MilpResult solve(const SearchControl& control, const MilpOptions& options = {}) const;

  /// Callback for lazy rows. It receives each solution found and returns rows that it violates, or
  /// none. They are added to the model, which is solved again, at most `rounds` times. The bounds
  /// of every round are valid.
  using BrokenRows = std::function<std::vector<LinearRow>(std::span<const double> values)>;
  MilpResult solve_lazily(const SearchControl& control, const MilpOptions& options,
                          const BrokenRows& broken, int rounds = 1000);

private:
  friend class CbcRun;
  MilpResult branch_and_cut(const SearchControl& control, const MilpOptions& options) const;

  std::vector<double> lower_, upper_, cost_;
  std::vector<char> integer_;
  std::vector<std::size_t> row_start_ = {0};
  std::vector<LinearTerm> terms_;
  std::vector<double> row_lower_, row_upper_;
  std::vector<LinearRow> pool_;
  std::vector<std::vector<std::uint32_t>> sums_;
  std::vector<double> start_;
};

enum class LpStatus : std::uint8_t {
  optimal,
  infeasible,
  unbounded,
  interrupted, ///< by the control
  limit,       ///< iteration limit or numerical trouble
};

/// Linear program for repeated solves: rows and columns are added, bounds and costs change, and
/// each solve starts from the last basis.
class LinearProgram {
public:
  LinearProgram();
  ~LinearProgram();
  LinearProgram(LinearProgram&&) noexcept;
  LinearProgram& operator=(LinearProgram&&) noexcept;

  /// Adds a variable and returns its index. Cheap, as the next solve passes all new ones to the
  /// solver at once.
  std::uint32_t add_variable(double lower, double upper, double cost);
  std::uint32_t add_row(std::span<const LinearTerm> terms, double lower, double upper);
  /// Adds a variable that occurs in existing rows; LinearTerm::variable is the row here.
  std::uint32_t add_column(double lower, double upper, double cost,
                           std::span<const LinearTerm> in_rows);
  void set_bounds(std::uint32_t variable, double lower, double upper);
  void set_row_bounds(std::uint32_t row, double lower, double upper);
  /// Removes rows (non-binding cuts); the indices of later rows shift down.
  void remove_rows(std::span<const std::uint32_t> rows);

  std::size_t variables() const;
  std::size_t rows() const;

  /// Solves with at most `iterations` of the simplex method.
  LpStatus solve(const SearchControl& control,
                 std::int64_t iterations = std::numeric_limits<std::int32_t>::max());

  /// Objective of the last solve. The results of a solve are valid until the next change.
  double objective() const;
  std::span<const double> values() const;
  std::span<const double> duals() const;         ///< per row: cost per unit of its bound
  std::span<const double> reduced_costs() const; ///< cost minus duals * column

  /// Basis from which the next solve starts, for a later set_basis(); valid until rows or columns
  /// are added.
  std::vector<unsigned char> basis() const;
  void set_basis(const std::vector<unsigned char>& basis);

  /// Rigorous lower bound from the duals, computed from the data with rounding errors subtracted
  /// (Neumaier, Shcherbina 2004). It is -infinity if an unbounded variable has a reduced cost of
  /// the wrong sign, so variables should have finite bounds.
  double safe_bound() const;

private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Makes the model stop, and set `stopped`, once the control is interrupted. Both must outlive its
/// runs.
void stop_with(ClpSimplex& model, const SearchControl& control, bool& stopped);

} // namespace monet
