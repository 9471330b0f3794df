// Speed and memory of a stage's devices in clusters with unequal devices. Used by build.cpp,
// bounds.cpp and the planner.
#include "cluster/step/step.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace monet::cluster_step {

namespace {

constexpr std::int64_t kUnknown = 0;

std::int64_t usual_memory(const Cluster& cluster, const ClusterDevice& device) {
  const double bytes = cluster.memory_bytes > 0 ? cluster.memory_bytes : device.memory_bytes();
  return static_cast<std::int64_t>(bytes);
}

std::int64_t memory_of(const UnequalDevices& some, std::int64_t usual) {
  return some.memory_bytes > 0 ? static_cast<std::int64_t>(some.memory_bytes) : usual;
}

} // namespace

StageDevices devices_of(const Cluster& cluster, const ClusterDevice& device,
                        const ParallelStrategy& strategy, std::int64_t stage) {
  const std::int64_t usual = usual_memory(cluster, device);
  if (cluster.unequal.empty())
    return {1, usual};
  const std::int64_t count = strategy.ranks_of_stage();
  const std::int64_t first = stage * count;
  std::int64_t others = count;
  StageDevices worst{std::numeric_limits<double>::infinity(), kUnknown};
  const auto take = [&](double speed, std::int64_t memory) {
    worst.speed = std::min(worst.speed, speed);
    if (memory != kUnknown)
      worst.memory = worst.memory == kUnknown ? memory : std::min(worst.memory, memory);
  };
  for (const UnequalDevices& some : cluster.unequal) {
    const std::int64_t begin = std::max(first, some.first);
    const std::int64_t end = std::min(first + count, some.first + some.count);
    if (begin >= end)
      continue;
    others -= end - begin;
    take(some.speed, memory_of(some, usual));
  }
  if (others > 0)
    take(1, usual);
  return worst;
}

StageDevices best_devices(const Cluster& cluster, const ClusterDevice& device) {
  const std::int64_t usual = usual_memory(cluster, device);
  if (cluster.unequal.empty())
    return {1, usual};
  std::int64_t others = cluster.devices;
  std::vector<StageDevices> kinds;
  for (const UnequalDevices& some : cluster.unequal) {
    others -= some.count;
    kinds.push_back({some.speed, memory_of(some, usual)});
  }
  if (others > 0)
    kinds.push_back({1, usual});
  StageDevices best = kinds.front();
  for (const StageDevices& kind : kinds) {
    best.speed = std::max(best.speed, kind.speed);
    const bool known = kind.memory != kUnknown && best.memory != kUnknown;
    best.memory = known ? std::max(best.memory, kind.memory) : kUnknown;
  }
  return best;
}

std::string unequal_misfit(const Cluster& cluster) {
  for (const UnequalDevices& some : cluster.unequal) {
    if (some.device)
      return fmt::format("{}: devices {} to {} have a separate file, which the model of steps does "
                         "not support: set their speed and memory_bytes",
                         some.device->where.to_string(), some.first, some.first + some.count - 1);
  }
  return {};
}

} // namespace monet::cluster_step
