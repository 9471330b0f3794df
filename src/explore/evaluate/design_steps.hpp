// Graphs of a space's runs, with the bounds and plans that designs share. There is one set for each
// training that designs choose.
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

/// Lower bounds of a step's figures under any schedule, derived from a chip's total memory and its
/// off-chip port. Takes microseconds per chip, except for the first chip of each memory size.
class StepFloors {
public:
  /// `step`: its views are folded; kept by reference. `made_once`: see StepBoundOptions.
  StepFloors(const TrainingGraph& step, bool made_once) : step_(&step), made_once_(made_once) {}

  /// Bounds for a chip: latency and energy of the compulsory off-chip traffic, including the data
  /// that does not fit into all on-chip memories together, and peak live memory. Thread-safe.
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
  std::map<int, Traffic> known_; ///< key: rounded memory size
};

struct DesignSteps {
  std::vector<TrainingGraph> graphs;                ///< per run, views folded; never moved
  std::vector<std::unique_ptr<StepFloors>> floors;  ///< per run
  std::vector<std::unique_ptr<SharedPlans>> shared; ///< per run
  MappingSubjects subjects;
};

class AllDesignSteps {
public:
  /// `space` is kept by reference. Throws InputError if the mapping file is invalid.
  explicit AllDesignSteps(const Space& space);

  /// The steps of a design, built when the first design needs them. Thread-safe. Throws InputError
  /// if the network is unusable.
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
