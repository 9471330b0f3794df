// The graphs of a space's runs, and what their designs share: one set for each training that
// designs choose.
#pragma once

#include "explore/evaluate/step_floors.hpp"

#include "monet/core_cost/mapping_file.hpp"
#include "monet/explore/space.hpp"
#include "monet/optimise/step_mode.hpp"
#include "monet/training/training.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace monet {

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
