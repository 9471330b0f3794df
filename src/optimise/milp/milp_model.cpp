// MilpModel, the wrapper of CBC for mixed integer programs; fusion, recomputation and bounds solve
// with it.
#include "optimise/milp/milp_model.hpp"

#include "optimise/milp/binary_search.hpp"

#include "monet/base/errors.hpp"

#include <CbcModel.hpp>
// CBC headers that require the model's header first.
#include <CbcCutGenerator.hpp>
#include <CbcEventHandler.hpp>
#include <CbcHeuristic.hpp>
#include <CbcHeuristicDiveCoefficient.hpp>
#include <CbcHeuristicFPump.hpp>
#include <CbcHeuristicRINS.hpp>
#include <CglClique.hpp>
#include <CglGomory.hpp>
#include <CglKnapsackCover.hpp>
#include <CglMixedIntegerRounding2.hpp>
#include <CglZeroHalf.hpp>
#include <OsiClpSolverInterface.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>
#include <utility>

namespace monet {

namespace {

constexpr double kFeasible = 1e-6; // row tolerance, relative to its largest term

/// Largest power of two that is at most |value|, for scaling without rounding.
double power_of_two(double value) {
  return value == 0 ? 1.0 : std::exp2(std::ilogb(value));
}

/// Stops branch and bound, and records the bound while it is valid: a stopped search treats
/// unsolved nodes as infeasible.
class NodeEvents final : public CbcEventHandler {
public:
  struct NodeProgress {
    const CbcModel* main = nullptr; // heuristics run separate searches
    double bound = -kUnbounded;
    bool stopped = false;
  };
  NodeEvents(const SearchControl& control, NodeProgress& seen,
             const std::function<void(const CbcModel&)>& tell)
      : control_(&control), seen_(&seen), tell_(&tell) {}
  NodeEvents(const NodeEvents&) = default;
  NodeEvents& operator=(const NodeEvents&) = default;

  CbcAction event(CbcEvent which) override {
    if (!seen_->stopped)
      seen_->stopped = control_->interrupted();
    if (seen_->stopped)
      return stop;
    if (which == node && getModel() == seen_->main) {
      seen_->bound = std::max(seen_->bound, getModel()->getBestPossibleObjValue());
      (*tell_)(*getModel());
    }
    return noAction;
  }
  CbcEventHandler* clone() const override { return new NodeEvents(*this); }

private:
  const SearchControl* control_;
  NodeProgress* seen_;
  const std::function<void(const CbcModel&)>* tell_;
};

void add_cuts(CbcModel& model) {
  constexpr int adaptive = -98; // while they improve the bound
  // Probing, flow covers and two-step rounding are omitted. In CBC 2.10.8 they cut off optima of
  // one random program in hundreds, hundreds and ten thousands respectively.
  CglGomory gomory;
  gomory.setLimitAtRoot(1000);
  gomory.setLimit(50);
  model.addCutGenerator(&gomory, adaptive, "gomory");
  CglKnapsackCover knapsack;
  model.addCutGenerator(&knapsack, adaptive, "knapsack");
  CglClique clique;
  clique.setStarCliqueReport(false);
  clique.setRowCliqueReport(false);
  clique.setMinViolation(0.1);
  model.addCutGenerator(&clique, adaptive, "clique");
  CglMixedIntegerRounding2 rounding(1, true, 1);
  model.addCutGenerator(&rounding, adaptive, "mixed integer rounding");
  CglZeroHalf zero_half;
  model.addCutGenerator(&zero_half, adaptive, "zero half");
  for (int i = 0; i < model.numberCutGenerators(); ++i)
    model.cutGenerator(i)->setTiming(false); // results must not depend on the time
  const int columns = model.getNumCols();
  model.setMaximumCutPassesAtRoot(columns < 500 ? -100 : columns < 5000 ? 100 : 50);
  model.setMaximumCutPasses(10);
}

void add_heuristics(CbcModel& model) {
  CbcRounding rounding(model);
  model.addHeuristic(&rounding, "rounding");
  CbcHeuristicFPump pump(model);
  pump.setMaximumPasses(20);
  pump.setMaximumRetries(1);
  model.addHeuristic(&pump, "feasibility pump");
  CbcHeuristicDiveCoefficient dive(model);
  model.addHeuristic(&dive, "diving");
  CbcHeuristicRINS neighbourhood(model);
  neighbourhood.setHowOften(100);
  model.addHeuristic(&neighbourhood, "neighbourhood");
}

} // namespace

/// A single branch-and-bound run over a scaled model.
class CbcRun {
public:
  CbcRun(const MilpModel& model, const SearchControl& control, const MilpOptions& options)
      : model_(model), control_(control), options_(options) {}

  MilpResult run() {
    MilpResult result;
    read_scales();
    if (model_.variables() == 0)
      return trivial();
    if (model_.holds(model_.start_) && model_.objective(model_.start_) < options_.cutoff)
      take(result, model_.start_);
    attempt(result);
    close(result);
    return result;
  }

private:
  void read_scales() {
    double largest = 0;
    bool integral = true;
    for (std::size_t j = 0; j < model_.variables(); ++j) {
      const double cost = std::abs(model_.cost_[j]);
      largest = std::max(largest, cost);
      if (cost == 0)
        continue;
      integral = integral && model_.integer_[j] != 0 && cost == std::floor(cost) && cost < 0x1p53;
      if (integral) {
        double a = cost;
        for (double b = step_; b > 0;)
          a = std::exchange(b, std::fmod(a, b));
        step_ = a;
      }
    }
    if (!integral)
      step_ = 0;
    scale_ = 0x1p10 / power_of_two(largest); // CBC's tolerances are absolute
  }

  MilpResult trivial() const {
    MilpResult result;
    const bool holds = model_.holds({});
    result.status = holds ? MilpStatus::optimal : MilpStatus::infeasible;
    result.objective = holds ? 0 : kUnbounded;
    result.bound = result.objective;
    return result;
  }

  /// Keeps `values` if they are the best so far.
  void take(MilpResult& result, std::vector<double> values) const {
    for (std::size_t j = 0; j < values.size(); ++j)
      if (model_.integer_[j] != 0)
        values[j] = std::round(values[j]);
    const double objective = model_.objective(values);
    if (!result.values.empty() && objective >= result.objective)
      return;
    result.objective = objective;
    result.values = std::move(values);
  }

  void load(OsiClpSolverInterface& solver) const {
    std::vector<int> row, column;
    std::vector<double> value, lower, upper;
    for (std::size_t i = 0; i < model_.rows(); ++i) {
      const bool empty = model_.row_start_[i] == model_.row_start_[i + 1];
      const bool free = std::isinf(model_.row_lower_[i]) && std::isinf(model_.row_upper_[i]);
      if (free || (empty && model_.row_lower_[i] <= 0 && model_.row_upper_[i] >= 0))
        continue; // Osi's hot starts have aborted on programs with such rows
      double largest = 0;
      for (std::size_t k = model_.row_start_[i]; k < model_.row_start_[i + 1]; ++k)
        largest = std::max(largest, std::abs(model_.terms_[k].coefficient));
      const double scale = 1 / power_of_two(largest);
      for (std::size_t k = model_.row_start_[i]; k < model_.row_start_[i + 1]; ++k) {
        row.push_back(static_cast<int>(lower.size()));
        column.push_back(static_cast<int>(model_.terms_[k].variable));
        value.push_back(model_.terms_[k].coefficient * scale);
      }
      lower.push_back(model_.row_lower_[i] * scale);
      upper.push_back(model_.row_upper_[i] * scale);
    }
    const auto variables = static_cast<int>(model_.variables());
    CoinPackedMatrix matrix(true, row.data(), column.data(), value.data(),
                            static_cast<CoinBigIndex>(row.size()));
    matrix.setDimensions(static_cast<int>(lower.size()), variables);
    std::vector<double> cost = model_.cost_;
    for (double& c : cost)
      c *= scale_;
    solver.messageHandler()->setLogLevel(0);
    solver.getModelPtr()->setLogLevel(0);
    solver.setHintParam(OsiDoReducePrint, true, OsiHintTry);
    solver.loadProblem(matrix, model_.lower_.data(), model_.upper_.data(), cost.data(),
                       lower.data(), upper.data());
    for (int j = 0; j < variables; ++j)
      if (model_.integer_[static_cast<std::size_t>(j)] != 0)
        solver.setInteger(j);
  }

  /// Cost below which a solution is of interest.
  double cutoff(const MilpResult& result) const {
    return std::min(options_.cutoff, result.objective);
  }

  void attempt(MilpResult& result) {
    doubtful_ = complete_ = false;
    OsiClpSolverInterface solver;
    load(solver);
    bool stopped = false;
    stop_with(*solver.getModelPtr(), control_, stopped);
    solver.getModelPtr()->dual();
    if (!stopped && solver.getModelPtr()->status() == 2)
      solver.getModelPtr()->primal();
    if (stopped || control_.interrupted()) {
      result.interrupted = true;
      return;
    }
    if (solver.getModelPtr()->status() == 1) {
      complete_ = true;
      return;
    }
    if (solver.getModelPtr()->status() != 0)
      return; // unbounded or numerical trouble: nothing is concluded
    solver.resolve();
    if (solver.isProvenOptimal())
      result.bound = std::max(result.bound, solver.getObjValue() / scale_);
    branch(result, solver);
  }

  void set_up(CbcModel& search, const MilpResult& result) const {
    search.messageHandler()->setLogLevel(0);
    search.setLogLevel(0);
    search.solver()->messageHandler()->setLogLevel(0);
    search.setMaximumNodes(static_cast<int>(
        std::min<std::int64_t>(options_.nodes, std::numeric_limits<std::int32_t>::max())));
    // Osi's hot starts, which strong branching uses, abort on some programs of a few columns.
    const bool strong = model_.variables() >= 20;
    search.setNumberStrong(strong ? 5 : 0);
    search.setNumberBeforeTrust(strong ? 10 : 0);
    search.setAllowableGap(0);
    // With a known step, a better solution is better by at least one step.
    const double increment = step_ > 0 ? 0.999 * step_ * scale_ : 1e-6;
    search.setCutoffIncrement(increment);
    if (options_.gap > 0)
      search.setAllowableFractionGap(options_.gap);
    if (options_.cuts)
      add_cuts(search);
    if (options_.heuristics)
      add_heuristics(search);
    // The cutoff may not be a possible cost.
    const double limit = rounded_up(cutoff(result));
    if (limit < kUnbounded)
      search.setCutoff(limit * scale_ - increment);
  }

  void branch(MilpResult& result, OsiSolverInterface& solver) {
    CbcModel search(solver);
    set_up(search, result);
    NodeEvents::NodeProgress seen;
    seen.main = &search;
    const std::function<void(const CbcModel&)> tell = [&](const CbcModel& at) {
      const double best = at.getSolutionCount() > 0 ? at.getObjValue() / scale_ : result.objective;
      control_.tell(
          {"milp", at.getNodeCount(), 0, best, std::max(result.bound, seen.bound / scale_)});
    };
    NodeEvents events(control_, seen, tell);
    search.passInEventHandler(&events);
    search.initialSolve();
    search.branchAndBound();
    result.nodes += search.getNodeCount();
    result.interrupted = seen.stopped || control_.interrupted();
    complete_ = !result.interrupted && search.status() == 0;
    double bound =
        seen.stopped || result.interrupted ? seen.bound : search.getBestPossibleObjValue();
    if (complete_ && options_.gap == 0)
      bound = kUnbounded; // bound on solutions below the cutoff
    if (std::isfinite(bound) && std::abs(bound) < 1e49)
      result.bound = std::max(result.bound, bound / scale_);
    if (search.bestSolution() == nullptr)
      return;
    const double* found = search.bestSolution();
    std::vector<double> values(found, found + search.getNumCols());
    MilpResult kept = result;
    take(kept, std::move(values));
    if (model_.holds(kept.values))
      result = std::move(kept);
    else
      doubtful_ = true;
  }

  /// Rounds a bound up to the next possible cost.
  double rounded_up(double bound) const {
    if (step_ <= 0 || !std::isfinite(bound))
      return bound;
    const double steps = bound / step_;
    return step_ * std::ceil(steps - 1e-6 - 1e-9 * std::abs(steps));
  }

  /// Sets the result's bound and status.
  void close(MilpResult& result) const {
    const double limit = cutoff(result);
    result.bound = std::min(rounded_up(result.bound), limit);
    const bool searched = complete_ && !doubtful_ && !result.interrupted;
    if (searched && options_.gap == 0)
      result.bound = limit;
    else if (searched && limit < kUnbounded) // the search ends when the gap is this small
      result.bound = std::max(
          result.bound, std::min(limit, rounded_up(limit - 2 * options_.gap * std::abs(limit))));
    if (result.values.empty())
      result.status = searched ? MilpStatus::infeasible : MilpStatus::unknown;
    else
      result.status = result.bound >= result.objective ? MilpStatus::optimal : MilpStatus::feasible;
  }

  const MilpModel& model_;
  const SearchControl& control_;
  const MilpOptions& options_;
  double scale_ = 1;      // scale of the costs
  double step_ = 0;       // all costs are multiples of it (0 if unknown)
  bool doubtful_ = false; // the solver returned an invalid solution
  bool complete_ = false; // the search was not stopped
};

std::uint32_t MilpModel::add_variable(double lower, double upper, double cost, bool integer) {
  internal_check(!(lower > upper) && std::isfinite(cost), "milp: bounds or cost of a variable");
  lower_.push_back(integer ? std::ceil(lower) : lower);
  upper_.push_back(integer ? std::floor(upper) : upper);
  cost_.push_back(cost);
  integer_.push_back(integer ? 1 : 0);
  return static_cast<std::uint32_t>(cost_.size() - 1);
}

std::uint32_t MilpModel::add_row(std::span<const LinearTerm> terms, double lower, double upper) {
  for (const LinearTerm& term : terms) {
    internal_check(term.variable < cost_.size() && std::isfinite(term.coefficient),
                   "milp: term of a row");
    if (term.coefficient != 0)
      terms_.push_back(term);
  }
  row_start_.push_back(terms_.size());
  row_lower_.push_back(lower);
  row_upper_.push_back(upper);
  return static_cast<std::uint32_t>(row_lower_.size() - 1);
}

bool MilpModel::holds(std::span<const double> values) const {
  if (values.size() != variables())
    return false;
  for (std::size_t j = 0; j < values.size(); ++j) {
    const double x = values[j];
    const double room = kFeasible * std::max(1.0, std::abs(x));
    if (!(x >= lower_[j] - room && x <= upper_[j] + room))
      return false;
    if (integer_[j] != 0 && std::abs(x - std::round(x)) > kFeasible)
      return false;
  }
  for (std::size_t i = 0; i < rows(); ++i) {
    double sum = 0;
    double largest = 0;
    for (std::size_t k = row_start_[i]; k < row_start_[i + 1]; ++k) {
      sum += terms_[k].coefficient * values[terms_[k].variable];
      largest = std::max(largest, std::abs(terms_[k].coefficient));
    }
    const double room = kFeasible * std::max(largest, 1e-300);
    if (!(sum >= row_lower_[i] - room && sum <= row_upper_[i] + room))
      return false;
  }
  return true;
}

double MilpModel::objective(std::span<const double> values) const {
  double sum = 0;
  for (std::size_t j = 0; j < values.size(); ++j)
    sum += cost_[j] * values[j];
  return sum;
}

void MilpModel::add_pool(std::vector<LinearRow> rows) {
  std::ranges::move(rows, std::back_inserter(pool_));
}

MilpResult MilpModel::branch_and_cut(const SearchControl& control,
                                     const MilpOptions& options) const {
  BinaryProgram program{lower_, upper_, cost_, {}, pool_, sums_};
  for (std::size_t j = 0; j < variables(); ++j)
    internal_check(integer_[j] != 0 && lower_[j] >= 0 && upper_[j] <= 1,
                   "milp: branch and cut of a column that is not binary");
  for (std::size_t i = 0; i < rows(); ++i) {
    const auto terms = std::span(terms_).subspan(row_start_[i], row_start_[i + 1] - row_start_[i]);
    program.rows.push_back({{terms.begin(), terms.end()}, row_lower_[i], row_upper_[i]});
  }
  return search_binary(program, control,
                       {options.nodes, options.patience, options.cutoff, options.step});
}

MilpResult MilpModel::solve(const SearchControl& control, const MilpOptions& options) const {
  if (options.solver == MilpSolver::branch_and_cut)
    return branch_and_cut(control, options);
  if (pool_.empty())
    return CbcRun(*this, control, options).run();
  MilpModel all = *this;
  for (const LinearRow& row : std::exchange(all.pool_, {}))
    all.add_row(row.terms, row.lower, row.upper);
  return CbcRun(all, control, options).run();
}

MilpResult MilpModel::solve_lazily(const SearchControl& control, const MilpOptions& options,
                                   const BrokenRows& broken, int rounds) {
  double bound = -kUnbounded;
  std::int64_t nodes = 0;
  MilpResult result;
  for (int round = 0; round < rounds; ++round) {
    result = solve(control, options);
    nodes += result.nodes;
    bound = std::max(bound, result.bound);
    result.nodes = nodes;
    result.bound = bound;
    if (result.values.empty())
      return result;
    const std::vector<LinearRow> rows = broken(result.values);
    if (rows.empty())
      return result;
    for (const LinearRow& row : rows)
      add_row(row.terms, row.lower, row.upper);
    if (result.interrupted)
      break;
  }
  result.values.clear(); // solution of a model with missing rows
  result.objective = kUnbounded;
  result.status = MilpStatus::unknown;
  return result;
}

} // namespace monet
