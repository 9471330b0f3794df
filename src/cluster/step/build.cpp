// Builds the step of a strategy from its profile: pipeline problem, simulation, memory and
// utilisation. Called by the planner and by ClusterModel.
#include "cluster/step/step.hpp"

#include <algorithm>
#include <map>
#include <ranges>
#include <set>
#include <utility>

namespace monet {

namespace cluster_step {

namespace {

using cluster_cost::Block;
using cluster_cost::PassCost;
using cluster_cost::Profile;

/// Builds the step of one strategy.
class StepBuild {
public:
  StepBuild(const Cluster& cluster, const ClusterDevice& device, const Profile& profile,
            const ParallelStrategy& strategy, std::vector<std::size_t> begins)
      : cluster_(cluster), device_(device), profile_(profile), strategy_(strategy),
        begins_(std::move(begins)), costs_(costs_at(1)) {
    if (cluster.unequal.empty())
      return;
    for (std::int64_t stage = 0; stage < strategy.stages(); ++stage) {
      const double speed = devices_of(cluster, device, strategy, stage).speed;
      if (speed != 1)
        costs_of_unequal_.emplace(stage, costs_at(speed));
    }
  }

  ClusterStep run(std::int64_t tokens_of_sample) {
    step_.strategy = strategy_;
    list_blocks();
    const PipelineProblem problem = make_problem();
    step_.timeline = simulate(problem);
    step_.time = step_.timeline.period;
    for (std::int64_t stage = 0; stage < strategy_.stages(); ++stage)
      add_stage(problem, stage);
    finish(tokens_of_sample);
    return std::move(step_);
  }

private:
  /// The blocks of a part, as indices in the profile.
  std::span<const std::size_t> blocks_of(std::int64_t part) const {
    const auto at = static_cast<std::size_t>(part);
    return std::span(profile_.sequence).subspan(begins_[at], begins_[at + 1] - begins_[at]);
  }
  const Block& block(std::size_t i) const { return profile_.blocks[i]; }
  const BlockCost& cost(std::int64_t stage, std::size_t i) const {
    const auto found = costs_of_unequal_.find(stage);
    return (found == costs_of_unequal_.end() ? costs_ : found->second)[i];
  }
  std::int64_t part(std::int64_t stage, std::int64_t chunk) const {
    return part_of(strategy_.schedule, strategy_.stages(), stage, chunk);
  }

  void list_blocks() {
    for (std::size_t at = 0; at < profile_.sequence.size(); ++at) {
      const std::size_t i = profile_.sequence[at];
      if (at > 0 && profile_.sequence[at - 1] == i) {
        ++step_.blocks.back().count;
        continue;
      }
      step_.blocks.push_back(costs_[i]);
    }
  }

  /// Costs of the profile's blocks on devices of relative speed `speed`.
  std::vector<BlockCost> costs_at(double speed) const {
    std::vector<BlockCost> costs;
    for (const Block& of : profile_.blocks)
      costs.push_back(cost_of(of, speed));
    return costs;
  }

  BlockCost cost_of(const Block& of, double speed) const {
    const BlockTimes times = times_of(of, strategy_, speed);
    BlockCost cost{.name = of.name, .forward = whole_nanoseconds(times.forward.total)};
    const double backward = times.backward.total;
    const Nanoseconds after = whole_nanoseconds(backward);
    cost.recompute = whole_nanoseconds(backward * times.share_of_recompute);
    const Nanoseconds joined = whole_nanoseconds(backward * times.share_of_weight);
    cost.backward_weight = std::min(joined, after - cost.recompute);
    cost.backward_input = after - cost.recompute - cost.backward_weight;
    cost.backward_weight += whole_nanoseconds(times.weight.total);
    for (const PassTime& pass : {times.forward, times.backward, times.weight}) {
      cost.collectives += static_cast<Nanoseconds>(pass.exchange);
      cost.host += static_cast<Nanoseconds>(pass.host);
      cost.offload += static_cast<Nanoseconds>(pass.link);
    }
    cost.update = whole_nanoseconds(update_time(of, strategy_.overlap, speed));
    for (const PassCost* pass : {&of.forward, &of.recompute, &of.backward, &of.weight})
      cost.kernels += pass->kernels;
    cost.parameters = of.parameter_count;
    cost.parameter_bytes = of.parameter_bytes;
    cost.gradient_bytes = of.gradient_bytes;
    cost.state_bytes = of.state_bytes;
    cost.stored_bytes = of.stored_bytes;
    cost.temporary_bytes = of.temporary_bytes;
    cost.output_bytes = of.output_bytes;
    cost.model_flops = of.model_flops;
    cost.masked_flops = of.masked_flops;
    cost.hardware_flops = of.hardware_flops;
    return cost;
  }

  PipelineProblem make_problem() {
    PipelineProblem problem;
    problem.kind = strategy_.schedule;
    problem.stages = strategy_.stages();
    problem.chunks = strategy_.parts_per_stage();
    problem.micro_batches = strategy_.micro_batches();
    for (std::int64_t stage = 0; stage < strategy_.stages(); ++stage) {
      for (std::int64_t chunk = 0; chunk < strategy_.parts_per_stage(); ++chunk)
        problem.costs.push_back(chunk_cost(stage, part(stage, chunk)));
      problem.tails.push_back(tail_of(stage));
    }
    if (strategy_.stages() > 1)
      add_sends(problem);
    return problem;
  }

  ChunkCost chunk_cost(std::int64_t stage, std::int64_t number) const {
    ChunkCost sum;
    for (const std::size_t i : blocks_of(number)) {
      const BlockCost& of = cost(stage, i);
      sum.forward += of.forward;
      sum.backward_input += of.backward_input;
      sum.backward_weight += of.backward_weight;
      sum.recompute += of.recompute;
      sum.activation_bytes += of.stored_bytes;
      sum.weight_bytes += block(i).weight_bytes;
    }
    return sum;
  }

  void add_sends(PipelineProblem& problem) const {
    problem.overlap_sends = strategy_.overlap;
    const GroupPlacement next = cluster_cost::neighbours(cluster_, strategy_);
    const std::vector<AxisRole> copies = roles_with_whole_inputs(strategy_);
    const GroupPlacement ranks = cluster_cost::group_of(cluster_, strategy_, copies);
    const std::int64_t parts = strategy_.parts();
    for (std::int64_t number = 0; number + 1 < parts; ++number) {
      const auto bytes = static_cast<double>(block(blocks_of(number).back()).output_bytes);
      // Each tensor rank sends a part of the activations that all of them replicate, and the
      // receivers gather the parts (Narayanan et al. 2021, section 4.1).
      const bool alike = ranks.ranks > 1;
      const double sent = alike ? bytes / static_cast<double>(ranks.ranks) : bytes;
      Nanoseconds time = collective_cost(next, Collective::point_to_point, sent).time;
      if (alike)
        time += collective_cost(ranks, Collective::all_gather, bytes).time;
      problem.forward_sends.push_back(time);
      problem.backward_sends.push_back(time);
    }
  }

  template <class F>
  void for_each_block(std::int64_t stage, F f) const {
    for (std::int64_t chunk = 0; chunk < strategy_.parts_per_stage(); ++chunk) {
      for (const std::size_t i : blocks_of(part(stage, chunk)))
        f(i);
    }
  }

  /// The work of a stage after its last pass. With overlap, gradients are exchanged as blocks
  /// finish their last backward pass, the last block first, and the stage waits for the rest.
  /// Updated parameters are then gathered during the next forward pass, and the stage waits for the
  /// excess.
  StageTail tail_of(std::int64_t stage) const {
    std::vector<std::size_t> blocks;
    for_each_block(stage, [&](std::size_t i) { blocks.push_back(i); });
    double now = 0;
    double free = 0;
    double gather = 0;
    double forward = 0;
    double update = 0;
    double between = 0;
    const double speed = devices_of(cluster_, device_, strategy_, stage).speed;
    for (const std::size_t i : std::views::reverse(blocks)) {
      const BlockCost& of = cost(stage, i);
      now += static_cast<double>(of.recompute + of.backward_input + of.backward_weight);
      free = std::max(free, now) + block(i).gradients;
      gather += block(i).parameters;
      forward += static_cast<double>(of.forward);
      update += update_time(block(i), strategy_.overlap, speed);
      between += block(i).between_stages;
    }
    double exposed = strategy_.overlap ? std::max(0.0, free - now) : 0.0;
    if (!strategy_.overlap) {
      for (const std::size_t i : blocks)
        exposed += block(i).gradients;
    }
    exposed += strategy_.overlap ? std::max(0.0, gather - forward) : gather;
    return {whole_nanoseconds(exposed + between), whole_nanoseconds(update)};
  }

  void add_stage(const PipelineProblem& problem, std::int64_t stage) {
    StageResult result;
    const StageTimes& times = step_.timeline.stages[static_cast<std::size_t>(stage)];
    const StageTail& tail = problem.tails[static_cast<std::size_t>(stage)];
    StageShare& share = result.share;
    const double speed = devices_of(cluster_, device_, strategy_, stage).speed;
    for_each_block(stage, [&](std::size_t i) {
      const BlockCost& of = cost(stage, i);
      const double again = block(i).recompute.compute / speed;
      share.recompute += problem.micro_batches * static_cast<Nanoseconds>(again);
      share.collectives += problem.micro_batches * of.collectives;
      share.host += problem.micro_batches * of.host;
      share.offload += problem.micro_batches * of.offload;
      ++result.blocks;
    });
    share.compute = times.busy - share.recompute - share.collectives - share.host - share.offload;
    share.sends = times.exposed;
    share.gradients = tail.synchronise;
    share.update = times.tail - tail.synchronise;
    share.bubble = times.bubble;
    result.first_block =
        static_cast<std::int64_t>(begins_[static_cast<std::size_t>(part(stage, 0))]);
    add_memory(result, stage, times);
    step_.stages.push_back(result);
  }

  void add_memory(StageResult& result, std::int64_t stage, const StageTimes& times) const {
    auto& bytes = result.memory.bytes;
    const auto at = [&](MemoryOwner owner) -> std::int64_t& {
      return bytes[static_cast<std::size_t>(owner)];
    };
    std::set<std::size_t> present;
    for_each_block(stage, [&](std::size_t i) {
      present.insert(i);
      result.parameters += block(i).parameter_count;
      at(MemoryOwner::parameters) += block(i).parameter_bytes;
      at(MemoryOwner::gradients) += block(i).gradient_bytes;
      at(MemoryOwner::optimizer_state) += block(i).state_bytes;
    });
    for (const auto& shared : profile_.shared) {
      if (!present.contains(shared.first) || !present.contains(shared.second))
        continue;
      result.parameters -= shared.count;
      at(MemoryOwner::parameters) -= shared.parameter_bytes;
      at(MemoryOwner::gradients) -= shared.gradient_bytes;
      at(MemoryOwner::optimizer_state) -= shared.state_bytes;
    }
    at(MemoryOwner::stored_activations) = times.max_bytes;
    result.memory.in_flight = times.max_held;
    add_passing(result.memory, stage);
    move_states(result.memory, stage);
    result.memory.limit = devices_of(cluster_, device_, strategy_, stage).memory;
    result.memory.workspace =
        device_.table ? static_cast<std::int64_t>(device_.table->workspace_bytes) : 0;
  }

  /// Adds temporaries and stored activations at the peak of a stage. Its parts run one at a time,
  /// so the part with the largest peak decides.
  void add_passing(StageMemory& memory, std::int64_t stage) const {
    const auto at = [&](MemoryOwner owner) -> std::int64_t& {
      return memory.bytes[static_cast<std::size_t>(owner)];
    };
    const std::int64_t stored = at(MemoryOwner::stored_activations);
    OffloadPeak worst;
    for (std::int64_t chunk = 0; chunk < strategy_.parts_per_stage(); ++chunk) {
      const auto blocks = blocks_of(part(stage, chunk));
      const OffloadPeak peak = offloads_activations(strategy_.offload)
                                   ? offload_peak(profile_, blocks, stored)
                                   : OffloadPeak{temporaries_of(profile_, blocks), stored};
      if (chunk == 0 || peak.temporaries + peak.stored > worst.temporaries + worst.stored)
        worst = peak;
    }
    at(MemoryOwner::temporaries) = worst.temporaries;
    at(MemoryOwner::stored_activations) = worst.stored;
    if (!offloads_activations(strategy_.offload))
      return;
    at(MemoryOwner::offloaded_activations) = stored;
    memory.host += stored;
  }

  void move_states(StageMemory& memory, std::int64_t stage) const {
    if (!offloads_states(strategy_.offload))
      return;
    std::vector<std::size_t> blocks;
    for_each_block(stage, [&](std::size_t i) { blocks.push_back(i); });
    std::int64_t& states = memory.bytes[static_cast<std::size_t>(MemoryOwner::optimizer_state)];
    memory.host += states;
    states = std::min(states, on_their_way(profile_, blocks, &Block::state_bytes));
  }

  void finish(std::int64_t tokens_of_sample) {
    const double seconds = static_cast<double>(step_.time) * 1e-9;
    step_.samples_per_second = static_cast<double>(strategy_.global_batch) / seconds;
    step_.tokens_per_second = step_.samples_per_second * static_cast<double>(tokens_of_sample);
    double model = 0;
    double masked = 0;
    double hardware = 0;
    for (const BlockCost& cost : step_.blocks) {
      model += static_cast<double>(cost.count) * cost.model_flops;
      masked += static_cast<double>(cost.count) * cost.masked_flops;
      hardware += static_cast<double>(cost.count) * cost.hardware_flops;
    }
    const double a_device = static_cast<double>(strategy_.micro_batches()) /
                            static_cast<double>(strategy_.stages()) / seconds * 1e-12;
    if (profile_.peak_tflops > 0) {
      step_.mfu = model * a_device / profile_.peak_tflops;
      step_.mfu_with_masked = (model + masked) * a_device / profile_.peak_tflops;
      step_.hfu = hardware * a_device / profile_.peak_tflops;
    }
    double energy = 0;
    for (const std::size_t i : profile_.sequence)
      energy +=
          static_cast<double>(strategy_.micro_batches()) * block(i).pass_pj + block(i).update_pj;
    step_.energy_pj = energy * static_cast<double>(strategy_.ranks_of_stage());
    for (const StageResult& stage : step_.stages) {
      step_.largest_memory = std::max(step_.largest_memory, stage.memory.total());
      step_.largest_host = std::max(step_.largest_host, stage.memory.host);
    }
  }

  const Cluster& cluster_;
  const ClusterDevice& device_;
  const Profile& profile_;
  const ParallelStrategy& strategy_;
  std::vector<std::size_t> begins_;                                 ///< of parts, in the sequence
  std::vector<BlockCost> costs_;                                    ///< by block of the profile
  std::map<std::int64_t, std::vector<BlockCost>> costs_of_unequal_; ///< by stage of another speed
  ClusterStep step_;
};

} // namespace

ClusterStep build_step(const Cluster& cluster, const ClusterDevice& device, const Profile& profile,
                       const ParallelStrategy& strategy, std::int64_t tokens) {
  const Profile own = strategy.offload == OffloadKind::none
                          ? profile
                          : offloaded(profile, host_link_of(cluster, device), strategy);
  const std::vector<std::size_t> begins = part_begins(own, strategy);
  const Profile placed = with_shared_weights(own, &cluster, strategy, begins);
  return StepBuild(cluster, device, placed, strategy, begins).run(tokens);
}

} // namespace cluster_step

std::int64_t StageMemory::total() const {
  return monet::total(bytes) + workspace;
}

const StageResult& ClusterStep::fullest() const {
  return *std::ranges::max_element(stages, {}, [](const StageResult& stage) {
    const StageMemory& memory = stage.memory;
    return std::pair(memory.limit > 0, memory.total() - memory.limit);
  });
}

} // namespace monet
