// The search for a whole step: evaluates candidates, then improves the best of them. Its drivers
// choose the candidates: search_briefly(), and optimise_fusion() in search.cpp.
#pragma once

#include "optimise/fusion/complete.hpp"
#include "optimise/fusion/evaluate.hpp"
#include "optimise/fusion/groups.hpp"

#include "monet/optimise/fusion.hpp"
#include "monet/optimise/search.hpp"

#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// Covers by groups that gain on their own, then changes of the best plan, each judged by a
/// schedule of the whole step.
class FusionSearch {
protected:
  FusionSearch(const FusionProblem& problem, const FusionOptions& options,
               const SearchControl& control);

  bool stopped() const { return control_.interrupted(); }

  void layer_by_layer();
  /// Sets the certificate's lower bound for all plans of as many tiles as are scheduled.
  void bound();
  /// Schedules a plan of up to `max_tiles` tiles, and takes it over if it is the best of the
  /// method's.
  void consider(FusionAnswer& best, FusionPlan plan,
                std::size_t max_tiles = FusionEvaluator::kMaxTiles);
  /// What is scheduled from here on counts towards options.evaluations; before, everything does.
  void begin_counting() { first_ = result_.evaluations; }
  /// Counts schedules that were made elsewhere.
  void count(std::int64_t evaluations);
  /// The answer of a method counts, or why there is none.
  void compare(FusionAnswer answer, std::string_view phase);
  /// The loop: plans from groups, evaluated, and changes of the best until there is nothing left.
  void search_by_cost();
  /// Keeps a plan on the front where nothing there is as good.
  void add_to_front(const FusionPlan& plan, const StepFigures& figures);
  /// Takes a plan over if it is the best.
  void offer(FusionMethod method, const FusionPlan& plan, const StepFigures& figures);
  /// Throws where nothing was found: Stopped or InfeasibleError.
  void require_plan() const;
  /// `is_whole`: nothing ended the search early.
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
  std::size_t max_tiles_ = FusionEvaluator::kMaxTiles; ///< of plans that were begun with

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

  StepFigures alone_; ///< layer by layer
  bool best_ = false;
  std::int64_t first_ = 0; ///< schedules that do not count towards options_.evaluations
  double start_ = std::numeric_limits<double>::quiet_NaN(); ///< layer by layer, or a plan given
  std::int64_t every_ = 0; ///< plans of a space that is searched as a whole
  std::string why_not_;
  std::set<std::string> seen_;
  double tiles_ = 0; ///< of all plans that were scheduled
  KeepRate scheduled_{"whole plans: fit the chip, in no more tiles than are searched"};
};

/// The search with which choose_step() ends: from the stacks that the problem's tiling gives, which
/// come to these figures. At least 20 schedules of the step and at most 100, as long as they have
/// 500,000 tiles together; of groups on their own 600,000 tiles, 1,500 schedules at most. Nothing
/// where no search goes: memory as the objective, cores given, more than 40,000 tiles.
std::optional<FusionResult> search_briefly(const FusionProblem& problem, Objective objective,
                                           const StepFigures& given, const SearchControl& control);

} // namespace monet
