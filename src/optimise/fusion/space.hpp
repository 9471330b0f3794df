// Groups of operators: their legality, slices, signatures and separate steps.
#pragma once

#include "monet/optimise/fusion.hpp"

#include <span>
#include <string>
#include <vector>

namespace monet {

/// Direct predecessors and successors of operators: producers of their inputs, and readers of
/// storage that they overwrite.
class FusionOrder {
public:
  explicit FusionOrder(const Graph& graph);

  std::span<const OpId> before(OpId op) const { return before_[op.index()]; }
  std::span<const OpId> after(OpId op) const { return after_[op.index()]; }
  std::size_t size() const { return before_.size(); }

  /// Whether no path between two members leaves the group. `members` ascending.
  bool convex(std::span<const OpId> members) const;
  /// Groups of one cycle in the graph of groups; empty if it is acyclic. Operators outside all
  /// groups count as groups in the graph, but are not returned.
  std::vector<std::size_t> circle(const std::vector<std::vector<OpId>>& groups) const;
  bool acyclic(const std::vector<std::vector<OpId>>& groups) const {
    return circle(groups).empty();
  }

private:
  std::vector<std::vector<OpId>> before_;
  std::vector<std::vector<OpId>> after_;
};

/// Key that is equal for groups with equal costs. It contains everything except names; `names` adds
/// them since a mapping may refer to them.
std::string group_signature(const Graph& graph, std::span<const OpId> members, bool names);

/// The members as a separate step: inputs from other operators come from the off-chip memory, and
/// outputs for others go there. The ids of operators are their indices in `members`.
TrainingGraph group_step(const TrainingGraph& step, std::span<const OpId> members);

/// Convert slices between the ids of the group's step and those of the whole step.
StackSlices to_group(const StackSlices& slices, std::span<const OpId> members);
StackSlices from_group(const StackSlices& slices, std::span<const OpId> members);

} // namespace monet
