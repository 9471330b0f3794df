// LoopNest: the single form of every operator, with named loops and operands whose every axis is an
// affine expression of the loops. Read this first; tiles, regions, footprints, dependencies and
// traffic are all derived from it.
//
// A 3x3 convolution with stride 2 and padding 1, for example:
//   loops     n=4 k=64 oy=16 ox=16 | c=32 fy=3 fx=3
//   O (write) [n, k, oy, ox]
//   I (read)  [n, c, 2*oy + fy - 1, 2*ox + fx - 1]
//   W (read)  [k, c, fy, fx]
// Loops after | are reductions, which the output lacks. Values of I outside the tensor are padding,
// which is never fetched.
// Example:
//   LoopNest matrix_product(TensorId o, TensorId i, TensorId w) {
//     const AxisExpr d{{{0, 1}}}, k{{{1, 1}}}, c{{{2, 1}}};
//     const Access result{o, AccessMode::write, "O", {d, k}};
//     const Access left{i, AccessMode::read, "I", {d, c}}, right{w, AccessMode::read, "W", {c, k}};
//     const std::vector<LoopDim> loops{{"D", 4}, {"K", 64}, {"C", 32}};
//     return {ComputeKind::mac, loops, {result, left, right}, {}, {}};
//   }
#pragma once

#include "monet/base/ids.hpp"
#include "monet/base/interval.hpp"
#include "monet/base/units.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace monet {

/// Whole numbers in order: shapes, axes, pads, strides, indices.
using Integers = std::vector<std::int64_t>;

/// A loop of a nest.
struct LoopDim {
  /// Name, unique in its nest: B,G,K,C,OY,OX,FY,FX for convolutions, B,H,D,C,K for products.
  std::string name;
  std::int64_t size = 1;
  /// Whether no result is final before the last iteration, although outputs have this axis (such as
  /// the axis that a softmax normalises). Such a loop is never cut into tiles.
  bool coupled = false;

  friend bool operator==(const LoopDim&, const LoopDim&) = default;
};

/// A term coefficient * loop of an axis expression.
struct AffineTerm {
  std::uint32_t dim = 0; ///< index into LoopNest::dims
  std::int64_t coefficient = 1;

  friend bool operator==(const AffineTerm&, const AffineTerm&) = default;
};

/// Index along one axis of a tensor: sum(coefficient * loop) + offset, clipped to the tensor.
struct AxisExpr {
  std::vector<AffineTerm> terms; ///< at most one term per loop, in ascending order
  std::int64_t offset = 0;
  /// Whether the index is read from another operand (embedding), so that any row may be accessed.
  bool data_dependent = false;

  friend bool operator==(const AxisExpr&, const AxisExpr&) = default;
};

/// Mode of an access.
enum class AccessMode {
  read,
  write,
  /// Read-modify-write of the output: several iterations, which the loops visit out of order, add
  /// to one element (transposed convolution, embedding gradient).
  accumulate,
};

/// Access of the loops to one operand.
struct Access {
  TensorId tensor;
  AccessMode mode = AccessMode::read;
  std::string role;           ///< "O", "I", "W", or a word such as "labels", "mean", "momentum"
  std::vector<AxisExpr> axes; ///< one per axis of the tensor
  /// Number of sweeps over the operand (softmax reads its input for max, then for exp).
  int passes = 1;
  bool opaque = false; ///< not an affine access: the whole tensor is accessed

  friend bool operator==(const Access&, const Access&) = default;
};

/// Kind of computation in a nest's body.
enum class ComputeKind {
  mac,    ///< a multiply-accumulate per iteration, on an array
  vector, ///< `work` per iteration, on lanes
  copy,   ///< data movement only
};

/// Scalar operations per iteration of a vector nest.
struct VectorWork {
  int add = 0;
  int multiply = 0;
  int divide = 0;
  int compare = 0;
  int square_root = 0;
  int transcendental = 0; ///< exp, log, erf, tanh

  int total() const { return add + multiply + divide + compare + square_root + transcendental; }
  friend bool operator==(const VectorWork&, const VectorWork&) = default;
};

/// A product of a mac nest with several products: result += first * second in every iteration.
/// Members are indices into LoopNest::operands. nullopt: a value inside the operator (the scores of
/// attention), or a result that is not needed.
struct NestProduct {
  std::optional<std::uint32_t> result;
  std::optional<std::uint32_t> first;
  std::optional<std::uint32_t> second;

  /// Whether all three members are operands.
  bool is_whole() const { return result && first && second; }
  friend bool operator==(const NestProduct&, const NestProduct&) = default;
};

/// An operator as loops, with the access to each operand and the computation of the body.
struct LoopNest {
  ComputeKind compute = ComputeKind::copy;
  std::vector<LoopDim> dims;
  std::vector<Access> operands; ///< outputs first, then inputs
  VectorWork work;
  /// Products of a mac nest with several products over the same loops. Empty: a single product of
  /// all operands that are read.
  std::vector<NestProduct> products;

  friend bool operator==(const LoopNest&, const LoopNest&) = default;
};

/// Product of all loop sizes.
std::int64_t iterations(const LoopNest& nest);
/// Nest of a single product with all loops of the nest; its result, first and second factor are O,
/// I and W. All three must be operands.
LoopNest product_nest(const LoopNest& nest, const NestProduct& product);
/// Number of products in one iteration of a mac nest, at least 1.
std::int64_t products(const LoopNest& nest);
/// Operands of a mac nest that are multiplied, in order: the factors of its products, or the first
/// two operands that are read if it has a single product. Empty for other nests.
std::vector<std::size_t> multiplied_operands(const LoopNest& nest);
/// Number of executions of a loop body: iterations() times products().
std::int64_t body_count(const LoopNest& nest);
/// Number of multiply-accumulates: body_count() of a mac nest, 0 of any other.
std::int64_t macs(const LoopNest& nest);
/// Whether no output (written or accumulated operand) depends on the loop.
bool is_reduction(const LoopNest& nest, std::size_t dim);
/// Index of the loop called `name`, or dims.size() if there is no such loop.
std::size_t find_dim(const LoopNest& nest, std::string_view name);

/// First operand through which the nest writes or accumulates the tensor; null if it does neither.
const Access* written_access(const LoopNest& nest, TensorId tensor);

/// Whether a term of the axis has the loop.
bool has_loop(const AxisExpr& axis, std::size_t dim);
/// Range of an axis over a tile: the values of its expression, clipped to [0, extent).
Interval axis_range(const AxisExpr& axis, std::span<const Interval> tile, std::int64_t extent);
/// Smallest box with all elements that the tile accesses. `shape` is the tensor's.
Box region(const Access& access, std::span<const Interval> tile,
           std::span<const std::int64_t> shape);
/// Writes region() to `box`, reusing its storage.
void region_into(const Access& access, std::span<const Interval> tile,
                 std::span<const std::int64_t> shape, Box& box);
/// The whole iteration space: [0, size) for every loop.
std::vector<Interval> full_tile(const LoopNest& nest);

/// Text of an axis expression, such as "2*OY + FY - 1", for messages and tests.
std::string to_string(const AxisExpr& axis, std::span<const LoopDim> dims);

} // namespace monet
