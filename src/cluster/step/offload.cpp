// Offload to host memory: finds the host link and adds the times of its copies to a profile. Used
// by build.cpp, bounds.cpp and the planner.
#include "base/shared/amounts.hpp"
#include "base/shared/text.hpp"
#include "cluster/step/step.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

namespace monet::cluster_step {

namespace {

using cluster_cost::Block;
using cluster_cost::Profile;

/// Nanoseconds of a copy over the host link, one way, while all devices that share the link copy as
/// much. Throws InfeasibleError for more than eleven days.
double copy_time(const HostLink& link, std::int64_t bytes) {
  if (bytes == 0)
    return 0;
  const double all = static_cast<double>(bytes) * static_cast<double>(link.shared_by);
  const double time = link.latency_ns + all / link.bandwidth_gb_per_s;
  constexpr double kLongest = 1e15; // ns: eleven days
  if (time > kLongest)
    throw InfeasibleError(fmt::format("{} over the host link take {}", human_bytes(bytes),
                                      human_duration(time * 1e-9, 3)));
  return time;
}

} // namespace

HostLink host_link_of(const Cluster& cluster, const ClusterDevice& device) {
  if (cluster.host_link.bandwidth_gb_per_s > 0 || !device.table)
    return cluster.host_link;
  return device.table->host_link;
}

std::string offload_misfit(const HostLink& link, const ParallelStrategy& strategy) {
  if (strategy.offload == OffloadKind::none || link.bandwidth_gb_per_s > 0)
    return {};
  return fmt::format("offload is {}, and neither the cluster nor its device has a host_link",
                     name_of(strategy.offload));
}

Profile offloaded(const Profile& profile, const HostLink& link, const ParallelStrategy& strategy) {
  Profile with = profile;
  for (Block& block : with.blocks) {
    if (offloads_activations(strategy.offload)) {
      block.forward.link = copy_time(link, block.stored_bytes);
      block.backward.link = block.forward.link;
    }
    if (offloads_states(strategy.offload))
      block.state_copy = copy_time(link, block.state_bytes);
  }
  return with;
}

} // namespace monet::cluster_step
