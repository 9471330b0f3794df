// Groups of operators: which are legal, how they may be sliced, and what they are on their own.
#pragma once

#include "monet/optimise/fusion.hpp"

#include <span>
#include <string>
#include <vector>

namespace monet {

/// Operators that come right before and after each: whose results they read, and who read storage
/// that they overwrite.
class FusionOrder {
public:
  explicit FusionOrder(const Graph& graph);

  std::span<const OpId> before(OpId op) const { return before_[op.index()]; }
  std::span<const OpId> after(OpId op) const { return after_[op.index()]; }
  std::size_t size() const { return before_.size(); }

  /// Nothing that lies between two members is outside. `members` ascending.
  bool convex(std::span<const OpId> members) const;
  /// The groups of one circle in the graph of the groups (operators that none names are groups of
  /// their own); without a circle none.
  std::vector<std::size_t> circle(const std::vector<std::vector<OpId>>& groups) const;
  bool acyclic(const std::vector<std::vector<OpId>>& groups) const {
    return circle(groups).empty();
  }

private:
  std::vector<std::vector<OpId>> before_;
  std::vector<std::vector<OpId>> after_;
};

/// What is the same for groups that cost the same: everything but names, which count only where a
/// mapping may ask for them.
std::string group_signature(const Graph& graph, std::span<const OpId> members, bool names);

/// The members as a step of their own: what they read of others comes from the off-chip memory, and
/// what others read goes there. Operators have the ids of their places in `members`.
TrainingGraph group_step(const TrainingGraph& step, std::span<const OpId> members);

/// The same slices, said of the group's own step, or of the whole one.
StackSlices to_group(const StackSlices& slices, std::span<const OpId> members);
StackSlices from_group(const StackSlices& slices, std::span<const OpId> members);

} // namespace monet
