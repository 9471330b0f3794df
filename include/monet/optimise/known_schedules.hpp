// What schedules of a step came to, for the next chip on which they are the same.
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

/// Of one step with the same options, on many chips. A schedule sees what lies below the outermost
/// memories of a core through the costs of tiles alone: chips that differ in the sizes of inner
/// memories have the same tiles, and where these cost the same, the same schedule. The oldest are
/// forgotten. From any thread; what is found does not depend on what is known.
class KnownSchedules {
public:
  /// Equal for steps whose schedules are, if their tiles are made in the same way, and given up at
  /// the same value.
  static std::string key(const Chip& chip, const TileCosts& costs, std::string_view way,
                         std::optional<double> best);

  struct Outcome {
    std::optional<StepFigures> figures; ///< none: it was given up
  };
  std::optional<Outcome> find(const std::string& key) const;
  void add(std::string key, const Outcome& outcome);

private:
  static constexpr std::size_t kMax = 512; ///< with keys of some 10 KB

  mutable std::mutex mutex_;
  std::unordered_map<std::string, Outcome> known_;
  std::deque<const std::string*> order_; ///< keys of known_, the oldest first
};

} // namespace monet
