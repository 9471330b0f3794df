// Views as index maps, and their composition into the access map of an operand.
#pragma once

#include "monet/workload/graph.hpp"

#include <cstdint>
#include <optional>
#include <span>

namespace monet {

/// Map from the elements of a view T to those of the viewed tensor S.
struct ViewStep {
  enum class Kind {
    reshape,   ///< same elements in the same row-major order
    transpose, ///< axis i of T is axis perm[i] of S
    slice,     ///< index e of axis i of T is starts[i] + steps[i] * e in S
    expand,    ///< axes of size 1 (or missing in front) of S are repeated
  };
  Kind kind = Kind::reshape;
  Integers perm;
  Integers starts;
  Integers steps;
};

/// Step from output `output` of a view operator (or of Copy) to its input 0; nullopt if its
/// constants are unknown or do not fit.
std::optional<ViewStep> view_step(const Graph& graph, const Operator& op, std::size_t output);
/// Attributes of a Copy operator for the step, which view_step reads.
Attributes copy_attributes(const std::optional<ViewStep>& step);

/// Splits a loop in two: index = inner_size * outer + inner. The inner loop keeps name and
/// position; the outer one precedes it as "<name>_outer". `inner_size` must divide the loop's size.
void split_loop(LoopNest& nest, std::size_t dim, std::int64_t inner_size);

/// Rewrites operand `operand` of the nest from T to S, splitting loops where a reshape requires it.
/// Returns false, with the nest unchanged, if the composed map is not affine, or if padding
/// (indices outside T) would be indistinguishable from data of S.
bool compose_view(LoopNest& nest, std::size_t operand, const ViewStep& step,
                  std::span<const std::int64_t> viewed, std::span<const std::int64_t> view);

} // namespace monet
