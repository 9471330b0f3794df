// Groups of neighbours, what each gains on its own, and the best cover of the step by them.
#pragma once

#include "optimise/fusion/evaluate.hpp"
#include "optimise/fusion/space.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace monet {

/// What a unit of each figure is worth.
struct FusionWeights {
  double latency = 0;
  double energy = 0;
  double dram = 0;
  double of(const StepFigures& f) const {
    return latency * static_cast<double>(f.latency_cycles) + energy * f.energy_pj +
           dram * static_cast<double>(f.offchip_bits);
  }
};

/// A group of a plan.
struct FusionGroup {
  std::vector<OpId> members; ///< ascending
  std::optional<StackSlices> slices;
};
using FusionGroups = std::vector<FusionGroup>; ///< by first member

FusionPlan plan_of(const FusionGroups& groups);

/// Groups that cost the same, solved once.
struct GroupKind {
  struct Choice {
    StackSlices slices; ///< in ids of the group's own step
    StepFigures figures;
  };
  std::vector<OpId> example;
  std::int64_t occurrences = 0;
  double potential = 0; ///< bits that members hand on, times occurrences
  bool evaluated = false;
  std::optional<StepFigures> apart; ///< layer by layer, on its own
  std::vector<Choice> choices;      ///< those that can be scheduled

  /// The best choice, if it saves anything.
  const Choice* best(const FusionWeights& weights) const;
  double gain(const FusionWeights& weights) const;
};

/// Neighbours in the order of operators, updates with those that make their gradients.
class FusionSegments {
public:
  FusionSegments(const FusionProblem& problem, const FusionEvaluator& evaluator,
                 const FusionOptions& options, const FusionOrder& order);

  /// Schedules groups on their own, those first that hand on most, as long as the options let it.
  /// Returns how many schedules that took.
  std::int64_t evaluate(std::span<const FusionWeights> weights, const SearchControl& control);

  /// The segments that save most together, each operator in one at most.
  FusionGroups cover(const FusionWeights& weights) const;

  /// Every group of kinds that save something, by what they save.
  struct Offer {
    std::uint32_t kind = 0;
    double gain = 0; ///< of all occurrences
  };
  std::vector<Offer> offers(const FusionWeights& weights) const;
  FusionGroups groups_of(std::uint32_t kind, const FusionWeights& weights) const;

  /// Operators without the updates that may join those that make their gradients.
  const std::vector<OpId>& sequence() const { return sequence_; }
  std::vector<KeepRate> rates(const FusionWeights& weights) const;
  struct Effort {
    std::int64_t schedules = 0;
    double tiles = 0;
  };
  /// Solves one kind, looking for what is best by any of the weights.
  Effort solve(GroupKind& kind, std::span<const FusionWeights> weights,
               const SearchControl& control) const;

private:
  struct Segment {
    std::uint32_t begin = 0; ///< of the sequence
    std::uint32_t end = 0;
    std::uint32_t kind = 0;
    std::vector<OpId> members;
  };
  void find();
  void add(std::uint32_t begin, std::uint32_t end, bool updates);

  const FusionProblem& problem_;
  const FusionEvaluator& evaluator_;
  const FusionOptions& options_;
  const FusionOrder& order_;
  std::vector<OpId> sequence_;
  std::vector<std::vector<OpId>> updates_of_; ///< per operator
  std::vector<Segment> segments_;             ///< by end
  std::vector<GroupKind> kinds_;
  std::map<std::string, std::uint32_t, std::less<>> kind_of_;
  KeepRate connected_{"linked through tensors"};
  KeepRate convex_{"convex"};
};

} // namespace monet
