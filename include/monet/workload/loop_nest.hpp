// The one form of every operator: named loops, and operands whose every axis is an affine
// expression of the loops. Read this first; tiles, regions, footprints, dependencies and traffic
// all follow from it.
//
// A 3x3 convolution with stride 2 and padding 1, for example:
//   loops     n=4 k=64 oy=16 ox=16 | c=32 fy=3 fx=3      (those after | are reduced: the output
//   lacks them) O (write) [n, k, oy, ox] I (read)  [n, c, 2*oy + fy - 1, 2*ox + fx - 1] values
//   outside the tensor are padding, never fetched W (read)  [k, c, fy, fx]
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

struct LoopDim {
  std::string
      name; ///< unique in its nest; B,G,K,C,OY,OX,FY,FX for convolutions, B,H,D,C,K for products
  std::int64_t size = 1;
  bool coupled = false; ///< no iteration's result is final before the last has run, though outputs
                        ///< have this axis: what a softmax normalises over. Never cut into tiles.

  friend bool operator==(const LoopDim&, const LoopDim&) = default;
};

struct AffineTerm {
  std::uint32_t dim = 0; ///< index into LoopNest::dims
  std::int64_t coefficient = 1;

  friend bool operator==(const AffineTerm&, const AffineTerm&) = default;
};

/// One axis of a tensor as sum(coefficient * loop) + offset, clipped to the tensor.
struct AxisExpr {
  std::vector<AffineTerm> terms; ///< at most one term per dim, in order of dim
  std::int64_t offset = 0;
  bool data_dependent =
      false; ///< the index is read from another operand (embedding): any row may be touched

  friend bool operator==(const AxisExpr&, const AxisExpr&) = default;
};

enum class AccessMode {
  read,
  write,
  accumulate, ///< read-modify-write of the output, where several iterations add into one element
              ///< that the loops visit out of order (transposed convolution, embedding gradient)
};

/// How one operand is touched by the loops.
struct Access {
  TensorId tensor;
  AccessMode mode = AccessMode::read;
  std::string role;           ///< "O", "I", "W", or a word: "labels", "mean", "momentum"
  std::vector<AxisExpr> axes; ///< one per axis of the tensor
  int passes = 1; ///< times the operand is swept (softmax reads its input for max, then for exp)
  bool opaque = false; ///< not expressible as affine: the whole tensor is touched

  friend bool operator==(const Access&, const Access&) = default;
};

enum class ComputeKind {
  mac,    ///< multiply-accumulate per iteration: for an array core
  vector, ///< `work` per iteration: for lanes
  copy,   ///< moves data only
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

/// result += first * second, in every iteration of a mac nest that has several products. Operands
/// are indices into LoopNest::operands; none: a value that does not leave the operator (the scores
/// of attention), or a result that nobody wants.
struct NestProduct {
  std::optional<std::uint32_t> result;
  std::optional<std::uint32_t> first;
  std::optional<std::uint32_t> second;

  /// All three are operands.
  bool is_whole() const { return result && first && second; }
  friend bool operator==(const NestProduct&, const NestProduct&) = default;
};

struct LoopNest {
  ComputeKind compute = ComputeKind::copy;
  std::vector<LoopDim> dims;
  std::vector<Access> operands; ///< outputs first, then inputs
  VectorWork work;
  /// Of a mac nest with more than one product over the same loops. Empty: one, of all that is read.
  std::vector<NestProduct> products;

  friend bool operator==(const LoopNest&, const LoopNest&) = default;
};

/// Product of all loop sizes.
std::int64_t iterations(const LoopNest& nest);
/// One of the nest's products with the loops of all of them: result, first and second factor as O,
/// I and W. All three must be operands.
LoopNest product_nest(const LoopNest& nest, const NestProduct& product);
/// Products of one iteration of a mac nest: at least 1.
std::int64_t products(const LoopNest& nest);
/// Operands of a mac nest that are multiplied, in their order: factors of its products, or where
/// it has one the first two that are read. None of other nests.
std::vector<std::size_t> multiplied_operands(const LoopNest& nest);
/// What there is to do, in units of one loop's body: iterations() times products().
std::int64_t body_count(const LoopNest& nest);
/// body_count() of a mac nest, 0 of any other.
std::int64_t macs(const LoopNest& nest);
/// True when no output (written or accumulated operand) depends on the dim.
bool is_reduction(const LoopNest& nest, std::size_t dim);
/// Index of the dim called `name`, or dims.size().
std::size_t find_dim(const LoopNest& nest, std::string_view name);

/// The first operand through which the nest writes the tensor, or adds to it; null where none does.
const Access* written_access(const LoopNest& nest, TensorId tensor);

/// One of the axis' terms is the loop's.
bool has_loop(const AxisExpr& axis, std::size_t dim);
/// Range of an axis over a tile: the values the expression takes, clipped to [0, extent).
Interval axis_range(const AxisExpr& axis, std::span<const Interval> tile, std::int64_t extent);
/// The smallest box that holds every element the tile touches. `shape` is the tensor's.
Box region(const Access& access, std::span<const Interval> tile,
           std::span<const std::int64_t> shape);
/// The same into a box that keeps its storage.
void region_into(const Access& access, std::span<const Interval> tile,
                 std::span<const std::int64_t> shape, Box& box);
/// The whole iteration space: [0, size) for every dim.
std::vector<Interval> full_tile(const LoopNest& nest);

/// "2*OY + FY - 1" for people and tests.
std::string to_string(const AxisExpr& axis, std::span<const LoopDim> dims);

} // namespace monet
