// Groups of consecutive operators that may run fused, and the sizes of their slices. Independent of
// the chip.
#pragma once

#include "tiling/stacks/slices.hpp"
#include "tiling/stacks/working_set.hpp"

#include "monet/training_graph/training.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace monet {

/// One way to slice a group, with the sizes of its middle slice.
struct GroupSlices {
  struct Split {             ///< a member's slice divided over cores along one loop
    std::int64_t extent = 1; ///< iterations of the loop in the slice
    std::int64_t moved = 0;  ///< bits of operands that are divided, too
    std::int64_t fixed = 0;  ///< bits of the other operands
  };
  using Parts = std::vector<std::pair<std::uint32_t, std::int64_t>>; ///< sliced loops, their sizes
  struct Member {
    double slices = 1;
    double work = 1; ///< iterations of all slices / those of the operator
    Parts parts;
    std::vector<Split> splits; ///< the first entry: undivided
    std::int64_t whole = 0;    ///< bits of an undivided slice
    std::int64_t least = 0;    ///< minimum bits of a part of a divided slice
  };
  std::vector<StackSlices::Cut> cuts; ///< outermost first; `op` is the member's index
  std::vector<Member> members;
  GroupSpace space;
  double most = 1; ///< maximum slices of a member
};

/// A run of consecutive operators, with or without the updates of their gradients.
struct NeighbourGroup {
  std::uint32_t begin = 0; ///< places [begin, end) of sequence()
  std::uint32_t end = 0;
  std::uint32_t kind = 0;    ///< equal for groups that share their ways()
  bool updates = false;      ///< includes the updates of its gradients
  std::vector<OpId> members; ///< ascending
};

/// All groups of up to kLongest consecutive operators, each without and with the updates of the
/// gradients that it makes. Groups are omitted if tensors do not connect all members. They are also
/// omitted if a member waits for a later operator while others need the group's results.
class NeighbourGroups {
public:
  static constexpr std::uint32_t kLongest = 8;

  NeighbourGroups(const Graph& graph, Halo halo);

  /// All operators in order, except updates that can join the producer of their gradient.
  const std::vector<OpId>& sequence() const { return sequence_; }
  const std::vector<OpId>& updates_of(OpId op) const { return updates_of_[op.index()]; }
  const std::vector<NeighbourGroup>& groups() const { return groups_; } ///< sorted by end
  /// Ways to slice the group; the first leaves every member whole. Groups that differ only in their
  /// tensors share their ways.
  const std::vector<GroupSlices>& ways(const NeighbourGroup& group) const {
    return ways_[group.kind];
  }

private:
  class Builder;
  std::vector<OpId> sequence_;
  std::vector<std::vector<OpId>> updates_of_; ///< per operator
  std::vector<NeighbourGroup> groups_;
  std::vector<std::vector<GroupSlices>> ways_; ///< per kind of group
};

} // namespace monet
