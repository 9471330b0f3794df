// KnownSchedules: cache of the figures of schedules, for chips on which a step has the same
// schedule.
#pragma once

#include "monet/model/figures.hpp"
#include "monet/schedule/tile_costs.hpp"

#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace monet {

/// Cache of schedule figures for one step with the same options on many chips. A schedule depends
/// on a core's inner memories only through the costs of tiles. Chips that differ in the sizes of
/// inner memories thus have the same tiles and, if their tile costs are equal, the same schedule.
/// The oldest entries are evicted. Thread-safe; results do not depend on the content of the cache.
class KnownSchedules {
public:
  /// Key of a schedule. Keys are equal only for steps with equal schedules, if `way`
  /// identifies the tiling method. `best` is the value at which scheduling ends early.
  static std::string key(const Chip& chip, const TileCosts& costs, std::string_view way,
                         std::optional<double> best);

  /// Outcome of a schedule.
  struct Outcome {
    std::optional<StepFigures> figures; ///< nullopt: scheduling ended early
  };
  /// Outcome for a key; nullopt if it is not in the cache.
  std::optional<Outcome> find(const std::string& key) const;
  /// Adds an outcome and evicts the oldest one if the cache is full.
  void add(std::string key, const Outcome& outcome);

private:
  /// Maximum number of entries, whose keys have about 10 KB each.
  static constexpr std::size_t kMax = 512;

  mutable std::mutex mutex_;
  std::unordered_map<std::string, Outcome> known_;
  std::deque<const std::string*> order_; ///< keys of known_, oldest first
};

} // namespace monet
