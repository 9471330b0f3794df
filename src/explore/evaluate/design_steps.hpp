// The graphs of a space's runs, and what their designs share: one set for each training that
// designs choose.
#pragma once

#include "monet/core_cost/mapping_file.hpp"
#include "monet/explore/space.hpp"
#include "monet/optimise/step_mode.hpp"
#include "monet/training_graph/training.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace monet {

/// Least figures of a step on any schedule, from little of a chip. Microseconds a chip, but for the
/// first chip of each size of memory.
class StepFloors {
public:
  /// A step whose views are folded. `made_once`: as StepBoundOptions has it.
  StepFloors(const TrainingGraph& step, bool made_once) : step_(&step), made_once_(made_once) {}

  /// Latency and energy of the off-chip memory for the traffic that is compulsory, and for what has
  /// no room in all memories together; the peak of live memory. From several threads.
  StepFigures of(const Chip& chip);

private:
  struct Traffic {
    double read = 0, written = 0; ///< bits
    std::int64_t peak_bytes = 0;
  };
  Traffic traffic(const Chip& chip);

  const TrainingGraph* step_;
  bool made_once_;
  std::mutex mutex_;
  std::map<int, Traffic> known_; ///< by size of the memories, in steps
};

struct DesignSteps {
  std::vector<TrainingGraph> graphs;                ///< per run, views folded; never moved
  std::vector<std::unique_ptr<StepFloors>> floors;  ///< per run
  std::vector<std::unique_ptr<SharedPlans>> shared; ///< per run
  MappingSubjects subjects;
};

class AllDesignSteps {
public:
  /// Keeps a reference. InputError where the mapping is bad.
  explicit AllDesignSteps(const Space& space);

  /// Made when the first design needs them; from several threads. InputError where the network does
  /// not do.
  const DesignSteps& of(DesignId id);
  const MappingFile* mapping() const { return mapping_ ? &*mapping_ : nullptr; }

private:
  struct Entry {
    std::mutex mutex;
    std::unique_ptr<DesignSteps> made;
  };
  std::unique_ptr<DesignSteps> make(DesignId id) const;

  const Space& space_;
  std::optional<MappingFile> mapping_;
  std::mutex mutex_;
  std::map<std::string, Entry> entries_; ///< by Space::settings_key()
};

} // namespace monet
