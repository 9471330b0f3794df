#include "cluster/exchange.hpp"

#include "base/shared/checked.hpp"

#include "monet/base/errors.hpp"

#include <algorithm>

namespace monet::test {

namespace {

using Numbers = std::vector<double>;
using Shape = std::vector<std::int64_t>;

/// A part of a tensor's axis: [outer][parts][rest], the part's number among the middle ones.
struct Piece {
  std::int64_t rows = 1; ///< before the axis, and its outer blocks
  std::int64_t parts = 1;
  std::int64_t run = 1; ///< elements of a block's part: the rest and the axes after it
};

Piece piece_of(std::span<const std::int64_t> shape, const ShardCut& cut, std::int64_t parts) {
  Piece piece{.parts = parts};
  for (std::size_t i = 0; i < cut.dim; ++i)
    piece.rows *= shape[i];
  piece.rows *= cut.outer;
  piece.run = shape[cut.dim] / (cut.outer * parts);
  for (std::size_t i = cut.dim + 1; i < shape.size(); ++i)
    piece.run *= shape[i];
  return piece;
}

/// Elements of the whole tensor that a rank has, in its order.
std::vector<std::int64_t> elements_of(Shape shape, const TensorOrigin& origin,
                                      std::span<const MeshAxis> mesh,
                                      std::span<const std::int64_t> coordinates) {
  std::vector<std::int64_t> elements(static_cast<std::size_t>(checked_product(shape)));
  for (std::size_t i = 0; i < elements.size(); ++i)
    elements[i] = static_cast<std::int64_t>(i);
  for (const ShardCut& cut : origin.cuts) {
    const std::int64_t parts = mesh[cut.mesh_axis].size;
    const Piece piece = piece_of(shape, cut, parts);
    std::vector<std::int64_t> kept;
    kept.reserve(elements.size() / static_cast<std::size_t>(parts));
    for (std::int64_t row = 0; row < piece.rows; ++row) {
      const auto from = elements.begin() + (row * parts + coordinates[cut.mesh_axis]) * piece.run;
      kept.insert(kept.end(), from, from + piece.run);
    }
    elements = std::move(kept);
    shape[cut.dim] /= parts;
  }
  return elements;
}

/// A tensor's elements as [rows][parts][run] around one of its axes.
struct AxisBlocks {
  std::size_t rows = 1;
  std::size_t run = 1;
};

/// Of a whole tensor.
AxisBlocks blocks_of(std::span<const std::int64_t> whole, std::int64_t dim, std::int64_t outer,
                     std::int64_t parts) {
  std::int64_t rows = outer;
  const auto at = static_cast<std::size_t>(dim);
  std::int64_t run = whole[at] / (outer * parts);
  for (std::size_t i = 0; i < whole.size(); ++i)
    (i < at ? rows : run) *= i == at ? 1 : whole[i];
  return {static_cast<std::size_t>(rows), static_cast<std::size_t>(run)};
}

Numbers reduced(const Operator& op, std::span<const Numbers> held) {
  const bool largest = op.attributes.text("reduce", "sum") == "max";
  Numbers result = held.front();
  for (const Numbers& other : held.subspan(1)) {
    for (std::size_t i = 0; i < result.size(); ++i)
      result[i] = largest ? std::max(result[i], other[i]) : result[i] + other[i];
  }
  return result;
}

Numbers part_of(const Numbers& whole, const AxisBlocks& blocks, std::size_t part,
                std::size_t parts) {
  Numbers result;
  for (std::size_t row = 0; row < blocks.rows; ++row) {
    const auto from =
        whole.begin() + static_cast<std::ptrdiff_t>((row * parts + part) * blocks.run);
    result.insert(result.end(), from, from + static_cast<std::ptrdiff_t>(blocks.run));
  }
  return result;
}

Numbers joined_parts(std::span<const Numbers> held, const AxisBlocks& blocks) {
  Numbers whole;
  for (std::size_t row = 0; row < blocks.rows; ++row) {
    for (const Numbers& part : held) {
      const auto from = part.begin() + static_cast<std::ptrdiff_t>(row * blocks.run);
      whole.insert(whole.end(), from, from + static_cast<std::ptrdiff_t>(blocks.run));
    }
  }
  return whole;
}

std::vector<Numbers> parts_of(const Operator& op, std::span<const std::int64_t> whole,
                              std::span<const Numbers> of, std::string_view prefix) {
  const auto parts = static_cast<std::int64_t>(of.size());
  const AxisBlocks blocks =
      blocks_of(whole, op.attributes.integer(std::string(prefix) + "dim", 0),
                op.attributes.integer(std::string(prefix) + "outer", 1), parts);
  std::vector<Numbers> given;
  for (std::size_t rank = 0; rank < of.size(); ++rank)
    given.push_back(part_of(of[rank], blocks, rank, of.size()));
  return given;
}

} // namespace

std::vector<Numbers> exchanged_numbers(const Operator& op, std::span<const std::int64_t> shape,
                                       std::span<const Numbers> held) {
  if (op.op_type == "TakeShard")
    return parts_of(op, shape, held, "");
  if (op.op_type == "AllReduce" || op.op_type == "ReduceScatter") {
    const std::vector<Numbers> sums(held.size(), reduced(op, held));
    return op.op_type == "AllReduce" ? sums : parts_of(op, shape, sums, "");
  }
  internal_check(op.op_type == "AllGather" || op.op_type == "AllToAll",
                 "'" + op.op_type.str() + "' is no collective");
  const auto parts = static_cast<std::int64_t>(held.size());
  Shape whole(shape.begin(), shape.end());
  const std::int64_t dim = op.attributes.integer("dim", 0);
  whole[static_cast<std::size_t>(dim)] *= parts;
  const std::vector<Numbers> joined(
      held.size(),
      joined_parts(held, blocks_of(whole, dim, op.attributes.integer("outer", 1), parts)));
  return op.op_type == "AllGather" ? joined : parts_of(op, whole, joined, "to_");
}

std::vector<std::int64_t> coordinates(std::span<const MeshAxis> mesh, std::int64_t rank) {
  std::vector<std::int64_t> at(mesh.size());
  for (std::size_t i = mesh.size(); i-- > 0;) {
    at[i] = rank % mesh[i].size;
    rank /= mesh[i].size;
  }
  return at;
}

std::vector<double> take_part(std::span<const double> whole, std::span<const std::int64_t> shape,
                              const TensorOrigin& origin, std::span<const MeshAxis> mesh,
                              std::span<const std::int64_t> coordinates) {
  std::vector<double> part;
  for (const std::int64_t at :
       elements_of(Shape(shape.begin(), shape.end()), origin, mesh, coordinates))
    part.push_back(whole[static_cast<std::size_t>(at)]);
  return part;
}

void put_part(std::span<double> whole, std::span<const std::int64_t> shape,
              std::span<const double> part, const TensorOrigin& origin,
              std::span<const MeshAxis> mesh, std::span<const std::int64_t> coordinates) {
  const auto elements = elements_of(Shape(shape.begin(), shape.end()), origin, mesh, coordinates);
  internal_check(elements.size() == part.size(), "a part has another size than its tensor");
  for (std::size_t i = 0; i < elements.size(); ++i)
    whole[static_cast<std::size_t>(elements[i])] = part[i];
}

} // namespace monet::test
