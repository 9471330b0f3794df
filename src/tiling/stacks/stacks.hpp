// Choice of stacks (operators that run fused) and of their numbers of slices.
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

/// All operators in stacks: each operator is in one stack, and each stack is in ascending order.
struct Stacks {
  std::vector<std::vector<OpId>> members; ///< sorted by first operator
  std::vector<std::uint32_t> stack_of;    ///< per operator
};

/// The given stacks, and a stack of one for every other operator.
Stacks complete_stacks(const Graph& graph, std::vector<std::vector<OpId>> given);

/// Finds slices for given stacks, and stacks for a graph.
class SliceFinder {
public:
  /// `given`: per operator, the slices that a mapping requests. `planned`: per operator, the slices
  /// chosen so far. Both must outlive the finder.
  SliceFinder(const Graph& graph, const Chip& chip, const CoreLists& cores,
              const std::vector<Slices>& given, const std::vector<Slices>& planned);

  /// Chooses stacks of consecutive operators. A stack starts at, or one operator before, an
  /// operator whose tiles are too large for its cores. It grows while some slices (the mapping's,
  /// if it has any) make the working set and every tile fit. It has at most kLongestStack
  /// operators, and ends after kMaxLightOperators whose tiles would fit without slices. An update
  /// then joins the latest producer of its inputs, if that makes a weight's gradient.
  std::vector<std::vector<OpId>> stacks(Halo halo);

  /// Sets the slices of the members; non-empty entries of `slices` are given and stay. If `loops`
  /// has any loop, slices follow from it and from the given ones; returns nullopt. Otherwise slices
  /// start from one or two loops of the first or last member: the fewest, from `least` on, with
  /// which everything fits. Updates are cut further until their tiles fit. Returns the choice.
  std::optional<StackSlices> fill_in(std::span<const OpId> members, Halo halo, std::int64_t least,
                                     StackSlicer::Loops loops, std::vector<Slices>& slices);

  /// Slices of the members as `plan` requests. Updates are cut further until their tiles fit.
  std::vector<Slices> cut(std::span<const OpId> members, Halo halo, const StackSlices& plan);

  /// True if an operator that runs alone benefits from slices: its tiles do not fit, and it
  /// computes no multiply-accumulates.
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
  void join_gradient(OpId id, std::vector<std::vector<OpId>>& stacks);

  const Graph& graph_;
  const CoreLists& cores_;
  const std::vector<Slices>& given_;
  const std::vector<Slices>& planned_;
  bool any_given_ = false;
  MemoryCapacity room_;
  StackSlicer::Scratch scratch_;
  std::vector<std::uint32_t> stacked_; ///< per operator: its stack so far, or kAlone
};

} // namespace monet
