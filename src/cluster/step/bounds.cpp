// Computes lower bounds of a strategy's step (time, memory, energy) from the profile of a smaller
// strategy. The planner discards strategies by them.
#include "cluster/step/bounds.hpp"

#include "cluster/step/step.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace monet::cluster_step {

namespace {

using cluster_cost::Block;
using cluster_cost::PassCost;
using cluster_cost::Profile;

/// Maximum relative error from rounding shards and samples up to whole bytes.
constexpr double kRounding = 1e-3;

/// Cost of one micro-batch in one part of the model: ns, and bytes of stored activations.
struct PartCost {
  Nanoseconds forward = 0;
  Nanoseconds backward = 0; ///< up to the gradient of the part's input
  Nanoseconds weight = 0;   ///< weight gradients, if split off
  std::int64_t stored = 0;

  Nanoseconds all() const { return forward + backward + weight; }
  void add(const PartCost& other) {
    forward += other.forward;
    backward += other.backward;
    weight += other.weight;
    stored += other.stored;
  }
};

class StepBounds {
public:
  /// `speed`: relative speed of the fastest device.
  StepBounds(const ClusterDevice& device, const Profile& base, const ParallelStrategy& strategy,
             double speed)
      : device_(device), base_(base), strategy_(strategy), speed_(speed),
        even_(has_even_parts(base, strategy)),
        more_ranks_(static_cast<double>(strategy.parts_of(Divided::samples)) /
                    static_cast<double>(base_of(strategy).parts_of(Divided::samples))) {
    for (const Block& block : base.blocks)
      costs_.push_back(cost_of(block));
    if (!even_)
      return;
    const std::vector<std::size_t> begins = part_begins(base, strategy);
    for (std::size_t part = 0; part + 1 < begins.size(); ++part) {
      ranges_.emplace_back(begins[part], begins[part + 1]);
      PartCost sum;
      for (std::size_t at = begins[part]; at < begins[part + 1]; ++at)
        sum.add(costs_[base.sequence[at]]);
      parts_.push_back(sum);
    }
  }

  StepBound run() const {
    StepBound bound = even_ ? of_even_parts() : of_any_parts();
    if (device_.table)
      bound.memory += static_cast<std::int64_t>(device_.table->workspace_bytes);
    double energy = 0;
    for (const std::size_t i : base_.sequence) {
      const Block& block = base_.blocks[i];
      energy +=
          static_cast<double>(strategy_.micro_batches()) * (block.pass_pj - block.sharded_pj) +
          block.update_pj / sharded(1);
    }
    bound.energy_pj = energy * static_cast<double>(strategy_.ranks_of_stage());
    return bound;
  }

private:
  PartCost cost_of(Block block) const {
    for (PassCost* pass : {&block.forward, &block.recompute, &block.backward, &block.weight}) {
      pass->compute -= pass->sharded;
      pass->gather = 0; // more data ranks may divide fewer tensors, and then gather nothing
      pass->host -= pass->gather_host;
    }
    const BlockTimes times = times_of(block, strategy_, speed_);
    return {.forward = whole_nanoseconds(times.forward.total),
            .backward = whole_nanoseconds(times.backward.total),
            .weight = whole_nanoseconds(times.weight.total),
            .stored = block.stored_bytes};
  }

  /// The maximum factor by which ZeRO, if its stage is at least `from`, divides more than in the
  /// base profile. A tensor that the base could not divide stays undivided with more ranks.
  double sharded(int from) const { return strategy_.zero() >= from ? more_ranks_ : 1; }
  /// Lower bound of the bytes of parameters, gradients and states on the device. Offloaded states
  /// count as 0.
  std::int64_t kept(std::int64_t parameters, std::int64_t gradients, std::int64_t states) const {
    if (offloads_states(strategy_.offload))
      states = 0;
    const double bytes = static_cast<double>(parameters) / sharded(3) +
                         static_cast<double>(gradients) / sharded(2) +
                         static_cast<double>(states) / sharded(1);
    return static_cast<std::int64_t>(bytes * (1 - kRounding));
  }

  StepBound of_even_parts() const {
    StepBound bound;
    for (std::int64_t stage = 0; stage < strategy_.stages(); ++stage) {
      bound.time = std::max(bound.time, time_of_stage(stage));
      bound.memory = std::max(bound.memory, memory_of_stage(stage));
    }
    return bound;
  }

  std::size_t part(std::int64_t stage, std::int64_t chunk) const {
    return static_cast<std::size_t>(part_of(strategy_.schedule, strategy_.stages(), stage, chunk));
  }

  /// Lower bound of the step's time by one stage, in ns. Its first pass waits for the first
  /// micro-batch to pass through the earlier parts. If weight gradients are not split off, its last
  /// pass is the backward pass of its first part, which those of the earlier parts follow.
  Nanoseconds time_of_stage(std::int64_t stage) const {
    PartCost own;
    for (std::int64_t chunk = 0; chunk < strategy_.parts_per_stage(); ++chunk)
      own.add(parts_[part(stage, chunk)]);
    PartCost before;
    for (std::int64_t i = 0; i < stage; ++i)
      before.add(parts_[static_cast<std::size_t>(i)]);
    const Nanoseconds through = before.forward + strategy_.micro_batches() * own.all();
    const bool split = splits_backward(strategy_.schedule);
    return std::max(through + update_of(stage),
                    split ? 0 : through + before.backward + update_of(0));
  }

  template <class F>
  void for_each_block(std::int64_t stage, F f) const {
    for (std::int64_t chunk = 0; chunk < strategy_.parts_per_stage(); ++chunk) {
      const auto [first, end] = ranges_[part(stage, chunk)];
      for (std::size_t at = first; at < end; ++at)
        f(base_.sequence[at]);
    }
  }

  Nanoseconds update_of(std::int64_t stage) const {
    double update = 0;
    for_each_block(stage, [&](std::size_t i) {
      update += update_time(base_.blocks[i], strategy_.overlap, speed_);
    });
    return static_cast<Nanoseconds>(std::floor(update / sharded(1)));
  }

  /// Lower bound of the bytes of temporaries and stored activations. From ZeRO stage 2 on,
  /// temporaries count as 0: more ranks may divide fewer tensors, which shrinks the buffers of
  /// gathers.
  std::int64_t passing(std::int64_t stage) const {
    std::int64_t least = parts_[part(stage, 0)].stored;
    for (std::int64_t chunk = 1; chunk < strategy_.parts_per_stage(); ++chunk)
      least = std::min(least, parts_[part(stage, chunk)].stored);
    const std::int64_t held =
        max_held(strategy_.schedule, strategy_.stages(), strategy_.parts_per_stage(),
                 strategy_.micro_batches(), stage);
    const std::int64_t stored = held * least;
    const bool moves = offloads_activations(strategy_.offload);
    std::int64_t most = 0;
    for (std::int64_t chunk = 0; chunk < strategy_.parts_per_stage(); ++chunk) {
      const auto [first, end] = ranges_[part(stage, chunk)];
      const auto blocks = std::span(base_.sequence).subspan(first, end - first);
      OffloadPeak peak{strategy_.zero() >= 2 ? 0 : temporaries_of(base_, blocks), stored};
      if (moves)
        peak = strategy_.zero() >= 2 ? OffloadPeak{} : offload_peak(base_, blocks, stored);
      most = std::max(most, peak.temporaries + peak.stored);
    }
    return most;
  }

  std::int64_t memory_of_stage(std::int64_t stage) const {
    std::int64_t parameters = 0, gradients = 0, states = 0;
    std::set<std::size_t> present;
    for_each_block(stage, [&](std::size_t i) {
      const Block& block = base_.blocks[i];
      parameters += block.parameter_bytes;
      gradients += block.gradient_bytes;
      states += block.state_bytes;
      present.insert(i);
    });
    for (const auto& shared : base_.shared) {
      if (!present.contains(shared.first) || !present.contains(shared.second))
        continue;
      parameters -= shared.parameter_bytes;
      gradients -= shared.gradient_bytes;
      states -= shared.state_bytes;
    }
    return kept(parameters, gradients, states) + passing(stage);
  }

  /// The bound for stages that are balanced by cost: some stage has at least the mean work, and
  /// some stage has the largest block.
  StepBound of_any_parts() const {
    PartCost all;
    Nanoseconds largest = 0;
    std::int64_t parameters = 0, gradients = 0, states = 0;
    for (const std::size_t i : base_.sequence) {
      const Block& block = base_.blocks[i];
      all.add(costs_[i]);
      largest = std::max(largest, costs_[i].all());
      parameters += block.parameter_bytes;
      gradients += block.gradient_bytes;
      states += block.state_bytes;
    }
    for (const auto& shared : base_.shared) { // both blocks may be on one stage
      parameters -= shared.parameter_bytes;
      gradients -= shared.gradient_bytes;
      states -= shared.state_bytes;
    }
    const Nanoseconds share = all.all() / strategy_.stages();
    // Every stage stores at least one micro-batch of each of its parts.
    const std::int64_t stored = offloads_activations(strategy_.offload) ? 0 : all.stored;
    const std::int64_t bytes = kept(parameters, gradients, states) + stored;
    return {strategy_.micro_batches() * std::max(share, largest), bytes / strategy_.stages(), 0};
  }

  const ClusterDevice& device_;
  const Profile& base_;
  const ParallelStrategy& strategy_;
  double speed_;
  bool even_;
  double more_ranks_;                                       ///< data ranks, relative to the base
  std::vector<PartCost> costs_;                             ///< by block of the profile
  std::vector<std::pair<std::size_t, std::size_t>> ranges_; ///< by part, in the sequence
  std::vector<PartCost> parts_;
};

/// The smallest prime factor of a number, or 1 for 1.
std::int64_t min_factor(std::int64_t of) {
  for (std::int64_t factor = 2; factor * factor <= of; ++factor) {
    if (of % factor == 0)
      return factor;
  }
  return of;
}

} // namespace

ParallelStrategy base_of(const ParallelStrategy& strategy) {
  ParallelStrategy base;
  for (const AxisRoleRow& row : axis_roles()) {
    if (row.changes_profile)
      base.axes[row.role] = strategy.axes[row.role];
  }
  constexpr AxisRole kOutermost = kMeshRoles.front();
  const std::int64_t size = mesh_size(strategy, kOutermost);
  base.axes[kOutermost] = strategy.axes[kOutermost] / size * min_factor(size);
  base.micro_batch = strategy.micro_batch;
  base.global_batch = base.samples_at_once() * std::min<std::int64_t>(strategy.micro_batches(), 2);
  base.recompute = strategy.recompute;
  return base;
}

StepBound step_bound(const Cluster& cluster, const ClusterDevice& device, const Profile& base,
                     const ParallelStrategy& strategy) {
  const double speed = best_devices(cluster, device).speed;
  const Profile least = with_shared_weights(base, nullptr, strategy, {});
  if (strategy.offload == OffloadKind::none)
    return StepBounds(device, least, strategy, speed).run();
  const Profile with = offloaded(least, host_link_of(cluster, device), strategy);
  return StepBounds(device, with, strategy, speed).run();
}

Profile with_samples(const Profile& one, std::int64_t samples_one, const Profile& two,
                     std::int64_t samples_two, std::int64_t samples) {
  Profile profile = one;
  for (std::size_t i = 0; i < profile.blocks.size(); ++i) {
    Block& block = profile.blocks[i];
    const std::int64_t more = two.blocks[i].stored_bytes - one.blocks[i].stored_bytes;
    const double a_sample =
        static_cast<double>(more) / static_cast<double>(samples_two - samples_one);
    block.stored_bytes += static_cast<std::int64_t>((1 - kRounding) * a_sample *
                                                    static_cast<double>(samples - samples_one));
    block.temporary_bytes = 0;
    for (PassCost* pass : {&block.forward, &block.recompute, &block.backward, &block.weight})
      *pass = {};
    block.pass_pj = 0;
  }
  return profile;
}

} // namespace monet::cluster_step
