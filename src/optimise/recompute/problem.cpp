// Replays and validates recomputation plans and computes their memory and cost; all searches
// evaluate plans here.
#include "base/shared/checked.hpp"

#include "monet/base/errors.hpp"
#include "monet/optimise/recompute_problem.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

namespace monet {

namespace {

constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();

void check(bool holds, const char* what, std::size_t run) {
  if (!holds)
    throw InternalError(fmt::format("recomputation plan, run {}: {}", run, what));
}

/// Live bytes per run, stored as differences between runs.
class LiveByRun {
public:
  explicit LiveByRun(std::size_t runs) : change_(runs + 1) {}
  /// Adds bytes that are live during the runs [first, last].
  void add(std::size_t first, std::size_t last, std::int64_t bytes) {
    change_[first] += bytes;
    change_[last + 1] -= bytes;
  }
  std::vector<std::int64_t> sums() && {
    std::partial_sum(change_.begin(), change_.end(), change_.begin());
    change_.pop_back();
    return std::move(change_);
  }

private:
  std::vector<std::int64_t> change_;
};

} // namespace

std::int64_t RecomputeProblem::base_cost() const {
  std::int64_t sum = 0;
  for (const Op& op : ops)
    sum = checked_add(sum, op.cost);
  return sum;
}

std::int64_t RecomputeProblem::written_bytes(std::uint32_t op) const {
  std::int64_t sum = 0;
  for (const std::uint32_t b : ops[op].writes)
    sum += buffers[b].bytes;
  return sum;
}

RecomputePlan store_everything(const RecomputeProblem& problem) {
  RecomputePlan plan;
  plan.runs.resize(problem.ops.size());
  std::iota(plan.runs.begin(), plan.runs.end(), 0U);
  return plan;
}

RecomputeOutcome replay(const RecomputeProblem& problem, const RecomputePlan& plan) {
  const std::size_t runs = plan.runs.size();
  std::vector<std::size_t> written(problem.buffers.size(), kNever);
  std::vector<std::size_t> used(problem.buffers.size(), 0);
  LiveByRun live(runs);
  RecomputeOutcome outcome;
  std::size_t next = 0; // next operator to run for the first time
  for (std::size_t i = 0; i < runs; ++i) {
    check(plan.runs[i] < problem.ops.size(), "no such operator", i);
    const RecomputeProblem::Op& op = problem.ops[plan.runs[i]];
    check(plan.runs[i] <= next, "an operator before its turn", i);
    check(plan.runs[i] == next || op.repeatable, "an operator again that must not be", i);
    next += plan.runs[i] == next ? 1 : 0;
    outcome.cost = checked_add(outcome.cost, op.cost);
    live.add(i, i, op.scratch);
    for (const std::uint32_t b : op.reads) {
      if (!problem.buffers[b].producer)
        continue;
      check(written[b] != kNever, "reads what is not there", i);
      used[b] = i;
    }
    for (const std::uint32_t b : op.writes) {
      if (written[b] != kNever)
        live.add(written[b], used[b], problem.buffers[b].bytes);
      written[b] = used[b] = i;
    }
  }
  check(next == problem.ops.size(), "not every operator runs", runs);
  std::int64_t given = 0;
  for (std::size_t b = 0; b < problem.buffers.size(); ++b) {
    const RecomputeProblem::Buffer& buffer = problem.buffers[b];
    if (!buffer.producer)
      given = checked_add(given, buffer.bytes);
    else
      live.add(written[b], buffer.kept ? runs - 1 : used[b], buffer.bytes);
  }
  outcome.live_bytes = std::move(live).sums();
  for (std::int64_t& bytes : outcome.live_bytes)
    bytes += given;
  const auto peak = std::ranges::max_element(outcome.live_bytes);
  outcome.peak_bytes = peak == outcome.live_bytes.end() ? given : *peak;
  outcome.peak_run = static_cast<std::size_t>(peak - outcome.live_bytes.begin());
  return outcome;
}

void verify(const RecomputeProblem& problem) {
  const auto require = [](bool holds, const std::string& what) {
    if (!holds)
      throw InternalError("recomputation problem: " + what);
  };
  std::vector<bool> written(problem.buffers.size());
  for (std::size_t i = 0; i < problem.ops.size(); ++i) {
    const RecomputeProblem::Op& op = problem.ops[i];
    require(op.cost >= 0 && op.scratch >= 0, op.name + ": negative number");
    for (const std::uint32_t b : op.reads) {
      require(b < problem.buffers.size(), op.name + ": reads no buffer");
      require(!problem.buffers[b].producer || written[b], op.name + ": reads before it is written");
    }
    for (const std::uint32_t b : op.writes) {
      require(b < problem.buffers.size(), op.name + ": writes no buffer");
      require(!written[b] && problem.buffers[b].producer == i, op.name + ": not the producer");
      written[b] = true;
    }
  }
  for (std::size_t b = 0; b < problem.buffers.size(); ++b) {
    require(problem.buffers[b].bytes >= 0, problem.buffers[b].name + ": negative size");
    require(!problem.buffers[b].producer || written[b], problem.buffers[b].name + ": never made");
  }
}

void verify(const RecomputeProblem& problem, const RecomputeResult& found) {
  if (!found.plan)
    return;
  constexpr double kRounding = 1 + 1e-9; // rounding of bounds from linear programs
  const RecomputeOutcome outcome = replay(problem, *found.plan);
  internal_check(outcome.cost == found.outcome.cost &&
                     outcome.peak_bytes == found.outcome.peak_bytes,
                 "a plan has other figures than recorded");
  internal_check(found.bound <= static_cast<double>(outcome.cost) * kRounding,
                 "a plan beats its bound");
}

std::int64_t peak_bound(const RecomputeProblem& problem) {
  std::int64_t given = 0;
  std::int64_t kept = 0;
  for (const RecomputeProblem::Buffer& buffer : problem.buffers) {
    if (!buffer.producer)
      given = checked_add(given, buffer.bytes);
    else if (buffer.kept)
      kept = checked_add(kept, buffer.bytes);
  }
  std::int64_t largest = kept; // kept bytes at the end
  for (const RecomputeProblem::Op& op : problem.ops) {
    std::int64_t sum = op.scratch;
    for (const std::uint32_t b : op.reads)
      sum = checked_add(sum, problem.buffers[b].producer ? problem.buffers[b].bytes : 0);
    for (const std::uint32_t b : op.writes)
      sum = checked_add(sum, problem.buffers[b].bytes);
    largest = std::max(largest, sum);
  }
  return checked_add(given, largest);
}

} // namespace monet
