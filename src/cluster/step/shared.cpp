// Assigns the costs of weights that two blocks share, such as tied embeddings, to pipeline stages.
// Called by build.cpp and bounds.cpp.
#include "cluster/step/step.hpp"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <vector>

namespace monet::cluster_step {

namespace {

using cluster_cost::Block;
using cluster_cost::joined;
using cluster_cost::PassCost;
using cluster_cost::Profile;
using cluster_cost::SharedWeights;

PassCost less(PassCost pass, const PassCost& part) {
  pass.compute = std::max(pass.compute - part.compute, 0.0);
  pass.sharded = std::max(pass.sharded - part.sharded, 0.0);
  pass.host = std::max(pass.host - part.host, 0.0);
  pass.kernels -= part.kernels;
  return pass;
}

void update_once(Block& second, const SharedWeights& both) {
  second.update -= both.update;
  second.update_pj -= both.update_pj;
}

class Stages {
public:
  Stages(const Profile& profile, const ParallelStrategy& strategy,
         std::span<const std::size_t> begins)
      : has_(static_cast<std::size_t>(strategy.stages()),
             std::vector<bool>(profile.blocks.size(), false)) {
    for (std::int64_t stage = 0; stage < strategy.stages(); ++stage) {
      for (std::int64_t chunk = 0; chunk < strategy.parts_per_stage(); ++chunk) {
        const auto part =
            static_cast<std::size_t>(part_of(strategy.schedule, strategy.stages(), stage, chunk));
        for (std::size_t at = begins[part]; at < begins[part + 1]; ++at)
          has_[static_cast<std::size_t>(stage)][profile.sequence[at]] = true;
      }
    }
  }

  bool are_together(const SharedWeights& both) const {
    return std::ranges::any_of(
        has_, [&](const auto& blocks) { return blocks[both.first] && blocks[both.second]; });
  }
  /// The distance between the stages of the two blocks, in stages.
  std::int64_t distance(const SharedWeights& both) const {
    return std::abs(stage_of(both.first) - stage_of(both.second));
  }

private:
  std::int64_t stage_of(std::size_t block) const {
    return std::ranges::find_if(has_, [&](const auto& blocks) { return blocks[block]; }) -
           has_.begin();
  }
  std::vector<std::vector<bool>> has_; ///< by stage and block
};

/// Nanoseconds of an all-reduce of a rank's gradients with the same rank of another stage,
/// `distance` stages away.
double exchange_time(const Cluster& cluster, const ParallelStrategy& strategy,
                     std::int64_t distance, std::int64_t bytes) {
  const std::int64_t stage = strategy.ranks_of_stage();
  const GroupAxis group{distance * stage, 2};
  const CollectiveCost cost = collective_cost(place(cluster, std::span(&group, 1)),
                                              Collective::all_reduce, static_cast<double>(bytes));
  return static_cast<double>(cost.time);
}

} // namespace

Profile with_shared_weights(const Profile& profile, const Cluster* cluster,
                            const ParallelStrategy& strategy, std::span<const std::size_t> begins) {
  Profile with = profile;
  if (profile.shared.empty())
    return with;
  std::optional<Stages> stages;
  if (cluster && strategy.stages() > 1)
    stages.emplace(profile, strategy, begins);
  for (const SharedWeights& both : profile.shared) {
    Block& first = with.blocks[both.first];
    Block& second = with.blocks[both.second];
    if (!cluster || !stages || stages->are_together(both)) {
      update_once(second, both);
      if (!cluster)
        first.weight = less(first.weight, both.sum);
      continue;
    }
    first.weight = less(first.weight, both.sum);
    second.weight = joined(second.weight, both.accumulation);
    second.gradients += both.gradients;
    second.parameters += both.parameters;
    const double time =
        exchange_time(*cluster, strategy, stages->distance(both), both.gradient_bytes);
    first.between_stages += time;
    second.between_stages += time;
  }
  return with;
}

} // namespace monet::cluster_step
