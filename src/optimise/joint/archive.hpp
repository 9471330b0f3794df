// Every way to run a step that was tried, and the best of them for any amount of memory.
#pragma once

#include "monet/model/model_step.hpp"
#include "monet/tiling/covers.hpp"

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace monet {

/// A way to run the step.
struct JointWay {
  std::string name;
  std::shared_ptr<const TrainingGraph> step; ///< with what runs again as operators
  std::vector<OpId> runs; ///< of the operators of the step given; empty: each once, in order
  TilingMode mode = TilingMode::layer_by_layer;
  std::optional<FusionPlan> fusion;                 ///< of fused ones, all that is chosen
  std::shared_ptr<const CoreAllocation> allocation; ///< null: make_tiles() chooses
  Priority priority = Priority::latency;

  bool once() const { return runs.empty(); }
};

class JointArchive {
public:
  static constexpr std::int64_t kAnyMemory = std::numeric_limits<std::int64_t>::max();
  using Allowed = std::function<bool(const JointWay&)>;

  struct Tried {
    JointWay way;
    StepFigures figures;
  };

  explicit JointArchive(Objective objective) : objective_(objective) {}

  void add(JointWay way, const StepFigures& figures) {
    tried_.push_back({std::move(way), figures});
  }
  const std::vector<Tried>& tried() const { return tried_; }

  /// The best whose peak is no higher, of equals the one with the least peak, latency and energy;
  /// null where there is none.
  const Tried* best(std::int64_t max_bytes, const Allowed& allowed = {}) const {
    return first(allowed, [&](const Tried& tried) {
      const std::int64_t peak = tried.figures.peak_memory_bytes;
      return peak <= max_bytes
                 ? std::optional(std::tuple(value(tried), peak, tried.figures.latency_cycles,
                                            tried.figures.energy_pj))
                 : std::nullopt;
    });
  }
  /// The one with the least peak, of these the best; null where none is allowed.
  const Tried* least(const Allowed& allowed = {}) const {
    return first(allowed, [&](const Tried& tried) {
      return std::optional(std::pair(tried.figures.peak_memory_bytes, value(tried)));
    });
  }
  double value(const Tried& tried) const { return tried.figures.value(objective_); }

private:
  /// The smallest key, of those that have one.
  template <class Key>
  const Tried* first(const Allowed& allowed, const Key& key) const {
    const Tried* found = nullptr;
    for (const Tried& tried : tried_) {
      if (!tried.figures.feasible || (allowed && !allowed(tried.way)))
        continue;
      if (key(tried) && (found == nullptr || *key(tried) < *key(*found)))
        found = &tried;
    }
    return found;
  }

  Objective objective_;
  std::vector<Tried> tried_;
};

} // namespace monet
