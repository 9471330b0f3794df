// Choice of buffers carried into the backward part within a limit of bytes; the checkpoint search
// calls it.
#include "base/shared/checked.hpp"
#include "optimise/milp/milp_model.hpp"
#include "optimise/recompute/bounds/rerun_cut.hpp"

#include "monet/base/errors.hpp"
#include "monet/optimise/checkpoint_search.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace monet {

namespace {

/// Places recomputation before its first reader in the backward part.
class LazyPlan {
public:
  LazyPlan(const CheckpointSpace& space, std::span<const std::uint8_t> stored)
      : space_(space), problem_(space.problem), there_(stored.begin(), stored.end()),
        again_(problem_.ops.size(), 0) {}

  std::optional<RecomputePlan> run() {
    for (std::size_t i = 0; i < problem_.ops.size(); ++i) {
      if (space_.backward[i] == 1 && !provide(static_cast<std::uint32_t>(i)))
        return std::nullopt;
      plan_.runs.push_back(static_cast<std::uint32_t>(i));
    }
    return std::move(plan_);
  }

private:
  /// Whether the forward part made the buffer and it is neither stored nor recomputed yet.
  bool is_missing(std::uint32_t buffer) const {
    const auto producer = problem_.buffers[buffer].producer;
    return producer && space_.backward[*producer] == 0 && there_[buffer] == 0;
  }

  bool provide(std::uint32_t reader) {
    std::vector<std::uint32_t> open{reader};
    while (!open.empty()) {
      const std::uint32_t op = open.back();
      bool ready = true;
      for (const std::uint32_t b : problem_.ops[op].reads) {
        if (!is_missing(b))
          continue;
        const std::uint32_t producer = *problem_.buffers[b].producer;
        if (!problem_.ops[producer].repeatable)
          return false;
        open.push_back(producer);
        ready = false;
      }
      if (!ready)
        continue;
      open.pop_back();
      if (op != reader && again_[op] == 0)
        run_again(op);
    }
    return true;
  }

  void run_again(std::uint32_t op) {
    again_[op] = 1;
    plan_.runs.push_back(op);
    for (const std::uint32_t b : problem_.ops[op].writes)
      there_[b] = 1;
  }

  const CheckpointSpace& space_;
  const RecomputeProblem& problem_;
  std::vector<std::uint8_t> there_; ///< per buffer
  std::vector<std::uint8_t> again_; ///< per operator
  RecomputePlan plan_;
};

class StoredModel {
public:
  StoredModel(const CheckpointSpace& space, std::int64_t bytes, const StoredOptions& options)
      : space_(space), problem_(space.problem), bytes_(bytes), options_(options),
        limit_(options.limit), again_(problem_.ops.size(), kNone),
        store_(problem_.buffers.size(), kNone) {}

  RecomputeResult solve(const SearchControl& control) {
    RecomputeResult result;
    result.method = "stored";
    result.bound = static_cast<double>(problem_.base_cost());
    if (space_.micro.back() == 0)
      cut(result);
    if (result.infeasible ||
        (result.plan && static_cast<double>(result.outcome.cost) <= result.bound)) {
      result.method = "min cut";
      return result;
    }
    build();
    if (result.plan)
      begin_with(*result.plan);
    if (options_.start &&
        (!result.plan || replay(problem_, *options_.start).cost < result.outcome.cost))
      begin_with(*options_.start);
    MilpOptions options{.nodes = options_.nodes, .gap = options_.gap};
    const MilpResult found = model_.solve(control, options);
    result.interrupted = found.interrupted;
    result.infeasible = found.status == MilpStatus::infeasible;
    const double base = static_cast<double>(problem_.base_cost());
    result.bound =
        std::max(result.bound, base + std::ceil(found.bound - 1e-6 * std::abs(found.bound)));
    if (!found.values.empty())
      take(found.values, result);
    if (result.plan)
      result.bound = std::min(result.bound, static_cast<double>(result.outcome.cost));
    return result;
  }

private:
  /// Solves the choice as a minimum cut, with a price per byte in place of the limit.
  void cut(RecomputeResult& result) const {
    std::vector<std::uint8_t> there(problem_.buffers.size(), 0);
    std::vector<std::uint32_t> wanted;
    for (std::uint32_t b = 0; b < there.size(); ++b) {
      there[b] = is_forward(b) ? 0 : 1;
      if (space_.needed[b] != 0)
        wanted.push_back(b);
    }
    const RerunCut::Answer answer = RerunCut(problem_, wanted, there).least(bytes_);
    result.infeasible = answer.infeasible;
    result.bound += static_cast<double>(answer.bound);
    if (!answer.held.empty())
      keep(answer.held, result);
  }

  bool is_forward(std::uint32_t buffer) const {
    const auto producer = problem_.buffers[buffer].producer;
    return producer && space_.backward[*producer] == 0;
  }

  /// Builds the program from the readers of the backward part to all buffers that recomputation may
  /// need.
  void build() {
    std::vector<std::uint32_t> open;
    const auto want = [&](std::uint32_t buffer) {
      if (store_[buffer] != kNone)
        return;
      store_[buffer] = model_.add_binary(0);
      const std::uint32_t producer = *problem_.buffers[buffer].producer;
      if (again_[producer] == kNone && problem_.ops[producer].repeatable) {
        again_[producer] = model_.add_binary(static_cast<double>(problem_.ops[producer].cost));
        open.push_back(producer);
      }
    };
    for (std::uint32_t b = 0; b < store_.size(); ++b) {
      if (space_.needed[b] == 0)
        continue;
      want(b);
      require(b, kNone);
    }
    while (!open.empty()) {
      const std::uint32_t op = open.back();
      open.pop_back();
      for (const std::uint32_t b : problem_.ops[op].reads) {
        if (!is_forward(b))
          continue;
        want(b);
        require(b, again_[op]);
      }
    }
    limit_bytes();
    limit_cost();
  }

  /// Requires the buffer to be stored, or recomputed if `reader` is (always, without a reader).
  void require(std::uint32_t buffer, std::uint32_t reader) {
    std::vector<LinearTerm> terms{{store_[buffer], 1}};
    if (const std::uint32_t maker = again_[*problem_.buffers[buffer].producer]; maker != kNone)
      terms.push_back({maker, 1});
    if (reader != kNone)
      terms.push_back({reader, -1});
    model_.add_row(terms, reader == kNone ? 1 : 0, kUnbounded);
  }

  void limit_bytes() {
    std::int64_t unit = 0;
    for (std::size_t b = 0; b < store_.size(); ++b) {
      if (store_[b] != kNone)
        unit = std::gcd(unit, problem_.buffers[b].bytes);
    }
    unit = std::max<std::int64_t>(unit, 1);
    for (std::uint32_t micro = 0; micro <= space_.micro.back(); ++micro) {
      std::vector<LinearTerm> terms;
      for (std::uint32_t b = 0; b < store_.size(); ++b) {
        const std::int64_t size = problem_.buffers[b].bytes / unit;
        if (store_[b] != kNone && size > 0 && space_.micro[*problem_.buffers[b].producer] == micro)
          terms.push_back({store_[b], static_cast<double>(size)});
      }
      if (!terms.empty())
        model_.add_row(terms, -kUnbounded, static_cast<double>(bytes_ / unit));
    }
  }

  void limit_cost() {
    if (!limit_)
      return;
    std::vector<LinearTerm> terms;
    std::int64_t left = limit_->limit;
    for (std::size_t i = 0; i < again_.size(); ++i) {
      left -= limit_->costs[i];
      if (again_[i] != kNone && limit_->costs[i] > 0)
        terms.push_back({again_[i], static_cast<double>(limit_->costs[i])});
    }
    if (!terms.empty())
      model_.add_row(terms, -kUnbounded, static_cast<double>(left));
  }

  void begin_with(const RecomputePlan& plan) {
    std::vector<double> values(model_.variables(), 0);
    const std::vector<std::uint8_t> stored = carried(space_, plan);
    for (std::size_t b = 0; b < store_.size(); ++b) {
      if (store_[b] != kNone && stored[b] != 0)
        values[store_[b]] = 1;
    }
    std::vector<std::uint32_t> runs(problem_.ops.size(), 0);
    for (const std::uint32_t run : plan.runs) {
      if (++runs[run] > 1 && again_[run] != kNone)
        values[again_[run]] = 1;
    }
    model_.set_start(std::move(values));
  }

  /// Stores the plan. Rounding in the solver may exceed the limits slightly; then there is no plan.
  void take(const std::vector<double>& values, RecomputeResult& result) const {
    std::vector<std::uint8_t> stored(store_.size(), 0);
    for (std::size_t b = 0; b < stored.size(); ++b)
      stored[b] = store_[b] != kNone && values[store_[b]] > 0.5 ? 1 : 0;
    keep(stored, result);
  }

  void keep(std::span<const std::uint8_t> stored, RecomputeResult& result) const {
    std::optional<RecomputePlan> plan = plan_storing(space_, stored);
    if (!plan || stored_bytes(space_, *plan) > bytes_)
      return;
    std::int64_t cost = 0;
    for (const std::uint32_t run : plan->runs)
      cost = checked_add(cost, limit_ ? limit_->costs[run] : 0);
    if (limit_ && cost > limit_->limit)
      return;
    result.outcome = replay(problem_, *plan);
    result.plan = std::move(plan);
  }

  const CheckpointSpace& space_;
  const RecomputeProblem& problem_;
  std::int64_t bytes_;
  const StoredOptions& options_;
  const std::optional<CostLimit>& limit_;
  MilpModel model_;
  std::vector<std::uint32_t> again_; ///< per operator: its variable
  std::vector<std::uint32_t> store_; ///< per buffer
};

} // namespace

std::optional<RecomputePlan> plan_storing(const CheckpointSpace& space,
                                          std::span<const std::uint8_t> stored) {
  internal_check(stored.size() == space.problem.buffers.size(), "one choice for each buffer");
  return LazyPlan(space, stored).run();
}

RecomputeResult solve_stored(const CheckpointSpace& space, std::int64_t bytes,
                             const SearchControl& control, const StoredOptions& options) {
  internal_check(!options.limit || options.limit->costs.size() == space.problem.ops.size(),
                 "one cost for each operator");
  return StoredModel(space, bytes, options).solve(control);
}

} // namespace monet
