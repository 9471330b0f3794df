// ClusterModel: validates a strategy and builds its step, with profiles cached per workload. Called
// by `monet cluster` and by exploration.
#include "cluster/cost/blocks.hpp"
#include "cluster/cost/layout.hpp"
#include "cluster/step/step.hpp"

#include "monet/base/errors.hpp"
#include "monet/cluster/cluster_step.hpp"
#include "monet/core_cost/core_cost.hpp"

#include <fmt/core.h>
#include <fmt/format.h>

#include <map>

namespace monet {

struct ClusterModel::Parts {
  const Cluster& cluster;
  const ClusterDevice& device;
  const ClusterWorkload& workload;
  cluster_cost::Profiler profiler;
  std::map<cluster_cost::ProfileKey, cluster_cost::Profile> profiles;
};

ClusterModel::ClusterModel(const Cluster& cluster, const ClusterDevice& device,
                           const ClusterWorkload& workload, std::shared_ptr<CoreCostCache> costs) {
  if (!costs)
    costs = std::make_shared<CoreCostCache>();
  parts_ = std::make_unique<Parts>(
      Parts{cluster, device, workload, {cluster, device, workload, std::move(costs)}, {}});
}
ClusterModel::~ClusterModel() = default;

ClusterStep ClusterModel::model(const ParallelStrategy& strategy) {
  std::vector<std::string> problems = find_misfits(strategy, parts_->cluster.devices);
  const HostLink link = cluster_step::host_link_of(parts_->cluster, parts_->device);
  if (std::string misfit = cluster_step::offload_misfit(link, strategy); !misfit.empty())
    problems.push_back(std::move(misfit));
  if (std::string misfit = cluster_step::unequal_misfit(parts_->cluster); !misfit.empty())
    problems.push_back(std::move(misfit));
  if (!problems.empty())
    throw InfeasibleError(fmt::format("{}", fmt::join(problems, "; ")));
  const std::string misfit = cluster_cost::sizes_misfit(parts_->workload, strategy);
  if (!misfit.empty())
    throw InfeasibleError(misfit);
  const cluster_cost::ProfileKey key = cluster_cost::profile_key(strategy);
  auto found = parts_->profiles.find(key);
  if (found == parts_->profiles.end())
    found = parts_->profiles.emplace(key, parts_->profiler.profile(strategy)).first;
  const auto& transformer = parts_->workload.transformer;
  return cluster_step::build_step(parts_->cluster, parts_->device, found->second, strategy,
                                  transformer ? transformer->sequence : 0);
}

} // namespace monet
