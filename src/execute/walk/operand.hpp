// One operand of a loop nest with its access map as strides: element = offset + sum(stride * loop),
// inside the tensor as long as every bound holds.
#pragma once

#include "monet/workload/graph.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace monet {

/// 0 <= offset + sum(coefficient * loop) < extent.
struct AxisBound {
  std::int64_t offset = 0;
  std::int64_t extent = 0;
  Integers coefficients; ///< per loop
};

struct OperandMap {
  std::int64_t offset = 0;
  Integers strides;              ///< per loop, in elements
  std::vector<AxisBound> bounds; ///< of axes that the loops may leave

  /// Element index at a point of the loops, or nullopt outside the tensor.
  std::optional<std::int64_t> at(std::span<const std::int64_t> point) const;
  /// Element index as in at(), or -1 outside. InternalError if it is not below `count`.
  std::int64_t element(std::span<const std::int64_t> point, std::int64_t count) const;
  /// Element index at a point at which the operand is inside its tensor; InternalError elsewhere.
  std::size_t index(std::span<const std::int64_t> point) const;
};

/// Sum of weight * number; there are no fewer weights than numbers.
std::int64_t weighted_sum(std::span<const std::int64_t> weights,
                          std::span<const std::int64_t> numbers);

/// All elements that a map without bounds reaches are among the tensor's `count`: walks look at
/// none of them again. An error otherwise.
void check_reach(const OperandMap& map, const LoopNest& nest, std::int64_t count);

/// Row-major strides of a shape.
Integers strides_of(std::span<const std::int64_t> shape);

/// `axis_strides`: distance of neighbours along each axis of the tensor. InternalError for accesses
/// that are opaque or depend on data.
OperandMap map_operand(const LoopNest& nest, const Access& access,
                       std::span<const std::int64_t> shape,
                       std::span<const std::int64_t> axis_strides);

/// Which operand of the nest an operator's inputs and outputs are; nullopt where the nest does not
/// touch them. The k-th access of a tensor belongs to its k-th use.
struct OperandIndex {
  std::vector<std::optional<std::size_t>> inputs;
  std::vector<std::optional<std::size_t>> outputs;
};
OperandIndex index_operands(const Operator& op);

/// Counts a point of the loops on by one, last loop fastest; false after the last point.
bool next_point(Integers& point, std::span<const std::int64_t> sizes);

/// How many numbers are not 0: what rounding has flushed is the difference.
std::int64_t nonzeros(std::span<const float> numbers);

} // namespace monet
