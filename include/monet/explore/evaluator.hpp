// What a design of a space costs.
#pragma once

#include "monet/explore/design.hpp"
#include "monet/explore/space.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace monet {

/// Whether lower bounds say enough.
using BoundTest = std::function<bool(const DesignBound&)>;

/// Evaluates designs of one space. All functions may be called from several threads at once, and
/// give the same for the same design whatever came before.
class DesignEvaluator {
public:
  virtual ~DesignEvaluator() = default;
  /// Infeasible designs are results, not exceptions.
  virtual DesignResult evaluate(DesignId id) = 0;
  /// Far cheaper; lower bounds of what evaluate() gives.
  virtual DesignBound bound(DesignId id) = 0;
  /// The same as evaluate(), or nothing once `enough` holds of bounds that rise on the way.
  virtual std::optional<DesignResult> evaluate_unless(DesignId id, const BoundTest& enough) {
    static_cast<void>(enough);
    return evaluate(id);
  }
  /// Short trainings that it knows and has not given before: for other processes, which learn them.
  virtual std::vector<TrainingRecord> new_trainings() { return {}; }
  virtual void learn(std::span<const TrainingRecord> trainings) { static_cast<void>(trainings); }
};

class DesignStore;

/// The evaluator of a space: reads its network, makes the graphs of its runs, and shares what
/// designs have in common (graphs, costs of equal tiles on equal cores, short trainings of equal
/// arithmetic). Short trainings are looked for in the store, and put into it; null: none. Keeps
/// references. InputError where files are bad.
std::unique_ptr<DesignEvaluator> make_evaluator(const Space& space, DesignStore* store = nullptr);

} // namespace monet
