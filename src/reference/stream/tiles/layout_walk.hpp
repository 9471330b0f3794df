// Moves an array of cells through the passive nodes between a producer and a consumer.
#pragma once

#include "reference/stream/tiles/cell_array.hpp"

#include <string>

namespace monet::stream {

class LayoutWalk {
public:
  LayoutWalk(const Graph& graph, const Network& network, CellArray start,
             std::vector<bool> first_relevant, bool exact)
      : array(std::move(start)), relevant(std::move(first_relevant)), graph_(graph),
        network_(network), exact_(exact) {}

  /// Passes the passive node path[at]. Returns false if that is impossible, with the reason in
  /// `stopped`.
  bool pass(const std::vector<std::uint32_t>& path, std::size_t at);

  CellArray array;
  /// Whether the index of each axis matters; of other axes a consumer reads index 0. The length can
  /// differ from the number of axes, as in the reference. All true if exact.
  std::vector<bool> relevant;
  std::string stopped;

private:
  bool reshape(Shape shape);
  bool mark(std::int64_t axis);
  bool pass_dummy(const Operator& op);
  bool pass_transpose(const Operator& op);
  bool pass_reshape(const Operator& op);
  bool pass_flatten(const Operator& op);
  bool pass_gather(const Operator& op, std::uint32_t previous);
  bool pass_slice(const Operator& op);
  bool pass_split(const Operator& op, std::uint32_t next);
  bool pass_concat(const Operator& op, std::uint32_t previous);
  /// Position of an axis, which may be negative. If the array lacks it: empty, and the walk stops.
  std::optional<std::size_t> from_front(std::int64_t axis);
  bool take(std::int64_t axis, const std::vector<std::uint32_t>& places);
  bool stop(std::string why);
  /// The integers of a constant input; empty if it is not constant.
  std::optional<Shape> constant(const Operator& op, std::size_t input) const;
  std::int64_t axis_of(const Operator& op, std::int64_t usual) const;
  /// Whether this node makes the tensor.
  bool made_by(std::optional<TensorId> tensor, std::uint32_t node) const;

  const Graph& graph_;
  const Network& network_;
  bool exact_;
};

/// The range of Python's slice(begin, end) of `size` elements; negative bounds count from the end.
Interval python_slice(std::int64_t begin, std::int64_t end, std::int64_t size);

} // namespace monet::stream
