// Short trainings of designs' arithmetic. Each training runs once, even if several designs need it.
#pragma once

#include "monet/explore/space.hpp"
#include "monet/explore/store.hpp"

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace monet {

/// Training records by key and seed. Thread-safe: while one thread runs a training, other threads
/// that need it wait.
class TrainingCache {
public:
  /// Starts with the records of the store. `store` may be null: no store.
  explicit TrainingCache(DesignStore* store);

  /// The records of a key, in the order of `seeds`. `make` computes missing records; threads that
  /// need the same seeds divide them among themselves.
  std::vector<TrainingRecord> of(const std::string& key, std::span<const std::uint64_t> seeds,
                                 const std::function<TrainingRecord(std::uint64_t seed)>& make);
  /// Records made, or found in the store, since the last call; learned records are not included.
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
  /// `space` and `store` are kept by reference. The training of design `first` is prepared at once,
  /// so that its errors are reported before any work: InputError, InfeasibleError. A space without
  /// `accuracy:` has no trainings.
  ShortTrainings(const Space& space, DesignStore* store, DesignId first);

  /// The metrics in kTrainedMetrics of a design; empty if the space has no `accuracy:`. Trains if
  /// necessary, which may take long; throws Stopped on a stop request.
  std::vector<Metric> metrics_of(DesignId id);
  TrainingCache& cache() { return cache_; }

private:
  const Space& space_;
  TrainingCache cache_;
};

} // namespace monet
