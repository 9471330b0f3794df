// LinearProgram, the wrapper of Clp with warm starts and safe bounds; bounds and branch and cut
// solve with it.
#include "optimise/milp/milp_model.hpp"

#include "monet/base/errors.hpp"

#include <ClpEventHandler.hpp>
#include <ClpSimplex.hpp>
#include <CoinPackedMatrix.hpp>

#include <algorithm>
#include <cmath>

namespace monet {

namespace {

/// Rows or columns not yet passed to the solver, one after another.
struct Pending {
  std::vector<CoinBigIndex> start = {0};
  std::vector<int> index;
  std::vector<double> value, lower, upper, cost;

  std::size_t count() const { return lower.size(); }
  void add(std::span<const LinearTerm> terms, double from, double to, double price) {
    for (const LinearTerm& term : terms) {
      index.push_back(static_cast<int>(term.variable));
      value.push_back(term.coefficient);
    }
    start.push_back(static_cast<CoinBigIndex>(index.size()));
    lower.push_back(from);
    upper.push_back(to);
    cost.push_back(price);
  }
  void clear() { *this = Pending(); }
};

/// Relative rounding error of doubles, with a margin for sums.
constexpr double kRounding = 2.3e-16;

/// Event handler that stops Clp. Clp copies handlers, so copies share the pointed-to state.
class StopEvents final : public ClpEventHandler {
public:
  StopEvents(const SearchControl& control, bool& stopped)
      : control_(&control), stopped_(&stopped) {}

  int event(Event which) override {
    if (which != endOfIteration && which != endOfFactorization)
      return -1;
    if (!*stopped_)
      *stopped_ = control_->interrupted();
    return *stopped_ ? 5 : -1;
  }
  ClpEventHandler* clone() const override { return new StopEvents(*this); }

private:
  const SearchControl* control_;
  bool* stopped_;
};

} // namespace

void stop_with(ClpSimplex& model, const SearchControl& control, bool& stopped) {
  const StopEvents events(control, stopped);
  model.passInEventHandler(&events);
}

struct LinearProgram::State {
  ClpSimplex clp;
  Pending new_rows, new_columns; // never both: one is flushed before the other begins
  bool primal_start = false;     // the last basis is still primal feasible

  void flush() {
    if (new_columns.count() > 0)
      clp.addColumns(static_cast<int>(new_columns.count()), new_columns.lower.data(),
                     new_columns.upper.data(), new_columns.cost.data(), new_columns.start.data(),
                     new_columns.index.data(), new_columns.value.data());
    if (new_rows.count() > 0)
      clp.addRows(static_cast<int>(new_rows.count()), new_rows.lower.data(), new_rows.upper.data(),
                  new_rows.start.data(), new_rows.index.data(), new_rows.value.data());
    new_columns.clear();
    new_rows.clear();
  }
  int run(bool primal) { return primal ? clp.primal(1) : clp.dual(); }
};

LinearProgram::LinearProgram() : state_(std::make_unique<State>()) {
  state_->clp.setLogLevel(0);
}
LinearProgram::~LinearProgram() = default;
LinearProgram::LinearProgram(LinearProgram&&) noexcept = default;
LinearProgram& LinearProgram::operator=(LinearProgram&&) noexcept = default;

std::uint32_t LinearProgram::add_variable(double lower, double upper, double cost) {
  return add_column(lower, upper, cost, {});
}

std::uint32_t LinearProgram::add_column(double lower, double upper, double cost,
                                        std::span<const LinearTerm> in_rows) {
  if (state_->new_rows.count() > 0)
    state_->flush();
  state_->new_columns.add(in_rows, lower, upper, cost);
  return static_cast<std::uint32_t>(variables() - 1);
}

std::uint32_t LinearProgram::add_row(std::span<const LinearTerm> terms, double lower,
                                     double upper) {
  if (state_->new_columns.count() > 0)
    state_->flush();
  state_->new_rows.add(terms, lower, upper, 0);
  state_->primal_start = false;
  return static_cast<std::uint32_t>(rows() - 1);
}

void LinearProgram::set_bounds(std::uint32_t variable, double lower, double upper) {
  state_->flush();
  state_->clp.setColumnBounds(static_cast<int>(variable), lower, upper);
  state_->primal_start = false;
}

void LinearProgram::set_row_bounds(std::uint32_t row, double lower, double upper) {
  state_->flush();
  state_->clp.setRowBounds(static_cast<int>(row), lower, upper);
  state_->primal_start = false;
}

void LinearProgram::remove_rows(std::span<const std::uint32_t> rows) {
  state_->flush();
  const std::vector<int> which(rows.begin(), rows.end());
  state_->clp.deleteRows(static_cast<int>(which.size()), which.data());
  state_->primal_start = false;
}

std::size_t LinearProgram::variables() const {
  return static_cast<std::size_t>(state_->clp.numberColumns()) + state_->new_columns.count();
}

std::size_t LinearProgram::rows() const {
  return static_cast<std::size_t>(state_->clp.numberRows()) + state_->new_rows.count();
}

LpStatus LinearProgram::solve(const SearchControl& control, std::int64_t iterations) {
  State& state = *state_;
  state.flush();
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  state.clp.setMaximumIterations(static_cast<int>(std::min(iterations, most)));
  bool stopped = false;
  stop_with(state.clp, control, stopped);
  const bool primal = state.primal_start;
  int status = state.run(primal);
  // After numerical trouble or an unclear status, the other method continues from this point.
  if (!stopped && (status == 4 || (status == 2 && !primal)))
    status = state.run(!primal);
  const ClpEventHandler none;
  state.clp.passInEventHandler(&none);
  state.primal_start = status == 0;
  if (stopped || status == 5)
    return LpStatus::interrupted;
  switch (status) {
  case 0:
    return LpStatus::optimal;
  case 1:
    return LpStatus::infeasible;
  case 2:
    return LpStatus::unbounded;
  default:
    return LpStatus::limit;
  }
}

double LinearProgram::objective() const {
  return state_->clp.objectiveValue();
}

std::span<const double> LinearProgram::values() const {
  return {state_->clp.primalColumnSolution(),
          static_cast<std::size_t>(state_->clp.numberColumns())};
}

std::span<const double> LinearProgram::duals() const {
  return {state_->clp.dualRowSolution(), static_cast<std::size_t>(state_->clp.numberRows())};
}

std::span<const double> LinearProgram::reduced_costs() const {
  return {state_->clp.dualColumnSolution(), static_cast<std::size_t>(state_->clp.numberColumns())};
}

std::vector<unsigned char> LinearProgram::basis() const {
  state_->flush();
  const auto count = rows() + variables();
  const unsigned char* status = state_->clp.statusArray();
  return status == nullptr ? std::vector<unsigned char>()
                           : std::vector<unsigned char>(status, status + count);
}

void LinearProgram::set_basis(const std::vector<unsigned char>& basis) {
  state_->flush();
  internal_check(basis.size() == rows() + variables(), "linear program: basis of another one");
  state_->clp.copyinStatus(basis.data());
  state_->primal_start = false;
}

double LinearProgram::safe_bound() const {
  std::vector<double> y(duals().begin(), duals().end());
  state_->flush();
  const ClpSimplex& clp = state_->clp;
  const auto rows = static_cast<std::size_t>(clp.numberRows());
  internal_check(y.size() == rows, "linear program: one multiplier per row");
  double sum = 0;
  double magnitude = 0; // sum of magnitudes of all added terms
  const auto add = [&](double term) {
    sum += term;
    magnitude += std::abs(term);
  };
  constexpr double huge = 1e30; // Clp's infinity
  for (std::size_t i = 0; i < rows; ++i) {
    const double side = y[i] > 0 ? clp.rowLower()[i] : clp.rowUpper()[i];
    if (std::abs(side) >= huge || !std::isfinite(y[i]))
      y[i] = 0; // any multiplier is valid
    else
      add(y[i] * side);
  }
  const CoinPackedMatrix& matrix = *clp.matrix();
  for (int j = 0; j < clp.numberColumns(); ++j) {
    double reduced = clp.objective()[j];
    double size = std::abs(reduced);
    const CoinBigIndex first = matrix.getVectorFirst(j);
    const CoinBigIndex last = matrix.getVectorLast(j);
    for (CoinBigIndex k = first; k < last; ++k) {
      const double product =
          y[static_cast<std::size_t>(matrix.getIndices()[k])] * matrix.getElements()[k];
      reduced -= product;
      size += std::abs(product);
    }
    const double error = kRounding * static_cast<double>(last - first + 2) * size;
    const auto at = [&](double d, double bound) { return d == 0 ? 0.0 : d * bound; };
    const double lower = clp.columnLower()[j];
    const double upper = clp.columnUpper()[j];
    if ((reduced - error < 0 && upper >= huge) || (reduced + error > 0 && lower <= -huge))
      return -kUnbounded;
    // The product is concave in the reduced cost, so its minimum is at an end of the error
    // interval.
    const auto least = [&](double d) { return at(d, d > 0 ? lower : upper); };
    add(std::min(least(reduced - error), least(reduced + error)));
  }
  const double terms = static_cast<double>(rows) + clp.numberColumns() + 4;
  return sum - kRounding * terms * magnitude;
}

} // namespace monet
