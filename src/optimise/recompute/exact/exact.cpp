// solve_recompute(): exact recomputation by state search, stage relaxations and integer programs of
// growing resolution; checkpoint and log searches call it.
#include "optimise/milp/milp_model.hpp"
#include "optimise/recompute/exact/model.hpp"
#include "optimise/recompute/exact/stage_relaxation.hpp"
#include "optimise/recompute/exact/state_search.hpp"
#include "optimise/shared/recompute_exact.hpp"
#include "optimise/shared/window_bound.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace monet {

namespace {

constexpr std::int64_t kNodesAfterSolution = 50; // nodes after a solution before stages are refined
constexpr std::size_t kSmall = 3000;             // maximum columns of a small program
constexpr double kFewCosts = 100;                // maximum number of possible costs below the best
constexpr std::size_t kStages = 48;              // initial stages, fewer where these are coarser
constexpr std::int64_t kChainSolves = 60;        // maximum linear programs for chains per program
constexpr std::int64_t kProbeSolves = 400;

/// Stages with similar numbers of operators that have items, coarser before `fine_from`: most
/// recomputation happens after the peak.
std::vector<std::uint32_t> equal_stages(const ReducedRecompute& reduced, std::size_t busy_each,
                                        std::uint32_t fine_from) {
  std::vector<std::uint32_t> ends;
  std::size_t busy = 0;
  const auto count = static_cast<std::uint32_t>(reduced.ops.size());
  for (std::uint32_t t = 0; t + 1 < count; ++t) {
    const ReducedRecompute::Op& op = reduced.ops[t];
    busy += op.reads.empty() && op.writes.empty() ? 0 : 1;
    if (busy >= (busy_each > 1 && t < fine_from ? 3 * busy_each : busy_each) &&
        reduced.may_end[t] != 0) {
      ends.push_back(t);
      busy = 0;
    }
  }
  ends.push_back(count - 1);
  return ends;
}

class ExactSearch {
public:
  ExactSearch(const RecomputeProblem& problem, std::int64_t budget, const SearchControl& control,
              const RecomputeExactOptions& options)
      : problem_(problem), budget_(budget), control_(control), options_(options),
        base_(problem.base_cost()), never_again_(problem.ops.size(), 0), nodes_(options.nodes),
        known_(problem.ops.size() + 1, StageRelaxation::RerunChoice::open) {}

  RecomputeResult run() {
    verify(problem_);
    result_.bound = static_cast<double>(base_);
    std::int64_t step = 0;
    for (const RecomputeProblem::Op& op : problem_.ops)
      step = std::gcd(step, op.cost);
    cost_step_ = static_cast<double>(std::max<std::int64_t>(step, 1));
    if (peak_bound(problem_) > budget_)
      say_infeasible();
    else
      consider(store_everything(problem_), "all stored");
    if (problem_.ops.empty() || result_.infeasible)
      return std::move(result_);
    for (const RecomputePlan& plan : options_.starts)
      consider(plan, "given");
    const WindowBound windows = bound_windows();
    if (!done())
      search_all(windows);
    if (!done())
      search();
    return std::move(result_);
  }

private:
  /// Bounds cost by windows; fast for problems of any size.
  WindowBound bound_windows() {
    WindowBound windows = window_bound(problem_, budget_, control_);
    if (windows.infeasible)
      say_infeasible();
    else
      raise_bound(static_cast<double>(windows.cost - base_));
    return windows;
  }

  void say_infeasible() {
    result_.infeasible = true;
    result_.bound = std::numeric_limits<double>::infinity();
  }

  /// Searches all states; feasible for short steps with little memory.
  void search_all(const WindowBound& windows) {
    if (options_.states == 0)
      return;
    StateSearchOptions options{.states = options_.states, .later = windows.later};
    if (result_.plan)
      options.below = result_.outcome.cost - base_;
    const StateSearch found = search_states(problem_, budget_, control_, options);
    if (!found.complete)
      return;
    if (found.plan)
      consider(*found.plan, "every state");
    if (result_.plan)
      raise_bound(best_extra());
    else
      say_infeasible();
  }

  void consider(const RecomputePlan& plan, const char* method) {
    RecomputeOutcome outcome = replay(problem_, plan);
    if (outcome.peak_bytes > budget_)
      return;
    if (result_.plan && outcome.cost >= result_.outcome.cost)
      return;
    result_.plan = plan;
    result_.outcome = std::move(outcome);
    result_.method = method;
    tell();
  }

  /// Raises the bound to the next multiple of cost_step_, the granularity of plans' costs.
  void raise_bound(double extra) {
    const double steps = extra / cost_step_;
    const double whole = std::ceil(steps - 1e-6 * std::max(1.0, steps * 1e-3)) * cost_step_;
    double bound = static_cast<double>(base_) + whole;
    if (result_.plan)
      bound = std::min(bound, static_cast<double>(result_.outcome.cost));
    result_.bound = std::max(result_.bound, bound);
    tell();
  }

  bool done() const {
    return result_.infeasible ||
           (result_.plan && static_cast<double>(result_.outcome.cost) <= result_.bound);
  }

  double best_extra() const {
    return result_.plan ? static_cast<double>(result_.outcome.cost - base_) : kUnbounded;
  }

  void tell() const {
    SearchProgress state;
    state.phase = "recomputation";
    state.done = options_.nodes - nodes_;
    state.total = options_.nodes;
    if (result_.plan)
      state.best = static_cast<double>(result_.outcome.cost);
    state.bound = result_.bound;
    control_.tell(state);
  }

  RecomputeModelOptions model_options() const {
    RecomputeModelOptions model{.budget = budget_, .never_again = never_again_};
    if (result_.plan)
      model.best_extra = result_.outcome.cost - base_;
    // Buffers below a thousandth of the budget are free; if there are many buffers, larger ones are
    // too.
    std::vector<std::int64_t> bytes;
    for (const RecomputeProblem::Buffer& buffer : problem_.buffers)
      if (buffer.producer)
        bytes.push_back(buffer.bytes);
    std::sort(bytes.rbegin(), bytes.rend());
    model.threshold = std::max<std::int64_t>(1, budget_ / 1000);
    if (bytes.size() <= 64)
      model.threshold = 1;
    if (bytes.size() > kMaxItems)
      model.threshold = std::max(model.threshold, bytes[kMaxItems]);
    return model;
  }

  std::vector<std::uint32_t> first_stages(const ReducedRecompute& reduced) const {
    std::size_t busy = 0;
    for (const ReducedRecompute::Op& op : reduced.ops)
      busy += op.reads.empty() && op.writes.empty() ? 0 : 1;
    const auto peak_op =
        static_cast<std::uint32_t>(replay(problem_, store_everything(problem_)).peak_run);
    std::size_t each = std::max<std::size_t>(1, busy / kStages);
    std::vector<std::uint32_t> ends = equal_stages(reduced, each, peak_op);
    while (StageProgram(reduced, ends).columns().size() > kMaxColumns && each < busy)
      ends = equal_stages(reduced, each *= 2, peak_op);
    return ends;
  }

  /// Binary program of the stages, with the memory rows that the relaxation found relevant.
  MilpModel model_of(const StageProgram& program, const StageRelaxation& relaxation) const {
    MilpModel model;
    std::vector<std::vector<LinearTerm>> count(known_.size());
    std::vector<std::vector<std::uint32_t>> sums(known_.size());
    for (std::uint32_t c = 0; c < program.columns().size(); ++c) {
      const StageProgram::Column& column = program.columns()[c];
      const std::uint32_t op = program.op_of_column(c);
      const bool never = op != kNone && known_[op] == StageRelaxation::RerunChoice::never;
      model.add_variable(column.lower, never ? column.lower : column.upper, column.cost, true);
      if (op == kNone || never)
        continue;
      count[op].push_back({c, 1.0});
      sums[op].push_back(c);
    }
    for (const auto* rows : {&program.rows(), &relaxation.memory_rows()})
      for (const LinearRow& row : *rows)
        model.add_row(row.terms, row.lower, row.upper);
    model.add_pool(program.memory_rows({}, 0));
    for (std::size_t op = 0; op < count.size(); ++op)
      if (known_[op] == StageRelaxation::RerunChoice::always)
        model.add_row(count[op], 1, kUnbounded);
    for (std::vector<std::uint32_t>& sum : sums)
      if (sum.size() >= 2)
        model.add_sum(std::move(sum));
    return model;
  }

  /// Solves the program; returns false if a limit was reached before its optimum. A small program
  /// goes to CBC without cuts: its nodes are fast, which helps if most plans cost the same, so that
  /// neither cuts nor duals prune much.
  bool solve(const StageProgram& program, const StageRelaxation& relaxation) {
    const MilpModel model = model_of(program, relaxation);
    const double open = best_extra() - (result_.bound - static_cast<double>(base_));
    const bool few = model.variables() <= kSmall && open <= kFewCosts * cost_step_;
    const MilpResult found =
        model.solve(control_, {.solver = few ? MilpSolver::cbc : MilpSolver::branch_and_cut,
                               .nodes = nodes_,
                               .cuts = false,
                               .heuristics = !result_.plan,
                               .cutoff = best_extra(),
                               .patience = patience_,
                               .step = cost_step_});
    nodes_ = std::max<std::int64_t>(0, nodes_ - std::max<std::int64_t>(found.nodes, 1));
    result_.interrupted = result_.interrupted || found.interrupted;
    solution_ = found.values;
    if (found.status == MilpStatus::infeasible) {
      if (result_.plan)
        raise_bound(best_extra());
      else
        result_.infeasible = true;
      return true;
    }
    raise_bound(found.bound);
    return found.status == MilpStatus::optimal;
  }

  /// Records the proofs of the relaxation.
  void note(const StageRelaxation& relaxation) {
    result_.interrupted = result_.interrupted || relaxation.interrupted();
    if (!relaxation.exhausted())
      raise_bound(relaxation.bound());
    else if (result_.plan)
      raise_bound(best_extra());
    else
      result_.infeasible = true;
  }

  /// Ends of refined stages: splits stages in which the plan exceeds the budget or costs more than
  /// the solution. Unchanged if no stage can be split.
  std::vector<std::uint32_t> refine(const ReducedRecompute& reduced, const StageProgram& program,
                                    const RecomputePlan& plan,
                                    std::span<const double> values) const {
    const RecomputeOutcome outcome = replay(problem_, plan);
    std::vector<double> extra(program.stages(), 0);
    std::vector<char> split(program.stages(), 0);
    std::uint32_t next = 0;
    for (std::size_t i = 0; i < plan.runs.size(); ++i) {
      const std::uint32_t k = program.stage_of(next);
      if (outcome.live_bytes[i] > budget_)
        split[k] = 1;
      if (plan.runs[i] == next)
        ++next;
      else
        extra[k] += static_cast<double>(problem_.ops[plan.runs[i]].cost);
    }
    for (std::uint32_t c = 0; c < values.size(); ++c)
      if (const std::uint32_t op = program.op_of_column(c); op != kNone)
        if (values[c] > 0.5)
          for (std::uint32_t k = 0; k < program.stages(); ++k)
            if (program.again(k, op) == c)
              extra[k] -= program.columns()[c].cost;
    std::vector<std::uint32_t> ends;
    for (std::uint32_t k = 0; k < program.stages(); ++k) {
      if (split[k] != 0 || extra[k] > 0.5) {
        std::vector<std::uint32_t> cuts; // possible split points of the stage
        for (std::uint32_t t = program.first_op(k); t < program.ends()[k]; ++t)
          if (reduced.may_end[t] != 0 &&
              !(reduced.ops[t].reads.empty() && reduced.ops[t].writes.empty()))
            cuts.push_back(t);
        if (cuts.size() <= 3)
          ends.insert(ends.end(), cuts.begin(), cuts.end());
        else
          ends.push_back(cuts[cuts.size() / 2]);
      }
      ends.push_back(program.ends()[k]);
    }
    return ends;
  }

  /// Tightens the program; returns true if it must be solved further.
  bool prove(const ReducedRecompute& reduced, StageRelaxation& relaxation, bool& rebuild) {
    const bool solved = relaxation.solve();
    note(relaxation);
    if (!solved || done())
      return false;
    if (!result_.plan)
      return true;
    rebuild = relaxation.probe_chains(reduced, kChainSolves);
    if (!rebuild && !relaxation.interrupted() && probes_left_ > 0 &&
        relaxation.columns() > kSmall) {
      --probes_left_;
      rebuild = relaxation.probe(kProbeSolves);
    }
    note(relaxation);
    return !done();
  }

  void search() {
    std::vector<std::uint32_t> ends;
    while (!done() && !result_.interrupted && nodes_ > 0) {
      for (std::size_t t = 0; t < problem_.ops.size(); ++t)
        never_again_[t] = known_[t] == StageRelaxation::RerunChoice::never ? 1 : 0;
      const ReducedRecompute reduced = reduce(problem_, model_options());
      if (ends.empty())
        ends = first_stages(reduced);
      const StageProgram program(reduced, ends);
      StageRelaxation relaxation(program, control_, best_extra(), cost_step_, known_);
      bool rebuild = false;
      if (!prove(reduced, relaxation, rebuild))
        break;
      consider(plan_of(problem_, reduced, program, relaxation.values()), "rounded");
      if (done() || result_.interrupted)
        break;
      if (rebuild)
        continue; // with fewer columns
      const bool whole = solve(program, relaxation);
      if (solution_.empty() || done())
        break;
      const RecomputePlan plan = plan_of(problem_, reduced, program, solution_);
      consider(plan, "integer program");
      std::vector<std::uint32_t> finer = refine(reduced, program, plan, solution_);
      if (done() || result_.interrupted)
        break;
      if (finer == ends) { // stages are as fine as possible or necessary
        if (whole || patience_ > kNodesAfterSolution)
          break;
        patience_ = std::numeric_limits<std::int64_t>::max();
        continue;
      }
      patience_ = kNodesAfterSolution;
      ends = std::move(finer);
      probes_left_ = std::max(probes_left_, 1);
    }
  }

  static constexpr std::size_t kMaxItems = 600;
  static constexpr std::size_t kMaxColumns = 12'000; ///< maximum size of an integer program
  const RecomputeProblem& problem_;
  std::int64_t budget_;
  const SearchControl& control_;
  const RecomputeExactOptions& options_;
  std::int64_t base_;
  double cost_step_ = 1;
  std::vector<char> never_again_;
  std::int64_t nodes_;
  StageRelaxation::Known known_;
  std::vector<double> solution_;
  int probes_left_ = 1;
  std::int64_t patience_ = kNodesAfterSolution;
  RecomputeResult result_;
};

} // namespace

RecomputeResult solve_recompute(const RecomputeProblem& problem, std::int64_t budget,
                                const SearchControl& control,
                                const RecomputeExactOptions& options) {
  return ExactSearch(problem, budget, control, options).run();
}

} // namespace monet
