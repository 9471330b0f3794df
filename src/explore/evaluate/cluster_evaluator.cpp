// Evaluates designs of a space of clusters: builds the cluster of a design and models one training
// step on it. make_evaluator() creates this evaluator; explore() calls it through a DesignRunner.
#include "base/shared/text.hpp"
#include "explore/evaluate/evaluators.hpp"
#include "explore/shared/invalid_design.hpp"

#include "monet/explore/space.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <list>
#include <mutex>
#include <string>
#include <utility>

namespace monet {

namespace {

/// A cluster and its model, shared by designs that differ only in their parallel strategy. One
/// thread at a time may use it.
struct SharedCluster {
  SharedCluster(DesignedCluster of, std::shared_ptr<CoreCostCache> costs)
      : made(std::move(of)), model(made.cluster, made.device, made.workload, std::move(costs)) {}
  SharedCluster(const SharedCluster&) = delete;
  SharedCluster& operator=(const SharedCluster&) = delete;

  DesignedCluster made;
  ClusterModel model;
  std::size_t uses = 0;
};

/// Clusters that no thread is using, most recently used first. Results do not depend on which
/// clusters are kept.
class IdleClusters {
public:
  std::unique_ptr<SharedCluster> take(const std::string& key) {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(idle_, key, &Idle::first);
    if (found == idle_.end())
      return nullptr;
    std::unique_ptr<SharedCluster> cluster = std::move(found->second);
    idle_.erase(found);
    return cluster;
  }

  void give_back(std::string key, std::unique_ptr<SharedCluster> cluster) {
    constexpr std::size_t kMaxIdleClusters = 64;
    constexpr std::size_t kMaxUses = 10'000; // each use may add cached costs
    if (++cluster->uses > kMaxUses)
      return;
    const std::lock_guard lock(mutex_);
    idle_.emplace_front(std::move(key), std::move(cluster));
    if (idle_.size() > kMaxIdleClusters)
      idle_.pop_back();
  }

private:
  using Idle = std::pair<std::string, std::unique_ptr<SharedCluster>>;
  std::mutex mutex_;
  std::list<Idle> idle_;
};

class ClusterEvaluator : public DesignEvaluator {
public:
  explicit ClusterEvaluator(const Space& space) : space_(space) { try_network(); }

  DesignResult evaluate(DesignId id) override {
    DesignResult result;
    follow(id, result, [&](SharedCluster& cluster) { model(cluster, result); });
    return result;
  }

  /// Area and power are exact; the bounds of the step are trivial.
  DesignBound bound(DesignId id) override {
    DesignResult judged;
    follow(id, judged, [](SharedCluster&) {});
    DesignBound bound;
    bound.feasible = judged.feasible;
    bound.reason = judged.reason;
    bound.area_mm2 = judged.area_mm2;
    bound.peak_power_w = judged.peak_power_w;
    bound.frequency_hz = judged.frequency_hz;
    bound.runs.resize(space_.workload.runs.size());
    for (const std::string& metric : space_.workload.metrics)
      bound.metrics.push_back({metric, 0});
    return bound;
  }

private:
  /// Builds the network of the first design, so that a faulty network is reported as an error of
  /// the space and not as an infeasible design.
  void try_network() {
    const DesignId id = space_.first_design();
    try {
      const DesignedCluster first = cluster_of(space_, id);
      const ParallelStrategy strategy = strategy_of(space_, id, first.cluster.devices);
      if (first.workload.network)
        first.workload.network(strategy.samples_at_once());
    } catch (const InfeasibleError&) { // an infeasible design is a result, not an error
    }
  }

  std::unique_ptr<SharedCluster> cluster(DesignId id, const std::string& key) {
    std::unique_ptr<SharedCluster> known = idle_.take(key);
    return known ? std::move(known)
                 : std::make_unique<SharedCluster>(cluster_of(space_, id), costs_.get());
  }

  /// Checks the cluster's area, power and bandwidth budgets, then runs `rest` if they are met.
  template <class Rest>
  void follow(DesignId id, DesignResult& result, const Rest& rest) {
    result.id = id;
    result.frequency_hz = 1e9; // a cluster's cycles are nanoseconds
    try {
      std::string key = cluster_key(space_, id);
      std::unique_ptr<SharedCluster> shared = cluster(id, key);
      if (const ClusterDevice& device = shared->made.device; device.chip)
        result.reason = judge_chips(*device.chip, static_cast<double>(shared->made.cluster.devices),
                                    space_.budgets, result);
      if (result.reason.empty())
        rest(*shared);
      idle_.give_back(std::move(key), std::move(shared));
    } catch (const InfeasibleError& error) {
      result.reason = error.what();
    } catch (const InputError& error) { // parameter values that do not form a valid cluster
      result.reason = invalid_design(error);
    }
    result.feasible = result.reason.empty();
  }

  void model(SharedCluster& cluster, DesignResult& result) const {
    ClusterStep step;
    try {
      step = cluster.model.model(strategy_of(space_, result.id, cluster.made.cluster.devices));
    } catch (const InfeasibleError& error) { // the cluster stays usable for other strategies
      result.reason = error.what();
      return;
    } catch (const InputError& error) {
      result.reason = invalid_design(error);
      return;
    }
    result.reason = judge_memory(step);
    if (!result.reason.empty())
      return;
    StepFigures& figures = result.runs.emplace_back();
    figures.latency_cycles = step.time;
    figures.energy_pj = step.energy_pj;
    figures.peak_memory_bytes = step.largest_memory;
    const double values[] = {step.samples_per_second, step.tokens_per_second, step.mfu};
    for (std::size_t i = 0; i < space_.workload.metrics.size(); ++i)
      result.metrics.push_back({space_.workload.metrics[i], values[i]});
  }

  /// The reason why the fullest device has too little memory; empty if it has enough.
  std::string judge_memory(const ClusterStep& step) const {
    if (!step.fits()) {
      const StageResult& fullest = step.fullest();
      auto bytes = fullest.memory.bytes;
      bytes[static_cast<std::size_t>(MemoryOwner::offloaded_activations)] = 0; // in host memory
      const auto owner = static_cast<MemoryOwner>(std::ranges::max_element(bytes) - bytes.begin());
      return fmt::format("a device of stage {} keeps {}, {} more than it has, most of them {}",
                         &fullest - step.stages.data(), human_bytes(fullest.memory.total()),
                         human_bytes(fullest.memory.total() - fullest.memory.limit),
                         name_of(owner));
    }
    const double budget = space_.budgets.peak_memory_bytes;
    if (budget > 0 && static_cast<double>(step.largest_memory) > budget)
      return fmt::format("{} of memory are over the budget of {}", human_bytes(step.largest_memory),
                         human_bytes(static_cast<std::int64_t>(budget)));
    return {};
  }

  const Space& space_;
  SharedCosts costs_;
  IdleClusters idle_;
};

} // namespace

std::unique_ptr<DesignEvaluator> cluster_evaluator(const Space& space) {
  return std::make_unique<ClusterEvaluator>(space);
}

} // namespace monet
