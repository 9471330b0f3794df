// How the operators of a stack are cut into slices that follow each other in time.
#pragma once

#include "monet/tiling/tiling.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace monet {

/// One loop cut into slices, which need be neither even nor, where halos are recomputed, disjoint.
struct SliceCut {
  std::uint32_t dim = 0;
  std::vector<Interval> parts;
};
using Slices = std::vector<SliceCut>; ///< of one operator, the first outermost

/// The loop that goes furthest along the axis in one step.
std::optional<std::uint32_t> leading_loop(const AxisExpr& axis, const LoopNest& nest);

SliceCut even_slices(const LoopNest& nest, std::uint32_t dim, std::int64_t parts);

/// Passes slices on between the operators of one stack.
class StackSlicer {
public:
  /// What all stacks of a graph share.
  struct Scratch {
    explicit Scratch(const Graph& graph);
    std::vector<std::uint32_t> position; ///< per operator: its place in the stack at hand
    std::vector<bool> left_behind;       ///< per operator: makes what outlives the step
  };

  /// `members` in ascending order.
  StackSlicer(const Graph& graph, std::span<const OpId> members, Scratch& scratch);
  ~StackSlicer();
  StackSlicer(const StackSlicer&) = delete;
  StackSlicer& operator=(const StackSlicer&) = delete;

  using Loops = std::vector<std::optional<std::uint32_t>>; ///< per member: the loop that is sliced

  /// Gives every member that can have one the loop that follows from a neighbour's: its output's
  /// axis that the neighbour slices.
  void spread(Loops& loops) const;

  /// Cuts every member that has a loop along it, inside the cuts that it has; those that are
  /// `fixed` keep theirs. Slice i of a producer is what slice i of its consumers needs beyond slice
  /// i - 1; whoever has no consumers with slices is cut into `count` even ones. With recomputed
  /// halos: all that slice i of its consumers needs, given slices too; but what outlives the step
  /// is made once.
  void make_slices(const Loops& loops, std::int64_t count, Halo halo,
                   const std::vector<bool>& fixed, std::vector<Slices>& slices) const;

  /// An operand through which one member reads what another writes.
  struct Link {
    std::uint32_t producer = 0; ///< members
    std::uint32_t consumer = 0;
    const Access* write = nullptr;
    const Access* read = nullptr;
  };
  std::span<const Link> links() const { return links_; }
  std::span<const Link> links_from(std::uint32_t producer) const;

private:
  const LoopNest& nest(std::uint32_t member) const { return graph_.op(members_[member]).nest; }
  SliceCut pulled(std::uint32_t member, std::uint32_t dim, std::int64_t count, Halo halo,
                  const std::vector<Slices>& slices) const;

  const Graph& graph_;
  std::span<const OpId> members_;
  Scratch& scratch_;
  std::vector<Link> links_; ///< by producer
};

} // namespace monet
