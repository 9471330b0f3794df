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

/// Shards and samples are whole bytes: together no more than this is rounded up.
constexpr double kRounding = 1e-3;

/// A part of the model, one micro-batch.
struct PartCost {
  Nanoseconds forward = 0;
  Nanoseconds backward = 0; ///< what the gradient of the part's input waits for
  Nanoseconds weight = 0;   ///< of its own
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
  /// `speed`: no device is faster.
  StepBounds(const ClusterDevice& device, const Profile& base, const ParallelStrategy& strategy,
             double speed)
      : device_(device), base_(base), strategy_(strategy), speed_(speed),
        even_(has_even_parts(base, strategy)),
        more_ranks_(static_cast<double>(strategy.data) /
                    static_cast<double>(base_of(strategy).data)) {
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
    bound.energy_pj =
        energy * static_cast<double>(strategy_.data * strategy_.context * strategy_.tensor);
    return bound;
  }

private:
  PartCost cost_of(Block block) const {
    for (PassCost* pass : {&block.forward, &block.recompute, &block.backward, &block.weight}) {
      pass->compute -= pass->sharded;
      pass->gather = 0; // over data ranks: where more of them divide less, there is none
      pass->host -= pass->gather_host;
    }
    const BlockTimes times = times_of(block, strategy_, speed_);
    return {.forward = whole_nanoseconds(times.forward.total),
            .backward = whole_nanoseconds(times.backward.total),
            .weight = whole_nanoseconds(times.weight.total),
            .stored = block.stored_bytes};
  }

  /// What ZeRO divides from that stage on is divided by so much more than in the base, at most:
  /// what the base could not divide, more ranks cannot either.
  double sharded(int from) const { return strategy_.zero >= from ? more_ranks_ : 1; }
  /// On the device; of states that are offloaded nothing is counted.
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
    for (std::int64_t stage = 0; stage < strategy_.pipeline; ++stage) {
      bound.time = std::max(bound.time, time_of_stage(stage));
      bound.memory = std::max(bound.memory, memory_of_stage(stage));
    }
    return bound;
  }

  std::size_t part(std::int64_t stage, std::int64_t chunk) const {
    return static_cast<std::size_t>(part_of(strategy_.schedule, strategy_.pipeline, stage, chunk));
  }

  /// The stage's first pass waits for the first micro-batch to come down through the parts before.
  /// Where weight gradients are not split off, the last pass of a stage is the backward pass of its
  /// first part, and goes back up from there.
  Nanoseconds time_of_stage(std::int64_t stage) const {
    PartCost own;
    for (std::int64_t chunk = 0; chunk < strategy_.virtual_stages; ++chunk)
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
    for (std::int64_t chunk = 0; chunk < strategy_.virtual_stages; ++chunk) {
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

  /// Temporaries and what is stored, at least. What ZeRO gathers and scatters is not known: where
  /// more ranks divide less, it is less.
  std::int64_t passing(std::int64_t stage) const {
    std::int64_t least = parts_[part(stage, 0)].stored;
    for (std::int64_t chunk = 1; chunk < strategy_.virtual_stages; ++chunk)
      least = std::min(least, parts_[part(stage, chunk)].stored);
    const std::int64_t held = max_held(strategy_.schedule, strategy_.pipeline,
                                       strategy_.virtual_stages, strategy_.micro_batches(), stage);
    const std::int64_t stored = held * least;
    const bool moves = offloads_activations(strategy_.offload);
    std::int64_t most = 0;
    for (std::int64_t chunk = 0; chunk < strategy_.virtual_stages; ++chunk) {
      const auto [first, end] = ranges_[part(stage, chunk)];
      const auto blocks = std::span(base_.sequence).subspan(first, end - first);
      OffloadPeak peak{strategy_.zero >= 2 ? 0 : temporaries_of(base_, blocks), stored};
      if (moves)
        peak = strategy_.zero >= 2 ? OffloadPeak{} : offload_peak(base_, blocks, stored);
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

  /// Stages that are balanced by cost: one has its share of the work, one has the largest block.
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
    for (const auto& shared : base_.shared) { // perhaps on one stage
      parameters -= shared.parameter_bytes;
      gradients -= shared.gradient_bytes;
      states -= shared.state_bytes;
    }
    const Nanoseconds share = all.all() / strategy_.pipeline;
    // Every stage keeps a micro-batch of each of its parts at least.
    const std::int64_t stored = offloads_activations(strategy_.offload) ? 0 : all.stored;
    const std::int64_t bytes = kept(parameters, gradients, states) + stored;
    return {strategy_.micro_batches() * std::max(share, largest), bytes / strategy_.pipeline, 0};
  }

  const ClusterDevice& device_;
  const Profile& base_;
  const ParallelStrategy& strategy_;
  double speed_;
  bool even_;
  double more_ranks_;           ///< of data than the base has: so many times
  std::vector<PartCost> costs_; ///< of the profile's blocks
  std::vector<std::pair<std::size_t, std::size_t>> ranges_; ///< of parts, in the sequence
  std::vector<PartCost> parts_;
};

} // namespace

namespace {

/// The smallest prime factor; 1 of 1.
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
  base.tensor = strategy.tensor;
  base.sequence = strategy.sequence;
  base.context = strategy.context;
  base.expert = strategy.expert;
  base.data = strategy.expert * min_factor(strategy.data / strategy.expert);
  base.zero = strategy.zero;
  base.micro_batch = strategy.micro_batch;
  base.global_batch =
      base.data * base.micro_batch * std::min<std::int64_t>(strategy.micro_batches(), 2);
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
