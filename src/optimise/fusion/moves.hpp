// Changes of a plan, and why its groups are what they are.
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

/// Proposes plans next to a given one: equal groups are changed alike. Changes that have not been
/// tried for long come first. Of these every kind has its share, by what a try of it gains in long
/// searches, those that promise most before others; groups are changed one by one when all has been
/// tried alike.
class FusionMoves {
public:
  FusionMoves(const FusionProblem& problem, const FusionOptions& options, const FusionOrder& order,
              const FusionSegments& segments, const std::vector<FusionWeights>& weights);

  /// Groups of the plan may be taken over into others.
  void know(const FusionPlan& plan);

  /// Up to `most` plans next to `plan` that are not in `seen`; none when there is none left.
  void next(const FusionPlan& plan, std::size_t most, const std::set<std::string>& seen,
            std::vector<FusionPlan>& batch);
  /// What the last next() was given, with the changes of several plans of its batch, one after
  /// another: later ones as far as earlier ones leave what they change. None where groups would
  /// wait for each other.
  std::optional<FusionPlan> together(const FusionPlan& plan,
                                     std::span<const std::size_t> which) const;

private:
  enum class Kind { offer, known, slices, longer, shorter, joined, dropped };
  /// Proposals of each kind, of 86.
  static constexpr std::array<double, 7> kShares{60, 5, 8, 8, 1, 3, 1};
  struct Move {
    Kind kind = Kind::offer;
    std::string id;                ///< equal for the same change of another plan
    double promise = 0;            ///< among those of its kind
    FusionGroups add;              ///< instead of what they overlap
    std::vector<std::size_t> drop; ///< groups of the plan
  };
  struct Class {
    std::string signature;
    std::vector<std::size_t> groups; ///< of the plan
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
  std::vector<std::size_t> place_; ///< per operator: in the sequence, or none
  std::vector<Move> offers_;       ///< groups that gain on their own, and those of known plans
  std::vector<Move> proposed_;     ///< by the last next()
  std::map<std::string, int> tried_;
  std::map<std::vector<OpId>, std::string> signatures_;
};

/// Per stack of the plan: why the next operator of the sequence is not in it.
std::vector<std::string> why_they_end(const FusionProblem& problem, const FusionSegments& segments,
                                      const FusionOrder& order, const FusionPlan& plan,
                                      const FusionWeights& weights, const SearchControl& control);

} // namespace monet
