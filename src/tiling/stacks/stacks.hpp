// Which operators run fused, and in how many slices.
#pragma once

#include "tiling/stacks/slices.hpp"
#include "tiling/stacks/working_set.hpp"

#include "monet/hardware/chip.hpp"
#include "monet/tiling/tiling.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace monet {

/// Per operator: the cores that may run it.
using CoreLists = std::vector<std::vector<CoreId>>;

/// The operators in stacks, each in ascending order and in one stack.
struct Stacks {
  std::vector<std::vector<OpId>> members; ///< by first operator
  std::vector<std::uint32_t> stack_of;    ///< per operator
};

/// The given stacks, and one for every other operator.
Stacks complete_stacks(const Graph& graph, std::vector<std::vector<OpId>> given);

/// Finds slices for stacks, and stacks for graphs.
class SliceFinder {
public:
  /// `given`: per operator, the slices that a mapping asks for; `planned`: those chosen so far, of
  /// all operators.
  SliceFinder(const Graph& graph, const Chip& chip, const CoreLists& cores,
              const std::vector<Slices>& given, const std::vector<Slices>& planned);

  /// Stacks of neighbours in the order of operators, from one on whose tiles are too large for
  /// their cores: as many as some slices let fit as a whole, working set and every tile; where a
  /// mapping gives slices, those. An
  /// optimiser update joins the operator that makes its gradient.
  std::vector<std::vector<OpId>> stacks(Halo halo);

  /// Slices for the members that have none given (`slices` not empty): along the loop that follows
  /// from the given ones, or `loops`; when nobody has any, along one or two loops of the first or
  /// last member, in as few slices as let everything fit, but at least `least`. Updates are cut
  /// further on their own. Returns the choice; none where slices were given.
  std::optional<StackSlices> fill_in(std::span<const OpId> members, Halo halo, std::int64_t least,
                                     StackSlicer::Loops loops, std::vector<Slices>& slices);

  /// The slices that a plan asks for. Updates are cut further on their own.
  std::vector<Slices> cut(std::span<const OpId> members, Halo halo, const StackSlices& plan);

  /// Whether an operator that runs alone gains by slices: no product, and its tiles do not fit.
  bool alone_in_slices(OpId op) const;

private:
  struct Seed;
  struct Candidate;

  bool crowded(OpId op) const;
  bool update(std::size_t op) const;
  std::vector<Seed> seeds(std::uint32_t member, OpId op) const;
  Candidate spread(const StackSlicer& slicer, std::span<const OpId> members,
                   const Seed& seed) const;
  std::int64_t excess(const StackSlicer& slicer, std::span<const OpId> members,
                      const std::vector<Slices>& slices) const;
  void fit(const StackSlicer& slicer, std::span<const OpId> members, Halo halo, std::int64_t least,
           Candidate& candidate) const;
  void refine(OpId op, Slices& slices) const;
  void refine_updates(std::span<const OpId> members, std::vector<Slices>& slices) const;
  bool fits_as_given(const StackSlicer& slicer, std::span<const OpId> members, Halo halo) const;
  std::size_t grow(std::size_t first, Halo halo);
  bool cross_much(std::span<const OpId> members, const std::vector<Slices>& slices) const;
  bool recomputes_much(std::span<const OpId> members, const std::vector<Slices>& slices) const;
  void join_gradient(OpId id, std::vector<std::vector<OpId>>& stacks);

  const Graph& graph_;
  const CoreLists& cores_;
  const std::vector<Slices>& given_;
  const std::vector<Slices>& planned_;
  bool any_given_ = false;
  MemoryCapacity room_;
  StackSlicer::Scratch scratch_;
  std::vector<std::uint32_t> stacked_; ///< per operator: its stack so far, or none
};

} // namespace monet
