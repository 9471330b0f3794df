// Evaluation of the designs of a space.
#pragma once

#include "monet/explore/design.hpp"
#include "monet/explore/space.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace monet {

/// Test whether a design's lower bounds suffice to abandon its evaluation.
using BoundTest = std::function<bool(const DesignBound&)>;

/// Evaluator of the designs of one space. Functions are thread-safe, and results depend only on the
/// design, not on earlier calls.
class DesignEvaluator {
public:
  virtual ~DesignEvaluator() = default;
  /// Evaluates a design. Infeasible designs are results, not exceptions.
  virtual DesignResult evaluate(DesignId id) = 0;
  /// Lower bounds of evaluate(), at a much lower cost.
  virtual DesignBound bound(DesignId id) = 0;
  /// Evaluates a design as evaluate(), but returns nullopt once its bounds, which increase during
  /// evaluation, satisfy `enough`.
  virtual std::optional<DesignResult> evaluate_unless(DesignId id, const BoundTest& enough) {
    static_cast<void>(enough);
    return evaluate(id);
  }
  /// Short trainings not yet returned by this function; other processes receive them through
  /// learn().
  virtual std::vector<TrainingRecord> new_trainings() { return {}; }
  virtual void learn(std::span<const TrainingRecord> trainings) { static_cast<void>(trainings); }
};

class DesignStore;

/// Creates the evaluator of a space: reads its network and builds the graphs of its runs. Designs
/// share graphs, costs of equal tiles on equal cores, and short trainings of equal arithmetic.
/// Short trainings are looked up in and added to the store, if any. Keeps references to the space
/// and the store. Throws InputError for invalid files.
std::unique_ptr<DesignEvaluator> make_evaluator(const Space& space, DesignStore* store = nullptr);

} // namespace monet
