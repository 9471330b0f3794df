// Groups of neighbours that may run together, and how large their slices are. Nothing here depends
// on a chip.
#pragma once

#include "tiling/stacks/slices.hpp"
#include "tiling/stacks/working_set.hpp"

#include "monet/training_graph/training.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace monet {

/// One way to slice a group, and what a slice in the middle of it touches.
struct GroupSlices {
  struct Split { ///< a slice of a member shared out along one loop
    std::int64_t extent = 1;
    std::int64_t moved = 0; ///< bits of operands of which every part touches its own
    std::int64_t fixed = 0; ///< bits of the others
  };
  using Parts = std::vector<std::pair<std::uint32_t, std::int64_t>>; ///< sliced loops, their sizes
  struct Member {
    double slices = 1;
    double work = 1; ///< iterations of all slices over those of the operator
    Parts parts;
    std::vector<Split> splits; ///< the first: not shared out
    std::int64_t whole = 0;    ///< bits of a slice that is not shared out
    std::int64_t least = 0;    ///< of a part of one that is shared out over as many cores as can be
  };
  std::vector<StackSlices::Cut> cuts; ///< the first outermost; `op` is the member's place
  std::vector<Member> members;
  GroupSpace space;
  double most = 1; ///< slices of any member
};

struct NeighbourGroup {
  std::uint32_t begin = 0; ///< of the sequence
  std::uint32_t end = 0;
  std::uint32_t kind = 0;
  bool updates = false;      ///< with the updates of its gradients
  std::vector<OpId> members; ///< ascending
};

/// Every group of up to kLongest neighbours in the order of operators, alone and with the updates
/// of the gradients that it makes, which no other order could make wait for themselves.
class NeighbourGroups {
public:
  static constexpr std::uint32_t kLongest = 8;

  NeighbourGroups(const Graph& graph, Halo halo);

  /// Operators but updates that may join the one that makes their gradient.
  const std::vector<OpId>& sequence() const { return sequence_; }
  const std::vector<OpId>& updates_of(OpId op) const { return updates_of_[op.index()]; }
  const std::vector<NeighbourGroup>& groups() const { return groups_; } ///< by end
  /// The first one leaves every member whole. Groups that are equal but for which tensors they have
  /// share them.
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
