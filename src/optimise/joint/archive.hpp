// Archive of every candidate way to run a step, and the best of them for any amount of memory.
#pragma once

#include "monet/model/model_step.hpp"
#include "monet/tiling/tiling.hpp"

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

/// One way to run the step: recomputation, fusion and core allocation.
struct JointWay {
  std::string name;
  std::shared_ptr<const TrainingGraph> step; ///< recomputed operators are operators of it
  std::vector<OpId> runs; ///< operator of the given step per run; empty: each once, in order
  TilingMode mode = TilingMode::layer_by_layer;
  std::optional<FusionPlan> fusion;                 ///< if fused, the complete plan
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

  /// The best way whose peak is at most `max_bytes`; ties go to the minimum peak, latency and
  /// energy. Null if there is no such way.
  const Tried* best(std::int64_t max_bytes, const Allowed& allowed = {}) const {
    return first(allowed, [&](const Tried& tried) {
      const std::int64_t peak = tried.figures.peak_memory_bytes;
      return peak <= max_bytes
                 ? std::optional(std::tuple(value(tried), peak, tried.figures.latency_cycles,
                                            tried.figures.energy_pj))
                 : std::nullopt;
    });
  }
  /// The allowed way with the minimum peak; ties go to the best of these. Null if no way is
  /// allowed.
  const Tried* least(const Allowed& allowed = {}) const {
    return first(allowed, [&](const Tried& tried) {
      return std::optional(std::pair(tried.figures.peak_memory_bytes, value(tried)));
    });
  }
  double value(const Tried& tried) const { return tried.figures.value(objective_); }

private:
  /// The allowed way with the smallest key, among ways that have a key.
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
