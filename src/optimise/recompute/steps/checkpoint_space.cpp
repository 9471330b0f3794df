// Builds the recomputation problem of a training step and converts plans between both; all
// checkpoint searches start here.
#include "monet/base/errors.hpp"
#include "monet/optimise/checkpoint_search.hpp"
#include "monet/training_graph/liveness.hpp"
#include "monet/training_graph/training.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace monet {

namespace {

/// Cycles covered by the union of the intervals.
std::int64_t covered(std::vector<std::pair<std::int64_t, std::int64_t>>& intervals) {
  std::ranges::sort(intervals);
  std::int64_t sum = 0;
  std::int64_t end = std::numeric_limits<std::int64_t>::min();
  for (const auto& [from, to] : intervals) {
    if (to <= end)
      continue;
    sum += to - std::max(from, end);
    end = to;
  }
  return sum;
}

class SpaceBuilder {
public:
  SpaceBuilder(const TrainingGraph& step, std::span<const std::int64_t> costs)
      : graph_(step.graph), live_(find_liveness(step)), buffer_(live_.buffers.size(), kNone) {
    internal_check(costs.size() == graph_.operators().size(), "one cost for each operator");
    RecomputeProblem::Op data;
    data.name = "data";
    data.repeatable = false;
    space_.problem.ops.push_back(std::move(data));
    for (std::size_t i = 0; i < costs.size(); ++i) {
      space_.problem.ops.push_back(
          {.name = graph_.operators()[i].name,
           .cost = costs[i],
           .repeatable = recompute_obstacle(graph_, graph_.operators()[i]).empty()});
    }
  }

  CheckpointSpace build(std::span<const TensorId> pinned) {
    find_parts();
    add_buffers();
    for (std::size_t i = 0; i < graph_.operators().size(); ++i)
      add_accesses(i);
    hold_beyond_last_access();
    for (const TensorId id : pinned) {
      if (const auto producer = graph_.tensor(id).producer)
        op(producer->index()).repeatable = false;
    }
    find_needed();
    verify(space_.problem);
    return std::move(space_);
  }

private:
  RecomputeProblem::Op& op(std::size_t of_graph) { return space_.problem.ops[of_graph + 1]; }

  /// Determines the parts; a recomputed operator belongs to the part that follows it.
  void find_parts() {
    const auto& operators = graph_.operators();
    space_.backward.assign(operators.size() + 1, 0);
    space_.micro.assign(operators.size() + 1, 0);
    bool part = true;
    for (std::size_t i = operators.size(); i-- > 0;) {
      const Phase phase = operators[i].phase;
      if (phase != Phase::recompute)
        part = phase == Phase::backward || phase == Phase::update;
      space_.backward[i + 1] = phase == Phase::update ? 2 : part ? 1 : 0;
    }
    for (std::size_t i = 1; i < space_.backward.size(); ++i) {
      const bool begins = space_.backward[i - 1] != 0 && space_.backward[i] == 0;
      space_.micro[i] = space_.micro[i - 1] + (begins ? 1 : 0);
    }
  }

  static std::int64_t on_device(const LiveBuffer& live) {
    return live.owner == MemoryOwner::offloaded_activations ? 0 : live.bytes;
  }

  void add_buffers() {
    std::vector<bool> output(live_.buffers.size(), false);
    for (const TensorId id : graph_.outputs) {
      if (const auto buffer = live_.buffer_of[id.index()])
        output[*buffer] = true;
    }
    for (std::size_t b = 0; b < live_.buffers.size(); ++b) {
      const LiveBuffer& live = live_.buffers[b];
      const Tensor& tensor = graph_.tensor(live.tensor);
      RecomputeProblem::Buffer buffer{tensor.name, on_device(live), std::nullopt, false};
      buffer_[b] = static_cast<std::uint32_t>(space_.problem.buffers.size());
      if (!live.permanent) {
        const std::size_t producer = tensor.producer ? tensor.producer->index() + 1 : 0;
        buffer.producer = static_cast<std::uint32_t>(producer);
        buffer.kept = output[b];
        if (buffer.kept) // the first run writes the step's result
          space_.problem.ops[producer].repeatable = false;
        space_.problem.ops[producer].writes.push_back(buffer_[b]);
      }
      space_.problem.buffers.push_back(std::move(buffer));
      space_.tensor.push_back(live.tensor);
    }
    last_.assign(space_.problem.buffers.size(), 0);
  }

  void access(std::size_t of_op, std::uint32_t buffer) {
    auto& made = op(of_op);
    last_[buffer] = std::max(last_[buffer], static_cast<std::int64_t>(of_op) + 1);
    if (!contains(made.reads, buffer) && !contains(made.writes, buffer))
      made.reads.push_back(buffer);
  }
  static bool contains(const std::vector<std::uint32_t>& list, std::uint32_t id) {
    return std::ranges::find(list, id) != list.end();
  }

  void add_accesses(std::size_t i) {
    const Operator& made = graph_.operators()[i];
    for (const auto* list : {&made.inputs, &made.outputs}) {
      for (const auto& id : *list) {
        if (!id || !live_.buffer_of[id->index()])
          continue;
        const std::uint32_t buffer = buffer_[*live_.buffer_of[id->index()]];
        access(i, buffer);
        if (list == &made.outputs && space_.problem.buffers[buffer].producer != i + 1)
          writes_elsewhere(i, *id, buffer);
      }
    }
  }

  /// Marks operators of views and in-place results as not repeatable; neither result nor previous
  /// value can be recomputed.
  void writes_elsewhere(std::size_t i, TensorId output, std::uint32_t buffer) {
    const auto producer = space_.problem.buffers[buffer].producer;
    const bool in_place = graph_.tensor(output).alias_of.has_value();
    if (in_place && !producer)
      return; // running statistics: recompute_obstacle() handles them
    op(i).repeatable = false;
    if (in_place)
      space_.problem.ops[*producer].repeatable = false;
  }

  void hold_beyond_last_access() {
    for (std::size_t b = 0; b < live_.buffers.size(); ++b) {
      const std::uint32_t buffer = buffer_[b];
      const RecomputeProblem::Buffer& made = space_.problem.buffers[buffer];
      const std::int64_t last = live_.buffers[b].end - 1; // an operator of the graph
      if (made.producer && !made.kept && last + 1 > last_[buffer])
        access(static_cast<std::size_t>(last), buffer);
    }
  }

  void find_needed() {
    space_.needed.assign(space_.problem.buffers.size(), 0);
    for (std::size_t i = 0; i < space_.problem.ops.size(); ++i) {
      if (space_.backward[i] != 1)
        continue;
      for (const std::uint32_t b : space_.problem.ops[i].reads) {
        const auto producer = space_.problem.buffers[b].producer;
        if (producer && space_.backward[*producer] == 0)
          space_.needed[b] = 1;
      }
    }
  }

  const Graph& graph_;
  Liveness live_;
  std::vector<std::uint32_t> buffer_; ///< per live buffer
  std::vector<std::int64_t> last_;    ///< per buffer: last operator of the problem, or 0
  CheckpointSpace space_;
};

} // namespace

OperatorCosts operator_costs(const Timeline& timeline, const TrainingGraph& step) {
  const std::size_t count = step.graph.operators().size();
  OperatorCosts costs{std::vector<std::int64_t>(count), std::vector<std::int64_t>(count)};
  std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> busy(count);
  for (const TileRun& run : timeline.runs) {
    const RunCost& cost = timeline.cost_of(run);
    busy[run.op.index()].emplace_back(run.start.value, run.end.value);
    costs.energy[run.op.index()] += (cost.compute + cost.memory).units;
  }
  for (const Transfer& transfer : timeline.transfers) {
    const TransferCost& cost = timeline.cost_of(transfer);
    busy[transfer.op.index()].emplace_back(transfer.start.value, transfer.end.value);
    costs.energy[transfer.op.index()] +=
        (cost.link_energy + cost.offchip_energy + cost.onchip_energy).units;
  }
  for (std::size_t i = 0; i < count; ++i)
    costs.cycles[i] = covered(busy[i]);
  return costs;
}

CheckpointSpace checkpoint_space(const TrainingGraph& step, std::span<const std::int64_t> costs,
                                 std::span<const TensorId> pinned) {
  return SpaceBuilder(step, costs).build(pinned);
}

std::vector<OpId> runs_of(const RecomputePlan& plan) {
  std::vector<OpId> runs;
  for (const std::uint32_t run : plan.runs) {
    if (run > 0)
      runs.emplace_back(run - 1);
  }
  return runs;
}

RecomputePlan without_idle_runs(const RecomputeProblem& problem, const RecomputePlan& plan) {
  RecomputePlan kept;
  std::vector<std::uint8_t> wanted(problem.buffers.size(), 0);
  for (std::size_t b = 0; b < wanted.size(); ++b)
    wanted[b] = problem.buffers[b].kept ? 1 : 0;
  std::vector<std::uint32_t> left(problem.ops.size(), 0); // remaining runs of each operator
  for (const std::uint32_t run : plan.runs)
    ++left[run];
  for (std::size_t i = plan.runs.size(); i-- > 0;) {
    const RecomputeProblem::Op& op = problem.ops[plan.runs[i]];
    const bool first = --left[plan.runs[i]] == 0;
    const bool read =
        std::ranges::any_of(op.writes, [&](std::uint32_t b) { return wanted[b] != 0; });
    if (!first && !read)
      continue;
    kept.runs.push_back(plan.runs[i]);
    for (const std::uint32_t b : op.writes)
      wanted[b] = 0;
    for (const std::uint32_t b : op.reads)
      wanted[b] = 1;
  }
  std::ranges::reverse(kept.runs);
  return kept;
}

std::vector<std::uint8_t> carried(const CheckpointSpace& space, const RecomputePlan& plan) {
  const RecomputeProblem& problem = space.problem;
  const auto last = static_cast<std::uint32_t>(problem.ops.size() - 1);
  std::vector<std::uint32_t> part(plan.runs.size()); // operator before which each run is inserted
  std::vector<std::uint32_t> left(problem.ops.size(), 0);
  for (const std::uint32_t run : plan.runs)
    ++left[run];
  std::uint32_t next = last;
  for (std::size_t i = plan.runs.size(); i-- > 0;) {
    if (--left[plan.runs[i]] == 0)
      next = plan.runs[i];
    part[i] = next;
  }
  std::vector<std::uint8_t> of_forward(problem.buffers.size(),
                                       0); // 1 if the forward part made the copy
  std::vector<std::uint8_t> found(problem.buffers.size(), 0);
  for (std::size_t i = 0; i < part.size(); ++i) {
    const std::uint32_t run = plan.runs[i];
    const bool backward = space.backward[part[i]] != 0;
    for (const std::uint32_t b : problem.ops[run].reads) {
      if (backward && space.backward[run] != 2 && of_forward[b] != 0)
        found[b] = 1;
    }
    for (const std::uint32_t b : problem.ops[run].writes)
      of_forward[b] = backward ? 0 : 1;
  }
  return found;
}

std::int64_t stored_bytes(const CheckpointSpace& space, const RecomputePlan& plan) {
  const std::vector<std::uint8_t> found = carried(space, plan);
  std::vector<std::int64_t> sums(space.micro.back() + 1, 0);
  for (std::size_t b = 0; b < found.size(); ++b) {
    const RecomputeProblem::Buffer& buffer = space.problem.buffers[b];
    if (found[b] != 0)
      sums[space.micro[*buffer.producer]] += buffer.bytes;
  }
  return *std::ranges::max_element(sums);
}

} // namespace monet
