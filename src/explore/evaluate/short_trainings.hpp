// Short trainings of designs' arithmetic: each is made once, whichever designs need it.
#pragma once

#include "monet/explore/space.hpp"
#include "monet/explore/store.hpp"

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace monet {

/// Runs by key and seed. From several threads: a run that one of them makes, the others wait for.
class TrainingCache {
public:
  /// What is in the store is known; null: none.
  explicit TrainingCache(DesignStore* store);

  /// The records of a key and these seeds, in their order; `make` makes those that nobody knows.
  /// Threads that come for the same seeds share them out.
  std::vector<TrainingRecord> of(const std::string& key, std::span<const std::uint64_t> seeds,
                                 const std::function<TrainingRecord(std::uint64_t seed)>& make);
  /// Known since the last time; what was learned is not among them.
  std::vector<TrainingRecord> take_new();
  void learn(std::span<const TrainingRecord> records);

private:
  using Key = std::pair<std::string, std::uint64_t>;

  bool has(const Key& key);
  void keep(const TrainingRecord& record);
  void make_one(const Key& key, std::unique_lock<std::mutex>& lock,
                const std::function<TrainingRecord(std::uint64_t seed)>& make);

  DesignStore* store_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Key, TrainingRecord> known_;
  std::set<Key> under_way_;
  std::vector<TrainingRecord> new_;
};

class ShortTrainings {
public:
  /// Keeps references. `first`: a design whose training is prepared now, so that what is wrong
  /// with it is said before all work; InputError, InfeasibleError. A space without `accuracy:` has
  /// none.
  ShortTrainings(const Space& space, DesignStore* store, DesignId first);

  /// Those of kTrainedMetrics, or nothing where the space has none; takes as long as training does.
  /// Stopped where that is asked for.
  std::vector<Metric> metrics_of(DesignId id);
  TrainingCache& cache() { return cache_; }

private:
  const Space& space_;
  TrainingCache cache_;
};

} // namespace monet
