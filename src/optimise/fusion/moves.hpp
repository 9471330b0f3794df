// Changes of a plan, and reasons for the extent of its groups.
#pragma once

#include "optimise/fusion/groups.hpp"

#include <array>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace monet {

/// Proposes changes of a given plan; equal groups change alike. Changes with the fewest tries come
/// first. Each kind has a fixed share of the proposals (kShares, measured in long searches), and
/// its most promising changes come first. Groups change one by one once all joint changes are
/// tried.
class FusionMoves {
public:
  FusionMoves(const FusionProblem& problem, const FusionOptions& options, const FusionOrder& order,
              const FusionSegments& segments, const std::vector<FusionWeights>& weights);

  /// Adds the plan's groups to the candidates for other plans.
  void know(const FusionPlan& plan);

  /// Proposes up to `most` changes of `plan` that are not in `seen`; `batch` stays empty if none
  /// remain.
  void next(const FusionPlan& plan, std::size_t most, const std::set<std::string>& seen,
            std::vector<FusionPlan>& batch);
  /// Applies to `plan` the changes that made the plans `which` of the last batch, one after the
  /// other. A later change replaces all groups that it overlaps, but removes only unchanged ones.
  /// nullopt if the graph of the groups would have a cycle.
  std::optional<FusionPlan> together(const FusionPlan& plan,
                                     std::span<const std::size_t> which) const;

private:
  enum class Kind { offer, known, slices, longer, shorter, joined, dropped };
  /// Number of proposals of each kind in a round of 86.
  static constexpr std::array<double, 7> kShares{60, 5, 8, 8, 1, 3, 1};
  struct Move {
    Kind kind = Kind::offer;
    std::string id;                ///< equal for equal changes of other plans
    double promise = 0;            ///< rank within its kind
    FusionGroups add;              ///< replace the groups they overlap
    std::vector<std::size_t> drop; ///< groups of the plan to remove
  };
  struct Class {
    std::string signature;
    std::vector<std::size_t> groups; ///< indices into the plan
  };

  std::string signature(const std::vector<OpId>& members);
  std::vector<Class> classes_of(const FusionGroups& plan);
  void change(const FusionGroups& plan, const Class& own, std::vector<Move>& moves) const;
  void change_slices(const FusionGroups& plan, const Class& own, std::vector<Move>& moves) const;
  void shift_borders(const FusionGroups& plan, const Class& own, std::vector<Move>& moves) const;
  std::optional<FusionGroup> with(const FusionGroup& group, OpId more) const;
  std::optional<FusionGroup> without(const FusionGroup& group, OpId less) const;
  bool legal(const std::vector<OpId>& members) const;
  FusionGroups apply(const FusionGroups& plan, const Move& move) const;
  std::vector<Move> in_turn(const FusionGroups& groups);

  const FusionProblem& problem_;
  const FusionOptions& options_;
  const FusionOrder& order_;
  const FusionSegments& segments_;
  std::vector<std::size_t> place_; ///< per operator: index in the sequence, if any
  std::vector<Move> offers_;       ///< groups that gain as separate steps, and known plans' groups
  std::vector<Move> proposed_;     ///< moves of the last next()
  std::map<std::string, int> tried_;
  std::map<std::vector<OpId>, std::string> signatures_;
};

/// Per stack of the plan: the reason why the next operator of the sequence is not in it.
std::vector<std::string> why_they_end(const FusionProblem& problem, const FusionSegments& segments,
                                      const FusionOrder& order, const FusionPlan& plan,
                                      const FusionWeights& weights, const SearchControl& control);

} // namespace monet
