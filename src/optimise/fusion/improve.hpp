// The search for a whole step: evaluates candidates, then improves the best. Its drivers choose the
// candidates: search_briefly(), and optimise_fusion() in search.cpp.
#pragma once

#include "optimise/fusion/complete.hpp"
#include "optimise/fusion/evaluate.hpp"
#include "optimise/fusion/groups.hpp"

#include "monet/optimise/fusion.hpp"
#include "monet/optimise/search.hpp"
#include "monet/optimise/step_mode.hpp"

#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// Covers the step with groups that gain as separate steps, then changes the best plan; each plan
/// is judged by a schedule of the whole step.
class FusionSearch {
protected:
  FusionSearch(const FusionProblem& problem, const FusionOptions& options,
               const SearchControl& control);

  bool stopped() const { return control_.interrupted(); }

  void layer_by_layer();
  /// Sets the certificate's lower bound for all plans within the maximum number of tiles.
  void bound();
  /// Schedules a plan of up to `max_tiles` tiles, and keeps it if it is the method's best.
  void consider(FusionAnswer& best, FusionPlan plan,
                std::size_t max_tiles = FusionEvaluator::kMaxTiles);
  /// Starts counting schedules towards options.evaluations; earlier ones do not count.
  void begin_counting() { first_ = result_.evaluations; }
  /// Counts schedules that were made elsewhere.
  void count(std::int64_t evaluations);
  /// Records the answer of a method, or the reason why it has none.
  void compare(FusionAnswer answer, std::string_view phase);
  /// Main part: enumerates the plans of a small step. For others, evaluates covers of groups, then
  /// changes of the best plan until the effort is spent or all are tried.
  void search_by_cost();
  /// Adds a plan to the front unless a point there is at least as good.
  void add_to_front(const FusionPlan& plan, const StepFigures& figures);
  /// Keeps a plan if it is the best.
  void offer(FusionMethod method, const FusionPlan& plan, const StepFigures& figures);
  /// Throws Stopped or InfeasibleError if no plan was found.
  void require_plan() const;
  /// Completes the certificate; `is_whole`: the search was not ended early.
  void certify(bool is_whole);

  const FusionProblem& problem_;
  const FusionOptions& options_;
  const SearchControl& control_;
  FusionEvaluator evaluator_;
  FusionOrder order_;
  std::vector<std::vector<CoreId>> cores_;
  std::unique_ptr<FusionSegments> segments_;
  FusionWeights weights_;
  FusionResult result_;
  double best_value_ = 0;
  std::size_t max_tiles_ = FusionEvaluator::kMaxTiles; ///< of the initial plans

private:
  bool proven() const { return best_ && best_value_ <= result_.certificate.bound; }
  std::int64_t spent() const { return result_.evaluations - first_; }
  void tell(std::string_view phase) const;
  void try_every(FusionPlans& plans);
  FusionWeights weights(Objective objective) const;
  void cover();
  std::vector<double> try_plans(const std::vector<FusionPlan>& plans);
  std::int64_t expected() const;
  void improve();

  StepFigures alone_; ///< figures of the layer-by-layer plan
  bool best_ = false;
  std::int64_t first_ = 0; ///< schedules not counted towards options_.evaluations
  double start_ = std::numeric_limits<double>::quiet_NaN(); ///< value of the baseline
  std::int64_t every_ = 0; ///< number of plans of an enumerated space
  std::string why_not_;
  std::set<std::string> seen_;
  double tiles_ = 0; ///< total tiles of the scheduled plans
  KeepRate scheduled_{"whole plans: fit the chip, within the limit of tiles"};
};

struct BriefSearchOptions {
  Objective objective = Objective::latency;
  Effort effort = Effort::normal;
};

/// Final search of choose_step(), from the stacks of the problem's tiling, whose figures are
/// `given`. Schedules the step 20 to 100 times, while the tiles total at most 500,000, and groups
/// at most 1,500 times with 600,000 tiles; a thorough effort has ten times these limits.
/// Returns nothing for the memory objective, given cores, or more than 40,000 tiles.
std::optional<FusionResult> search_briefly(const FusionProblem& problem,
                                           const BriefSearchOptions& brief,
                                           const StepFigures& given, const SearchControl& control);

} // namespace monet
