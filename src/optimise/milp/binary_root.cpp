// Tightens the root of a binary program with cuts and fixed columns before search_binary()
// branches.
#include "optimise/milp/binary_search.hpp"
#include "optimise/milp/rounding_cuts.hpp"

#include <CglGomory.hpp>
#include <OsiClpSolverInterface.hpp>
#include <OsiCuts.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

namespace monet {

namespace {

constexpr int kRounds = 60;
constexpr int kStalled = 4;            // maximum rounds without progress
constexpr std::size_t kCuts = 300;     // maximum cuts of one round
constexpr double kProgress = 2e-3;     // progress per round, relative to the gap
constexpr int kFixedShare = 100;       // one fixed column per this number of columns is progress
constexpr double kEffective = 1e-4;    // minimum distance of a cut from the point
constexpr int kDense = 1000;           // maximum terms of a cut
constexpr double kSafe = 1e-6;         // tolerance for rounding errors, relative to the limit
constexpr std::size_t kRoundings = 60; // maximum rows of the tableau per round
constexpr double kParallel = 0.5;      // maximum cosine of the angle between cuts of a round
constexpr std::size_t kLong = 400;     // maximum terms of rows searched for covers
constexpr double kDynamic = 1e6;       // maximum ratio of coefficients

class Root {
public:
  Root(BinaryProgram& program, double limit, const SearchControl& control)
      : program_(program), limit_(limit), control_(control) {
    auto gomory = std::make_unique<CglGomory>();
    gomory->setLimitAtRoot(kDense);
    add(std::move(gomory));
  }

  TightRoot run() {
    load();
    bool stopped = false;
    stop_with(*solver_.getModelPtr(), control_, stopped);
    solver_.resolve();
    TightRoot result;
    result.exhausted = !rounds() && !stopped && !control_.interrupted();
    if (!result.exhausted)
      take(result);
    return result;
  }

private:
  template <class Generator>
  void add(std::unique_ptr<Generator> generator) {
    generators_.push_back(std::move(generator));
  }

  void load() {
    std::vector<int> row, column;
    std::vector<double> value, lower, upper;
    for (std::size_t i = 0; i < program_.rows.size(); ++i) {
      for (const LinearTerm& term : program_.rows[i].terms) {
        row.push_back(static_cast<int>(i));
        column.push_back(static_cast<int>(term.variable));
        value.push_back(term.coefficient);
      }
      lower.push_back(program_.rows[i].lower);
      upper.push_back(program_.rows[i].upper);
    }
    CoinPackedMatrix matrix(true, row.data(), column.data(), value.data(),
                            static_cast<CoinBigIndex>(row.size()));
    own_rows_ = static_cast<int>(program_.rows.size());
    matrix.setDimensions(own_rows_, static_cast<int>(program_.cost.size()));
    solver_.messageHandler()->setLogLevel(0);
    solver_.getModelPtr()->setLogLevel(0);
    solver_.setHintParam(OsiDoReducePrint, true, OsiHintTry);
    solver_.loadProblem(matrix, program_.lower.data(), program_.upper.data(), program_.cost.data(),
                        lower.data(), upper.data());
    for (int j = 0; j < solver_.getNumCols(); ++j)
      solver_.setInteger(j);
  }

  /// Runs rounds of cuts; returns false if no solution is below the limit.
  bool rounds() {
    int stalled = 0;
    for (int round = 0; round < kRounds && stalled < kStalled; ++round) {
      if (!feasible())
        return false;
      if (!solver_.isProvenOptimal() || control_.interrupted())
        return true; // after numerical trouble nothing is concluded
      const double before = solver_.getObjValue();
      const int fixed = fix();
      const bool pooled = add_pool();
      if (!separate(round) && fixed == 0 && !pooled)
        return true;
      solver_.resolve();
      if (!feasible())
        return false;
      const double gap = std::min(limit_ - before, 1 + std::abs(before));
      const bool progress = solver_.getObjValue() > before + kProgress * gap ||
                            fixed * kFixedShare > solver_.getNumCols();
      stalled = progress ? 0 : stalled + 1;
      purge();
    }
    fix();
    return true;
  }

  bool feasible() const {
    if (solver_.isProvenPrimalInfeasible())
      return false;
    return !(solver_.isProvenOptimal() && solver_.getObjValue() > limit_ + room());
  }
  double room() const { return kSafe * std::max(1.0, std::abs(limit_)); }

  /// Fixes columns by reduced costs and returns their number. Uses the duals of rows alone, any of
  /// which yield a valid bound, so results do not depend on the solver's accuracy.
  int fix() {
    if (!(limit_ < 1e30))
      return 0;
    const auto columns = static_cast<std::size_t>(solver_.getNumCols());
    std::vector<double> cost(solver_.getObjCoefficients(), solver_.getObjCoefficients() + columns);
    double bound = 0;
    const CoinPackedMatrix& rows = *solver_.getMatrixByRow();
    for (int r = 0; r < solver_.getNumRows(); ++r) {
      const double price = solver_.getRowPrice()[r];
      const double side = price > 0 ? solver_.getRowLower()[r] : solver_.getRowUpper()[r];
      if (price == 0 || std::abs(side) > 1e30)
        continue;
      bound += price * side;
      for (CoinBigIndex k = rows.getVectorFirst(r); k < rows.getVectorLast(r); ++k)
        cost[static_cast<std::size_t>(rows.getIndices()[k])] -= price * rows.getElements()[k];
    }
    const std::vector<double> lower(solver_.getColLower(), solver_.getColLower() + columns);
    const std::vector<double> upper(solver_.getColUpper(), solver_.getColUpper() + columns);
    for (std::size_t j = 0; j < columns; ++j)
      if (cost[j] != 0)
        bound += cost[j] * (cost[j] > 0 ? lower[j] : upper[j]);
    int fixed = 0;
    for (std::size_t j = 0; j < columns; ++j) {
      const auto column = static_cast<int>(j);
      if (upper[j] == lower[j] || bound + std::abs(cost[j]) <= limit_ + room())
        continue;
      if (cost[j] > 0)
        solver_.setColUpper(column, lower[j]);
      else
        solver_.setColLower(column, upper[j]);
      ++fixed;
    }
    return fixed;
  }

  /// Adds rows of the pool that the solution violates to the program.
  bool add_pool() {
    const std::span<const double> x(solver_.getColSolution(), program_.cost.size());
    std::vector<LinearRow> broken = take_broken(program_.pool, x);
    if (broken.empty())
      return false;
    for (LinearRow& row : broken) { // added after the cuts, treated as cuts

      CoinPackedVector terms;
      for (const LinearTerm& term : row.terms)
        terms.insert(static_cast<int>(term.variable), term.coefficient);
      solver_.addRow(terms, row.lower, row.upper);
      pooled_.push_back(std::move(row));
    }
    return true;
  }

  /// Adds cuts; returns false if none is found.
  bool separate(int round) {
    OsiCuts cuts;
    CglTreeInfo info;
    info.pass = round;
    info.level = 0;
    info.inTree = false;
    info.options = 0;
    info.formulation_rows = own_rows_;
    for (const auto& generator : generators_) {
      if (control_.interrupted())
        return false;
      generator->generateCuts(solver_, cuts, info);
    }
    round_rows(cuts);
    const double* x = solver_.getColSolution();
    std::vector<std::pair<double, int>> ranked;
    for (int i = 0; i < cuts.sizeRowCuts(); ++i)
      if (const double effect = effectiveness(cuts.rowCut(i), x); effect > kEffective)
        ranked.push_back({-effect, i});
    std::ranges::sort(ranked);
    std::vector<const OsiRowCut*> chosen;
    for (const auto& [effect, i] : ranked) {
      const OsiRowCut* cut = cuts.rowCutPtr(i);
      if (chosen.size() < kCuts && differs(*cut, chosen))
        chosen.push_back(cut);
    }
    if (!chosen.empty())
      solver_.applyRowCuts(static_cast<int>(chosen.size()), chosen.data());
    return !chosen.empty();
  }

  /// Whether the cut is not nearly parallel to any of `chosen`.
  bool differs(const OsiRowCut& cut, const std::vector<const OsiRowCut*>& chosen) {
    dense_.resize(program_.cost.size(), 0);
    const CoinPackedVector& row = cut.row();
    double norm = 0;
    for (int k = 0; k < row.getNumElements(); ++k) {
      dense_[static_cast<std::size_t>(row.getIndices()[k])] = row.getElements()[k];
      norm += row.getElements()[k] * row.getElements()[k];
    }
    bool differs = true;
    for (const OsiRowCut* other : chosen) {
      const CoinPackedVector& with = other->row();
      double product = 0;
      double size = 0;
      for (int k = 0; k < with.getNumElements(); ++k) {
        product += with.getElements()[k] * dense_[static_cast<std::size_t>(with.getIndices()[k])];
        size += with.getElements()[k] * with.getElements()[k];
      }
      if (std::abs(product) > kParallel * std::sqrt(norm * size)) {
        differs = false;
        break;
      }
    }
    for (int k = 0; k < row.getNumElements(); ++k)
      dense_[static_cast<std::size_t>(row.getIndices()[k])] = 0;
    return differs;
  }

  static void insert(OsiCuts& cuts, const LinearRow& cut) {
    std::vector<int> index;
    std::vector<double> value;
    for (const LinearTerm& term : cut.terms) {
      index.push_back(static_cast<int>(term.variable));
      value.push_back(term.coefficient);
    }
    OsiRowCut row;
    row.setRow(static_cast<int>(index.size()), index.data(), value.data(), false);
    row.setLb(-COIN_DBL_MAX);
    row.setUb(cut.upper);
    cuts.insert(row);
  }

  /// The solver's rows and columns with their solution.
  RoundingRows solver_rows() const {
    RoundingRows data;
    const auto columns = program_.cost.size();
    const CoinPackedMatrix& matrix = *solver_.getMatrixByRow();
    for (int r = 0; r < solver_.getNumRows(); ++r) {
      LinearRow row;
      bool whole = true;
      for (CoinBigIndex k = matrix.getVectorFirst(r); k < matrix.getVectorLast(r); ++k) {
        row.terms.push_back(
            {static_cast<std::uint32_t>(matrix.getIndices()[k]), matrix.getElements()[k]});
        whole = whole && matrix.getElements()[k] == std::round(matrix.getElements()[k]);
      }
      row.lower = solver_.getRowLower()[r] < -1e30 ? -kUnbounded : solver_.getRowLower()[r];
      row.upper = solver_.getRowUpper()[r] > 1e30 ? kUnbounded : solver_.getRowUpper()[r];
      for (const double side : {row.lower, row.upper})
        whole = whole && (std::isinf(side) || side == std::round(side));
      data.rows.push_back(std::move(row));
      data.whole.push_back(whole ? 1 : 0);
    }
    data.lower.assign(solver_.getColLower(), solver_.getColLower() + columns);
    data.upper.assign(solver_.getColUpper(), solver_.getColUpper() + columns);
    data.x.assign(solver_.getColSolution(), solver_.getColSolution() + columns);
    for (const LinearRow& row : data.rows) {
      double sum = 0;
      for (const LinearTerm& term : row.terms)
        sum += term.coefficient * data.x[term.variable];
      data.activity.push_back(sum);
    }
    return data;
  }

  /// Adds cover cuts of rows, and rounding cuts of the simplex tableau's rows of fractional
  /// columns.
  void round_rows(OsiCuts& cuts) {
    if (solver_.getNumRows() == 0)
      return;
    const RoundingRows data = solver_rows();
    for (std::uint32_t r = 0; r < data.rows.size(); ++r)
      for (const bool up : {true, false}) {
        LinearRow cut;
        if (data.rows[r].terms.size() <= kLong && cover_cut(data, r, up, kEffective, cut))
          insert(cuts, cut);
      }
    std::vector<int> basics(data.rows.size());
    solver_.enableFactorization();
    solver_.getBasics(basics.data());
    std::vector<std::pair<double, int>> fractional;
    for (std::size_t r = 0; r < basics.size(); ++r)
      if (basics[r] < static_cast<int>(data.x.size())) {
        const double x = data.x[static_cast<std::size_t>(basics[r])];
        if (const double off = std::abs(x - std::round(x)); off > 1e-4)
          fractional.emplace_back(-off, static_cast<int>(r));
      }
    std::ranges::sort(fractional);
    if (fractional.size() > kRoundings)
      fractional.resize(kRoundings);
    std::vector<double> z(data.rows.size());
    for (const auto& [off, r] : fractional) {
      if (control_.interrupted())
        break;
      solver_.getBInvRow(r, z.data());
      LinearRow cut;
      double broken = 0;
      if (rounding_cut(data, z, kEffective, cut, broken))
        insert(cuts, cut);
    }
    solver_.disableFactorization();
  }

  static double effectiveness(const OsiRowCut& cut, const double* x) {
    const CoinPackedVector& row = cut.row();
    double sum = 0, norm = 0, largest = 0, smallest = 1e300;
    for (int k = 0; k < row.getNumElements(); ++k) {
      const double a = row.getElements()[k];
      sum += a * x[row.getIndices()[k]];
      norm += a * a;
      largest = std::max(largest, std::abs(a));
      smallest = std::min(smallest, std::abs(a));
    }
    if (row.getNumElements() == 0 || row.getNumElements() > kDense ||
        largest > kDynamic * smallest || norm <= 0)
      return 0;
    const double violation = std::max(cut.lb() - sum, sum - cut.ub());
    return violation / std::sqrt(norm);
  }

  /// Removes cuts that do not bind.
  void purge() {
    const CoinWarmStartBasis* basis = solver_.getPointerToWarmStart();
    std::vector<int> loose;
    if (basis == nullptr)
      return;
    for (int r = own_rows_; r < solver_.getNumRows(); ++r)
      if (basis->getArtifStatus(r) == CoinWarmStartBasis::basic)
        loose.push_back(r);
    if (loose.empty())
      return;
    solver_.deleteRows(static_cast<int>(loose.size()), loose.data());
    solver_.resolve();
  }

  /// Stores the bounds and cuts in the program; non-binding rows of the pool return to it.
  void take(TightRoot& result) {
    const auto columns = program_.cost.size();
    program_.lower.assign(solver_.getColLower(), solver_.getColLower() + columns);
    program_.upper.assign(solver_.getColUpper(), solver_.getColUpper() + columns);
    for (LinearRow& row : pooled_)
      program_.pool.push_back(std::move(row));
    const CoinPackedMatrix& rows = *solver_.getMatrixByRow();
    for (int r = own_rows_; r < solver_.getNumRows(); ++r) {
      LinearRow cut;
      for (CoinBigIndex k = rows.getVectorFirst(r); k < rows.getVectorLast(r); ++k)
        cut.terms.push_back(
            {static_cast<std::uint32_t>(rows.getIndices()[k]), rows.getElements()[k]});
      cut.lower = solver_.getRowLower()[r] < -1e30 ? -kUnbounded : solver_.getRowLower()[r];
      cut.upper = solver_.getRowUpper()[r] > 1e30 ? kUnbounded : solver_.getRowUpper()[r];
      result.cuts.push_back(std::move(cut));
    }
  }

  BinaryProgram& program_;
  double limit_;
  const SearchControl& control_;
  int own_rows_ = 0;
  OsiClpSolverInterface solver_;
  std::vector<LinearRow> pooled_;
  std::vector<double> dense_;
  std::vector<std::unique_ptr<CglCutGenerator>> generators_;
};

} // namespace

std::vector<LinearRow> take_broken(std::vector<LinearRow>& pool, std::span<const double> x) {
  constexpr double kBroken = 1e-6; // tolerance relative to a row's largest term
  std::vector<LinearRow> broken;
  std::size_t kept = 0;
  for (LinearRow& row : pool) {
    double sum = 0;
    double largest = 0;
    for (const LinearTerm& term : row.terms) {
      sum += term.coefficient * x[term.variable];
      largest = std::max(largest, std::abs(term.coefficient));
    }
    if (sum > row.upper + kBroken * largest || sum < row.lower - kBroken * largest) {
      broken.push_back(std::move(row));
      continue;
    }
    if (&pool[kept] != &row)
      pool[kept] = std::move(row);
    ++kept;
  }
  pool.resize(kept);
  return broken;
}

TightRoot tighten_root(BinaryProgram& program, double limit, const SearchControl& control) {
  return Root(program, limit, control).run();
}

} // namespace monet
