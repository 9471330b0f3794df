// Solves the linear relaxation of a StageProgram and proves facts about single operators; exact.cpp
// uses them to shrink its programs.
#include "optimise/recompute/exact/stage_relaxation.hpp"

#include <algorithm>

namespace monet {

namespace {

constexpr double kTolerance = 1e-7; // tolerance relative to the capacity
constexpr double kWhole = 1e-5;

} // namespace

StageRelaxation::StageRelaxation(const StageProgram& program, const SearchControl& control,
                                 double best, double step, Known& known)
    : program_(program), control_(control), cutoff_(best - step + std::min(1e-3, 1e-3 * step)),
      known_(known), count_row_(known.size(), kNone), columns_(known.size()) {
  const std::vector<StageProgram::Column>& columns = program.columns();
  for (std::uint32_t c = 0; c < columns.size(); ++c) {
    lp_.add_variable(columns[c].lower, columns[c].upper, columns[c].cost);
    if (const std::uint32_t op = program.op_of_column(c); op != kNone)
      columns_[op].push_back(c);
  }
  for (const LinearRow& row : program.rows())
    lp_.add_row(row.terms, row.lower, row.upper);
  std::vector<LinearTerm> terms;
  for (std::uint32_t op = 0; op < columns_.size(); ++op) {
    if (columns_[op].empty())
      continue;
    terms.clear();
    for (const std::uint32_t c : columns_[op])
      terms.push_back({c, 1.0});
    count_row_[op] = lp_.add_row(terms, known_[op] == RerunChoice::always ? 1.0 : 0.0,
                                 known_[op] == RerunChoice::never ? 0.0 : max_runs(op));
  }
  memory_begin_ = static_cast<std::uint32_t>(lp_.rows());
}

double StageRelaxation::solve_rows() {
  for (;;) {
    ++solves_;
    const LpStatus status = lp_.solve(control_);
    if (status == LpStatus::infeasible)
      return kUnbounded;
    if (status != LpStatus::optimal) {
      interrupted_ = interrupted_ || status == LpStatus::interrupted;
      return -kUnbounded;
    }
    const double bound = lp_.safe_bound();
    if (bound > cutoff_)
      return kUnbounded;
    values_.assign(lp_.values().begin(), lp_.values().end());
    std::vector<LinearRow> broken = program_.memory_rows(values_, kTolerance);
    if (broken.empty())
      return bound;
    for (LinearRow& row : broken) {
      lp_.add_row(row.terms, row.lower, row.upper);
      memory_.push_back(std::move(row));
    }
  }
}

void StageRelaxation::purge_memory_rows() {
  std::vector<std::uint32_t> loose;
  std::vector<LinearRow> tight;
  for (auto r = memory_begin_; r < lp_.rows(); ++r)
    if (lp_.duals()[r] == 0)
      loose.push_back(r);
    else
      tight.push_back(std::move(memory_[r - memory_begin_]));
  memory_ = std::move(tight);
  lp_.remove_rows(loose);
}

bool StageRelaxation::solve() {
  const double bound = solve_rows();
  if (bound == -kUnbounded)
    return false;
  exhausted_ = bound == kUnbounded;
  if (exhausted_)
    return false;
  bound_ = std::max(bound_, bound);
  root_ = values_;
  purge_memory_rows();
  return true;
}

void StageRelaxation::set_count(std::uint32_t op, double lower, double upper) {
  lp_.set_row_bounds(count_row_[op], lower, upper);
}

void StageRelaxation::reset_count(std::uint32_t op) {
  if (!columns_[op].empty())
    set_count(op, known_[op] == RerunChoice::always ? 1 : 0,
              known_[op] == RerunChoice::never ? 0 : max_runs(op));
}

bool StageRelaxation::probe(std::int64_t solves) {
  const std::int64_t limit = solves_ + solves;
  bool news = false;
  for (std::uint32_t op = 0; op < columns_.size() && solves_ < limit && !interrupted_; ++op) {
    if (!open(op))
      continue;
    double count = 0;
    for (const std::uint32_t c : columns_[op])
      count += root_[c];
    const auto prunes = [&](double lower, double upper) {
      set_count(op, lower, upper);
      return solve_rows() == kUnbounded;
    };
    if (count < 1 - kWhole && prunes(1, max_runs(op)))
      known_[op] = RerunChoice::never;
    else if (count > kWhole && !interrupted_ && prunes(0, 0))
      known_[op] = RerunChoice::always;
    reset_count(op);
    news = news || known_[op] != RerunChoice::open;
  }
  return news;
}

bool StageRelaxation::chain_prunes(const std::vector<std::uint32_t>& chain, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    set_count(chain[i], 1, max_runs(chain[i]));
  const bool prunes = solve_rows() == kUnbounded;
  for (std::size_t i = 0; i < count; ++i)
    reset_count(chain[i]);
  return prunes;
}

/// Marks the operator, and all that are recomputed only with it, as never recomputed.
void StageRelaxation::learn_never(const ReducedRecompute& reduced, std::uint32_t op) {
  known_[op] = RerunChoice::never;
  reset_count(op);
  for (std::uint32_t next = op + 1; next < reduced.ops.size(); ++next) {
    const std::uint32_t with = reduced.ops[next].only_with;
    if (with == kNone || known_[with] != RerunChoice::never || known_[next] != RerunChoice::open)
      continue;
    known_[next] = RerunChoice::never;
    reset_count(next);
  }
}

bool StageRelaxation::probe_chains(const ReducedRecompute& reduced, std::int64_t solves) {
  const std::int64_t limit = solves_ + solves;
  bool news = false;
  for (auto last = static_cast<std::uint32_t>(reduced.ops.size()); last-- > 0;) {
    if (solves_ >= limit || interrupted_)
      break;
    std::vector<std::uint32_t> chain; // from the first operator to the last
    for (std::uint32_t op = last; op != kNone && open(op); op = reduced.ops[op].only_with)
      chain.push_back(op);
    std::ranges::reverse(chain);
    if (chain.size() < 2 || !chain_prunes(chain, chain.size()))
      continue;
    std::size_t least = 1; // operators of the chain that cannot all be recomputed
    for (std::size_t most = chain.size(); least < most && !interrupted_;) {
      const std::size_t middle = (least + most) / 2;
      if (chain_prunes(chain, middle))
        most = middle;
      else
        least = middle + 1;
    }
    if (interrupted_)
      break;
    learn_never(reduced, chain[least - 1]);
    news = true;
  }
  return news;
}

} // namespace monet
