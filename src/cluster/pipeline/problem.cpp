// Validates pipeline problems, and computes the sends and the end of a step. Shared by simulate.cpp
// and times.cpp.
#include "cluster/pipeline/problem.hpp"

#include "monet/base/errors.hpp"

#include <algorithm>

namespace monet {

namespace {

/// Adds non-negative numbers and detects sums that overflow 64 bits.
class FittingSum {
public:
  void add(std::int64_t number, std::int64_t times = 1) {
    internal_check(number >= 0, "a pipeline has a negative cost");
    std::int64_t product = 0;
    fits_ = !__builtin_mul_overflow(number, times, &product) &&
            !__builtin_add_overflow(sum_, product, &sum_) && fits_;
  }
  bool fits(std::int64_t times) const {
    std::int64_t product = 0;
    return fits_ && !__builtin_mul_overflow(sum_, times, &product);
  }

private:
  std::int64_t sum_ = 0;
  bool fits_ = true;
};

bool empty_or(std::size_t size, std::int64_t expected) {
  return size == 0 || size == static_cast<std::size_t>(expected);
}

} // namespace

void check_pipeline_problem(const PipelineProblem& problem) {
  const std::int64_t m = problem.micro_batches;
  const auto reason = why_not(problem.kind, problem.stages, problem.chunks, m);
  internal_check(!reason, reason ? "no such pipeline: " + *reason : "");
  const std::int64_t parts = problem.stages * problem.chunks;
  internal_check(problem.costs.size() == static_cast<std::size_t>(parts) &&
                     empty_or(problem.forward_sends.size(), parts - 1) &&
                     empty_or(problem.backward_sends.size(), parts - 1) &&
                     empty_or(problem.tails.size(), problem.stages),
                 "a pipeline has costs of another number of stages or chunks");
  FittingSum time;
  FittingSum bytes;
  for (const ChunkCost& cost : problem.costs) {
    for (const Nanoseconds part :
         {cost.forward, cost.backward_input, cost.backward_weight, cost.recompute})
      time.add(part, m);
    bytes.add(cost.activation_bytes, m);
    bytes.add(cost.weight_bytes, m);
  }
  for (const auto* sends : {&problem.forward_sends, &problem.backward_sends}) {
    for (const Nanoseconds send : *sends)
      time.add(send, m);
  }
  for (const StageTail& tail : problem.tails) {
    time.add(tail.synchronise);
    time.add(tail.update);
  }
  time.add(problem.global_reduce);
  time.add(problem.validation);
  internal_check(time.fits(problem.chunks * m) && bytes.fits(1),
                 "a pipeline's costs overflow 64 bits");
}

Nanoseconds send_between(const PipelineProblem& problem, std::int64_t part, bool gradient) {
  const auto& sends = gradient ? problem.backward_sends : problem.forward_sends;
  if (sends.empty() || stage_of_part(problem.kind, problem.stages, part) ==
                           stage_of_part(problem.kind, problem.stages, part + 1))
    return 0;
  return sends[static_cast<std::size_t>(part)];
}

Nanoseconds tail_time(const PipelineProblem& problem, std::int64_t stage) {
  const StageTail tail =
      problem.tails.empty() ? StageTail{} : problem.tails[static_cast<std::size_t>(stage)];
  return tail.synchronise + tail.update +
         (problem.validate_after_step ? problem.validation : problem.global_reduce);
}

PipelineTimes finish_step(const PipelineProblem& problem, std::span<const Nanoseconds> begin,
                          std::span<const Nanoseconds> end, std::span<Nanoseconds> finish) {
  Nanoseconds all_synchronised = 0;
  for (std::size_t i = 0; i < end.size(); ++i) {
    const StageTail tail = problem.tails.empty() ? StageTail{} : problem.tails[i];
    all_synchronised = std::max(all_synchronised, end[i] + tail.synchronise);
  }
  PipelineTimes times;
  for (std::size_t i = 0; i < end.size(); ++i) {
    if (problem.validate_after_step)
      finish[i] = end[i] + tail_time(problem, static_cast<std::int64_t>(i));
    else
      finish[i] = all_synchronised + problem.global_reduce +
                  (problem.tails.empty() ? 0 : problem.tails[i].update);
    times.makespan = std::max(times.makespan, finish[i]);
    times.period = std::max(times.period, finish[i] - begin[i]);
  }
  if (!problem.validate_after_step)
    times.period = times.makespan;
  return times;
}

} // namespace monet
