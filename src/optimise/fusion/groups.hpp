// Groups of neighbouring operators, the gain of each group, and the best cover of the step by
// groups.
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

/// Value of one unit of each figure.
struct FusionWeights {
  double latency = 0;
  double energy = 0;
  double dram = 0;
  double of(const StepFigures& f) const {
    return latency * static_cast<double>(f.latency_cycles) + energy * f.energy_pj +
           dram * static_cast<double>(f.offchip_bits);
  }
};

/// Group of a plan.
struct FusionGroup {
  std::vector<OpId> members; ///< ascending
  std::optional<StackSlices> slices;
};
using FusionGroups = std::vector<FusionGroup>; ///< sorted by first member

FusionPlan plan_of(const FusionGroups& groups);

/// Groups with equal costs, solved once.
struct GroupKind {
  struct Choice {
    StackSlices slices; ///< in ids of the group's step
    StepFigures figures;
  };
  std::vector<OpId> example;
  std::int64_t occurrences = 0;
  double potential = 0; ///< bits passed between members, times occurrences
  bool evaluated = false;
  std::optional<StepFigures> layer_by_layer; ///< layer by layer, as a separate step
  std::vector<Choice> choices;               ///< choices that can be scheduled

  /// The best choice if it improves on the layer-by-layer plan, otherwise null.
  const Choice* best(const FusionWeights& weights) const;
  double gain(const FusionWeights& weights) const;
};

/// Segments of consecutive operators; updates belong to the operators that make their gradients.
class FusionSegments {
public:
  FusionSegments(const FusionProblem& problem, const FusionEvaluator& evaluator,
                 const FusionOptions& options, const FusionOrder& order);

  /// Schedules group kinds as separate steps, starting with the most bits passed between members,
  /// within the limits of the options. Returns the number of schedules.
  std::int64_t evaluate(std::span<const FusionWeights> weights, const SearchControl& control);

  /// Disjoint segments with the maximum total gain.
  FusionGroups cover(const FusionWeights& weights) const;

  /// Groups of one kind with a positive gain, for sorting by gain.
  struct Offer {
    std::uint32_t kind = 0;
    double gain = 0; ///< total over all occurrences
  };
  std::vector<Offer> offers(const FusionWeights& weights) const;
  FusionGroups groups_of(std::uint32_t kind, const FusionWeights& weights) const;

  /// Operators in order, without the updates that may join the operators that make their gradients.
  const std::vector<OpId>& sequence() const { return sequence_; }
  std::vector<KeepRate> rates(const FusionWeights& weights) const;
  struct Effort {
    std::int64_t schedules = 0;
    double tiles = 0;
  };
  /// Schedules one kind and searches for the best choice under any of the weights.
  Effort solve(GroupKind& kind, std::span<const FusionWeights> weights,
               const SearchControl& control) const;

private:
  struct Segment {
    std::uint32_t begin = 0; ///< index into the sequence
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
  std::vector<Segment> segments_;             ///< sorted by end
  std::vector<GroupKind> kinds_;
  std::map<std::string, std::uint32_t, std::less<>> kind_of_;
  KeepRate connected_{"linked through tensors"};
  KeepRate convex_{"convex"};
};

} // namespace monet
