// Slicing of stacks: how the operators of a stack are cut into slices that run one after the other.
#pragma once

#include "monet/tiling/tiling.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace monet {

/// One loop cut into slices. Slices may differ in size; with recomputed halos they may overlap.
struct SliceCut {
  std::uint32_t dim = 0;
  std::vector<Interval> parts;
};
using Slices = std::vector<SliceCut>; ///< of one operator, outermost first

/// The loop with the largest step along the axis; nullopt if no loop of several iterations moves
/// it.
std::optional<std::uint32_t> leading_loop(const AxisExpr& axis, const LoopNest& nest);

SliceCut even_slices(const LoopNest& nest, std::uint32_t dim, std::int64_t parts);

/// Derives the slices of a stack's operators from each other.
class StackSlicer {
public:
  /// Buffers that all slicers of a graph share, one slicer at a time.
  struct Scratch {
    explicit Scratch(const Graph& graph);
    std::vector<std::uint32_t> position; ///< per operator: its index in the current stack
    std::vector<bool> left_behind;       ///< per operator: a result is an output or shares storage
  };

  /// `members` must be in ascending order.
  StackSlicer(const Graph& graph, std::span<const OpId> members, Scratch& scratch);
  ~StackSlicer();
  StackSlicer(const StackSlicer&) = delete;
  StackSlicer& operator=(const StackSlicer&) = delete;

  using Loops = std::vector<std::optional<std::uint32_t>>; ///< per member: the sliced loop

  /// Sets the loop of every member that has none and whose loop follows from a neighbour: the
  /// leading loop of the axis that the neighbour slices.
  void spread(Loops& loops) const;

  /// Cuts every member that has a loop along this loop, inside its present cuts. Members that are
  /// `fixed` keep their cuts. With cached halos, slice i of a producer is the part that slice i of
  /// its consumers needs and slice i - 1 did not. Members without sliced consumers are cut into
  /// `count` even slices.
  ///
  /// With recomputed halos, slice i of a producer is everything that slice i of its consumers
  /// needs; a fixed single cut is widened in this way, too. Results that outlive the step are still
  /// made once.
  void make_slices(const Loops& loops, std::int64_t count, Halo halo,
                   const std::vector<bool>& fixed, std::vector<Slices>& slices) const;

  /// A tensor passed within the stack: one member writes it and another reads it.
  struct Link {
    std::uint32_t producer = 0; ///< index of the member
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
  std::vector<Link> links_; ///< sorted by producer
};

} // namespace monet
