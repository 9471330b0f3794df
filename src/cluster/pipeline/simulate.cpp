// Simulates a step of a pipeline pass by pass: each stage follows its order until an arrival is
// missing, and each send wakes its receiver. Called for every modelled step (step/build.cpp).
#include "cluster/pipeline/problem.hpp"

#include "monet/base/errors.hpp"
#include "monet/cluster/pipeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

namespace monet {

namespace {

constexpr Nanoseconds kNotYet = -1;

/// The arrival of activations or gradients at the stage that needs them.
struct Arrival {
  Nanoseconds made = 0;
  Nanoseconds arrived = kNotYet;
};

/// The state of one micro-batch in one part.
struct PartState {
  Arrival input, gradient;
  Nanoseconds forward_start = kNotYet; ///< kNotYet until the forward pass has run
  bool backward_done = false;
  bool weight_done = false;
};

/// A stage's position in its order, and the activations that it holds.
struct StageState {
  std::size_t next = 0;
  Nanoseconds free = 0;
  Nanoseconds links[2] = {0, 0}; ///< times when the links to the next and previous stage are free
  std::vector<PipelineSend> sends;
  std::int64_t held = 0, waiting = 0, bytes = 0;
  bool queued = false;
};

class StepSimulation {
public:
  StepSimulation(const PipelineProblem& problem,
                 const std::vector<std::vector<PipelineTask>>& orders)
      : problem_(problem), orders_(orders), parts_(problem.stages * problem.chunks),
        split_(splits_backward(problem.kind)),
        state_(static_cast<std::size_t>(parts_ * problem.micro_batches)),
        stages_(static_cast<std::size_t>(problem.stages)) {
    line_.runs.resize(stages_.size());
    line_.stages.resize(stages_.size());
  }

  PipelineTimeline run() {
    for (std::int64_t i = 0; i < problem_.stages; ++i)
      wake(i);
    while (!queue_.empty()) {
      const std::int64_t stage = queue_.front();
      queue_.pop_front();
      at(stage).queued = false;
      advance(stage);
    }
    check_all_ran();
    finish();
    return std::move(line_);
  }

private:
  StageState& at(std::int64_t stage) { return stages_[static_cast<std::size_t>(stage)]; }
  PartState& state_of(std::int64_t part, std::int64_t micro_batch) {
    return state_[static_cast<std::size_t>(part * problem_.micro_batches + micro_batch)];
  }
  std::int64_t part(std::int64_t stage, const PipelineTask& task) const {
    return part_of(problem_.kind, problem_.stages, stage, task.chunk);
  }
  void wake(std::int64_t stage) {
    if (!at(stage).queued)
      queue_.push_back(stage);
    at(stage).queued = true;
  }

  /// The arrival of a pass's input, or kNotYet if it is unknown.
  Arrival arrival(std::int64_t stage, const PipelineTask& task) {
    const std::int64_t k = part(stage, task);
    const PartState& s = state_of(k, task.micro_batch);
    switch (task.pass) {
    case PipelinePass::forward:
      return k == 0 ? Arrival{0, 0} : s.input;
    case PipelinePass::backward:
      if (s.forward_start == kNotYet)
        return {};
      return k == parts_ - 1 ? Arrival{0, 0} : s.gradient;
    case PipelinePass::weight:
      return s.backward_done ? Arrival{0, 0} : Arrival{};
    }
    throw InternalError("unknown pass");
  }

  void advance(std::int64_t stage) {
    const auto& order = orders_[static_cast<std::size_t>(stage)];
    StageState& s = at(stage);
    for (; s.next < order.size(); ++s.next) {
      const PipelineTask& task = order[s.next];
      const Arrival needed = arrival(stage, task);
      if (needed.arrived == kNotYet)
        return;
      run_pass(stage, task, needed);
    }
  }

  void run_pass(std::int64_t stage, const PipelineTask& task, const Arrival& needed) {
    StageState& s = at(stage);
    StageTimes& times = line_.stages[static_cast<std::size_t>(stage)];
    const Nanoseconds start = std::max(s.free, needed.arrived);
    const bool first = s.next == 0;
    if (first)
      times.begin = start;
    if (start > s.free && !(first && problem_.validate_after_step))
      times.exposed += start - std::max(s.free, needed.made);
    s.free = start + duration(stage, task);
    times.busy += s.free - start;
    line_.runs[static_cast<std::size_t>(stage)].push_back({task, start, s.free});
    keep(stage, task, start);
    const std::int64_t k = part(stage, task);
    if (task.pass == PipelinePass::forward && k + 1 < parts_)
      send(stage, k, task.micro_batch, false);
    if (task.pass == (split_ ? PipelinePass::backward : PipelinePass::weight) && k > 0)
      send(stage, k, task.micro_batch, true);
  }

  Nanoseconds duration(std::int64_t stage, const PipelineTask& task) const {
    const ChunkCost& cost = cost_of(problem_, stage, task.chunk);
    if (task.pass == PipelinePass::forward)
      return cost.forward;
    return task.pass == PipelinePass::backward ? backward_time(cost) : cost.backward_weight;
  }

  /// Updates the activations that a stage holds after a pass. If backward passes are not split, the
  /// weight gradient, their second half, releases all activations.
  void keep(std::int64_t stage, const PipelineTask& task, Nanoseconds start) {
    StageState& s = at(stage);
    StageTimes& times = line_.stages[static_cast<std::size_t>(stage)];
    PartState& p = state_of(part(stage, task), task.micro_batch);
    const ChunkCost& cost = cost_of(problem_, stage, task.chunk);
    switch (task.pass) {
    case PipelinePass::forward:
      internal_check(p.forward_start == kNotYet, "a forward pass runs twice");
      p.forward_start = start;
      ++s.held;
      s.bytes += cost.activation_bytes;
      break;
    case PipelinePass::backward:
      internal_check(!p.backward_done, "a backward pass runs twice");
      p.backward_done = true;
      if (split_) {
        --s.held;
        ++s.waiting;
        s.bytes += cost.weight_bytes - cost.activation_bytes;
      }
      break;
    case PipelinePass::weight:
      internal_check(!p.weight_done, "a weight gradient is made twice");
      p.weight_done = true;
      --(split_ ? s.waiting : s.held);
      s.bytes -= split_ ? cost.weight_bytes : cost.activation_bytes;
      break;
    }
    times.max_held = std::max(times.max_held, s.held);
    times.max_held_or_waiting = std::max(times.max_held_or_waiting, s.held + s.waiting);
    times.max_bytes = std::max(times.max_bytes, s.bytes);
  }

  /// Sends part k's result to part k + 1, or the gradient of its input to part k - 1.
  void send(std::int64_t stage, std::int64_t k, std::int64_t micro_batch, bool gradient) {
    StageState& s = at(stage);
    const std::int64_t to_part = gradient ? k - 1 : k + 1;
    const std::int64_t to = stage_of_part(problem_.kind, problem_.stages, to_part);
    PartState& receiver = state_of(to_part, micro_batch);
    Arrival& arrival = gradient ? receiver.gradient : receiver.input;
    arrival.made = s.free;
    if (to == stage) {
      arrival.arrived = s.free; // the receiving pass comes later in the same order
      return;
    }
    const Nanoseconds length = send_between(problem_, gradient ? k - 1 : k, gradient);
    Nanoseconds& link = s.links[to == (stage + 1) % problem_.stages ? 0 : 1];
    const Nanoseconds start = problem_.overlap_sends ? std::max(s.free, link) : s.free;
    arrival.arrived = link = start + length;
    if (!problem_.overlap_sends) {
      line_.stages[static_cast<std::size_t>(stage)].exposed += length;
      s.free = link;
    }
    s.sends.push_back({stage, to, k, micro_batch, gradient, start, link});
    wake(to);
  }

  void check_all_ran() {
    std::string waiting;
    for (std::int64_t i = 0; i < problem_.stages; ++i) {
      const auto& order = orders_[static_cast<std::size_t>(i)];
      if (at(i).next < order.size())
        waiting += fmt::format("{}stage {} has {} wait", waiting.empty() ? "" : ", ", i,
                               to_string(order[at(i).next], problem_.chunks));
    }
    internal_check(waiting.empty(), "stages of a pipeline wait for each other: " + waiting);
    for (const PartState& s : state_)
      internal_check(s.weight_done, "a pass of a pipeline is in no stage's order");
  }

  void finish() {
    std::vector<Nanoseconds> begin, end, finish(stages_.size());
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      StageTimes& times = line_.stages[i];
      times.end = stages_[i].free;
      begin.push_back(times.begin);
      end.push_back(times.end);
      line_.sends.insert(line_.sends.end(), stages_[i].sends.begin(), stages_[i].sends.end());
    }
    static_cast<PipelineTimes&>(line_) = finish_step(problem_, begin, end, finish);
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      StageTimes& times = line_.stages[i];
      times.finish = finish[i];
      times.tail = tail_time(problem_, static_cast<std::int64_t>(i));
      times.bubble = line_.period - times.busy - times.exposed - times.tail;
    }
  }

  const PipelineProblem& problem_;
  const std::vector<std::vector<PipelineTask>>& orders_;
  std::int64_t parts_;
  bool split_;
  std::vector<PartState> state_; ///< by part, then by micro-batch
  std::vector<StageState> stages_;
  std::deque<std::int64_t> queue_;
  PipelineTimeline line_;
};

} // namespace

PipelineTimeline simulate(const PipelineProblem& problem,
                          const std::vector<std::vector<PipelineTask>>& orders) {
  check_pipeline_problem(problem);
  internal_check(orders.size() == static_cast<std::size_t>(problem.stages),
                 "a pipeline needs an order of each stage");
  for (const auto& order : orders) {
    for (const PipelineTask& task : order)
      internal_check(task.micro_batch >= 0 && task.micro_batch < problem.micro_batches &&
                         task.chunk >= 0 && task.chunk < problem.chunks,
                     "an order has a pass of no micro-batch or chunk");
  }
  return StepSimulation(problem, orders).run();
}

PipelineTimeline simulate(const PipelineProblem& problem) {
  check_pipeline_problem(problem);
  std::vector<std::vector<PipelineTask>> orders;
  for (std::int64_t i = 0; i < problem.stages; ++i)
    orders.push_back(
        stage_order(problem.kind, problem.stages, problem.chunks, problem.micro_batches, i));
  return simulate(problem, orders);
}

} // namespace monet
