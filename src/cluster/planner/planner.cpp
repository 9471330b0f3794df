// The parallelism planner: bounds every strategy, then models them from the smallest bound on until
// no bound is below the best result. `monet optimise parallelism` reports its result.
#include "monet/cluster/planner.hpp"

#include "base/shared/parallel.hpp"
#include "cluster/cost/blocks.hpp"
#include "cluster/step/bounds.hpp"
#include "cluster/step/step.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/warnings.hpp"
#include "monet/core_cost/core_cost.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <exception>
#include <limits>
#include <map>
#include <memory>
#include <utility>

namespace monet {

namespace {

using cluster_cost::Profile;
using cluster_cost::ProfileKey;
using cluster_step::StepBound;

constexpr std::size_t kBatch = 64; ///< strategies modelled at once, for any number of threads
constexpr std::size_t kMaxRunnersUp = 20;

/// The profile of a strategy, or the reason for its failure.
struct Priced {
  std::optional<Profile> profile;
  std::string why;
  std::exception_ptr input_error; ///< InputError: sizes are too large or the network is invalid
};

struct Fitted {
  PlannedStrategy planned;
  bool fits = false;
};

using Values = std::array<double, 3>; ///< time, memory, energy

double value_of(const Values& values, Objective objective) {
  return values[objective == Objective::latency ? 0 : objective == Objective::memory ? 1 : 2];
}
Values values_of(const StepBound& bound) {
  return {static_cast<double>(bound.time), static_cast<double>(bound.memory), bound.energy_pj};
}
Values values_of(const PlannedStrategy& planned) {
  return {static_cast<double>(planned.time), static_cast<double>(planned.memory),
          planned.energy_pj};
}
bool no_worse(const Values& a, const Values& b) {
  return a[0] <= b[0] && a[1] <= b[1] && a[2] <= b[2];
}

class Planner {
public:
  Planner(const Cluster& cluster, const ClusterDevice& device, const ClusterWorkload& workload,
          std::vector<ParallelStrategy> strategies, const PlannerOptions& options,
          const SearchControl& control)
      : cluster_(cluster), device_(device), strategies_(std::move(strategies)), options_(options),
        control_(control), profiler_(cluster, device, workload, std::make_shared<CoreCostCache>()),
        bounds_(strategies_.size()), fates_(strategies_.size(), StrategyStatus::open) {
    result_.memory_limit = cluster_step::best_devices(cluster, device).memory;
  }

  PlannerResult run() {
    const bool ready = control_.finishes([&] {
      const StopScope scope(control_.stop_request());
      price_families();
      price_bases();
    });
    if (!ready)
      throw control_.stopped("before any strategy was bounded");
    list_order();
    const bool done = control_.finishes([&] {
      const StopScope scope(control_.stop_request());
      search();
    });
    if (!done && result_.counts.evaluated == 0)
      throw control_.stopped("before any strategy was modelled");
    finish(done);
    return std::move(result_);
  }

private:
  enum class StrategyStatus : std::uint8_t { open, evaluated, too_large, impossible };

  bool over_limit(std::int64_t memory) const {
    return result_.memory_limit > 0 && memory > result_.memory_limit;
  }

  /// Computes the missing profiles of `wanted` in parallel. Existing entries are kept, and their
  /// addresses are stable. Progress is reported only if `phase` is not empty.
  void price(const std::map<ProfileKey, ParallelStrategy>& wanted, std::string_view phase) {
    std::vector<std::pair<const ParallelStrategy*, Priced*>> missing;
    for (const auto& [key, strategy] : wanted) {
      const auto [place, added] = profiles_.try_emplace(key);
      if (added)
        missing.emplace_back(&strategy, &place->second);
    }
    // Progress is reported after each portion.
    constexpr std::size_t kPortion = 32;
    for (std::size_t first = 0; first < missing.size(); first += kPortion) {
      const std::size_t count = std::min(kPortion, missing.size() - first);
      parallel_for(count, control_.jobs, [&](std::size_t i) {
        check_stop();
        const auto& [strategy, priced] = missing[first + i];
        try {
          priced->profile = profiler_.profile(*strategy);
        } catch (const InfeasibleError& error) {
          priced->why = error.what();
        } catch (const InputError& error) {
          priced->why = error.what();
          priced->input_error = std::current_exception();
        }
      });
      if (!phase.empty())
        control_.tell({.phase = phase,
                       .done = static_cast<std::int64_t>(first + count),
                       .total = static_cast<std::int64_t>(missing.size())});
    }
    result_.profiles += static_cast<std::int64_t>(missing.size());
  }
  const Priced& base(const ParallelStrategy& strategy) const {
    return profiles_.at(cluster_cost::profile_key(cluster_step::base_of(strategy)));
  }

  /// Profiles the two smallest micro-batches of each family, a set of strategies that differ only
  /// in the micro-batch. The memory of larger ones is extrapolated, which rules out most of them.
  void price_families() {
    const auto family_of = [](const ParallelStrategy& strategy) {
      ProfileKey key = cluster_cost::profile_key(cluster_step::base_of(strategy));
      key.micro_batch = 0;
      return key;
    };
    std::map<ProfileKey, std::map<std::int64_t, ParallelStrategy>> families;
    for (const ParallelStrategy& strategy : strategies_)
      families[family_of(strategy)].try_emplace(strategy.micro_batch,
                                                cluster_step::base_of(strategy));
    std::map<ProfileKey, ParallelStrategy> wanted;
    for (const auto& [key, members] : families) {
      auto member = members.begin();
      for (int i = 0; i < 2 && member != members.end(); ++i, ++member)
        wanted.emplace(cluster_cost::profile_key(member->second), member->second);
    }
    price(wanted, "parallelism: small micro-batches");
    parallel_runs(strategies_.size(), 256, control_.jobs, [&](std::size_t first, std::size_t n) {
      check_stop();
      for (std::size_t i = first; i < first + n; ++i)
        bound_memory(i, families.at(family_of(strategies_[i])));
    });
  }

  void bound_memory(std::size_t i, const std::map<std::int64_t, ParallelStrategy>& family) {
    const auto first = family.begin();
    const auto second = std::next(first);
    if (strategies_[i].micro_batch == first->first || second == family.end() ||
        strategies_[i].micro_batch == second->first)
      return;
    const Priced& one = base(first->second);
    const Priced& two = base(second->second);
    if (!one.profile || !two.profile)
      return;
    const Profile profile = cluster_step::with_samples(*one.profile, first->first, *two.profile,
                                                       second->first, strategies_[i].micro_batch);
    if (over_limit(cluster_step::step_bound(cluster_, device_, profile, strategies_[i]).memory))
      fates_[i] = StrategyStatus::too_large;
  }

  void price_bases() {
    std::map<ProfileKey, ParallelStrategy> wanted;
    for (std::size_t i = 0; i < strategies_.size(); ++i) {
      const ParallelStrategy of = cluster_step::base_of(strategies_[i]);
      if (fates_[i] == StrategyStatus::open)
        wanted.emplace(cluster_cost::profile_key(of), of);
    }
    price(wanted, "parallelism: divisions");
    parallel_runs(strategies_.size(), 256, control_.jobs, [&](std::size_t first, std::size_t n) {
      check_stop();
      for (std::size_t i = first; i < first + n; ++i)
        bound(i);
    });
  }

  void bound(std::size_t i) {
    if (fates_[i] != StrategyStatus::open)
      return;
    const Priced& priced = base(strategies_[i]);
    if (!priced.profile) {
      fates_[i] = StrategyStatus::impossible;
      return;
    }
    bounds_[i] = cluster_step::step_bound(cluster_, device_, *priced.profile, strategies_[i]);
    if (over_limit(bounds_[i].memory))
      fates_[i] = StrategyStatus::too_large;
  }

  void list_order() {
    for (std::size_t i = 0; i < strategies_.size(); ++i) {
      if (fates_[i] == StrategyStatus::open)
        order_.push_back(i);
      else if (fates_[i] == StrategyStatus::impossible && result_.why_impossible.empty())
        result_.why_impossible = base(strategies_[i]).why;
    }
    std::ranges::stable_sort(order_, {}, [&](std::size_t i) {
      return value_of(values_of(bounds_[i]), options_.objective);
    });
  }

  bool is_beaten(const StepBound& bound) const {
    const Values values = values_of(bound);
    if (!options_.front)
      return result_.best && value_of(values_of(*result_.best), options_.objective) <=
                                 value_of(values, options_.objective);
    return std::ranges::any_of(result_.front, [&](const PlannedStrategy& other) {
      return no_worse(values_of(other), values);
    });
  }

  void search() {
    std::vector<std::size_t> batch;
    while (next_ < order_.size()) {
      batch.clear();
      const std::size_t begin = next_;
      std::size_t at = begin;
      for (; at < order_.size() && batch.size() < kBatch; ++at) {
        if (!is_beaten(bounds_[order_[at]]))
          batch.push_back(order_[at]);
        else if (!options_.front)
          at = order_.size() - 1; // the remaining bounds are not smaller
      }
      model(batch);
      next_ = at;
      tell();
    }
  }

  void model(const std::vector<std::size_t>& batch) {
    std::map<ProfileKey, ParallelStrategy> wanted;
    for (const std::size_t i : batch)
      wanted.emplace(cluster_cost::profile_key(strategies_[i]), strategies_[i]);
    price(wanted, {});
    std::vector<std::optional<Fitted>> planned(batch.size());
    parallel_for(batch.size(), control_.jobs, [&](std::size_t at) {
      check_stop();
      const ParallelStrategy& strategy = strategies_[batch[at]];
      const Priced& priced = profiles_.at(cluster_cost::profile_key(strategy));
      if (!priced.profile)
        return;
      const ClusterStep step =
          cluster_step::build_step(cluster_, device_, *priced.profile, strategy, 0);
      planned[at] = {{strategy, step.time, step.largest_memory, step.energy_pj}, step.fits()};
    });
    for (std::size_t at = 0; at < batch.size(); ++at)
      take(batch[at], planned[at]);
  }

  void take(std::size_t i, const std::optional<Fitted>& modelled) {
    if (!modelled) {
      fates_[i] = StrategyStatus::impossible;
      if (result_.why_impossible.empty())
        result_.why_impossible = profiles_.at(cluster_cost::profile_key(strategies_[i])).why;
      return;
    }
    fates_[i] = StrategyStatus::evaluated;
    ++result_.counts.evaluated;
    const PlannedStrategy& planned = modelled->planned;
    if (!modelled->fits) {
      ++result_.overflowing;
      if (!result_.smallest || planned.memory < result_.smallest->memory)
        result_.smallest = planned;
      return;
    }
    keep(planned);
  }

  void keep(const PlannedStrategy& planned) {
    const auto before = [&](const PlannedStrategy& a, const PlannedStrategy& b) {
      const double x = value_of(values_of(a), options_.objective);
      const double y = value_of(values_of(b), options_.objective);
      return x != y ? x < y : std::pair(a.time, a.memory) < std::pair(b.time, b.memory);
    };
    auto& ranked = result_.runners_up;
    ranked.insert(std::ranges::upper_bound(ranked, planned, before), planned);
    if (ranked.size() > kMaxRunnersUp + 1)
      ranked.pop_back();
    result_.best = ranked.front();
    if (!options_.front)
      return;
    const Values values = values_of(planned);
    auto& front = result_.front;
    if (std::ranges::any_of(front, [&](const PlannedStrategy& other) {
          return no_worse(values_of(other), values);
        }))
      return;
    std::erase_if(front,
                  [&](const PlannedStrategy& other) { return no_worse(values, values_of(other)); });
    front.push_back(planned);
  }

  /// A lower bound on the objective of all strategies that have not been modelled yet.
  double bound_of_rest() const {
    double bound = std::numeric_limits<double>::infinity();
    for (std::size_t at = next_; at < order_.size(); ++at)
      if (fates_[order_[at]] == StrategyStatus::open)
        bound = std::min(bound, value_of(values_of(bounds_[order_[at]]), options_.objective));
    return bound;
  }

  void tell() const {
    SearchProgress progress{.phase = "parallelism: strategies",
                            .done = static_cast<std::int64_t>(next_),
                            .total = static_cast<std::int64_t>(order_.size())};
    if (result_.best)
      progress.best = value_of(values_of(*result_.best), options_.objective);
    if (next_ < order_.size())
      progress.bound = value_of(values_of(bounds_[order_[next_]]), options_.objective);
    control_.tell(progress);
  }

  void finish(bool done) {
    refuse_inputs();
    auto& counts = result_.counts;
    for (std::size_t i = 0; i < strategies_.size(); ++i) {
      counts.too_large += fates_[i] == StrategyStatus::too_large;
      counts.impossible += fates_[i] == StrategyStatus::impossible;
    }
    for (std::size_t at = 0; at < order_.size(); ++at) {
      if (fates_[order_[at]] == StrategyStatus::open)
        ++(at < next_ || done || is_beaten(bounds_[order_[at]]) ? counts.beaten : counts.left);
    }
    Certificate& found = result_.certificate;
    found.interrupted = counts.left > 0;
    if (result_.best) {
      found.best = value_of(values_of(*result_.best), options_.objective);
      found.bound = counts.left > 0 ? std::min(found.best, bound_of_rest()) : found.best;
      result_.runners_up.erase(result_.runners_up.begin());
    }
    std::ranges::sort(result_.front, {}, [](const PlannedStrategy& planned) {
      return std::pair(planned.time, planned.memory);
    });
  }

  /// Rethrows the first InputError if every strategy failed with one. If only some did, warns about
  /// them.
  void refuse_inputs() const {
    std::int64_t failed = 0;
    const Priced* first = nullptr;
    for (std::size_t i = 0; i < strategies_.size(); ++i) {
      if (fates_[i] != StrategyStatus::impossible) // a strategy that is too large has no profile
        continue;
      const auto own = profiles_.find(cluster_cost::profile_key(strategies_[i]));
      const Priced& priced = own == profiles_.end() ? base(strategies_[i]) : own->second;
      if (!priced.input_error)
        continue;
      first = first ? first : &priced;
      ++failed;
    }
    if (failed == 0)
      return;
    if (failed == static_cast<std::int64_t>(strategies_.size()))
      std::rethrow_exception(first->input_error);
    warn({}, fmt::format("{} of {} strategies cannot be modelled, the first because: {}", failed,
                         strategies_.size(), first->why));
  }

  const Cluster& cluster_;
  const ClusterDevice& device_;
  std::vector<ParallelStrategy> strategies_;
  const PlannerOptions& options_;
  const SearchControl& control_;
  cluster_cost::Profiler profiler_;
  std::map<ProfileKey, Priced> profiles_;
  std::vector<StepBound> bounds_; ///< of each strategy
  std::vector<StrategyStatus> fates_;
  std::vector<std::size_t> order_; ///< strategies that may fit, smallest bound first
  std::size_t next_ = 0;           ///< index into order_
  PlannerResult result_;
};

} // namespace

PlannerResult plan_parallelism(const Cluster& cluster, const ClusterDevice& device,
                               const ClusterWorkload& workload, const StrategySpace& space,
                               const PlannerOptions& options, const SearchControl& control) {
  if (options.objective == Objective::energy && !device.chip)
    throw InfeasibleError("energy is known for chips only, but the device is a kernel table");
  if (const std::string misfit = cluster_step::unequal_misfit(cluster); !misfit.empty())
    throw InfeasibleError(misfit);
  const HostLink link = cluster_step::host_link_of(cluster, device);
  const bool has_link = link.bandwidth_gb_per_s > 0;
  const bool none = space.offload.empty() ||
                    std::ranges::find(space.offload, OffloadKind::none) != space.offload.end();
  if (!none && !has_link)
    throw InfeasibleError(cluster_step::offload_misfit(link, {.offload = space.offload.front()}));
  return Planner(cluster, device, workload,
                 strategies_of(space, cluster.devices, workload, has_link), options, control)
      .run();
}

} // namespace monet
