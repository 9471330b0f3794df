// An array of cells on its way through passive nodes.
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

  /// Through path[at], a passive node. False when there is no way on; `stopped` says why.
  bool pass(const std::vector<std::uint32_t>& path, std::size_t at);

  CellArray array;
  /// Axes whose index matters; a consumer reads index 0 of the others. The reference's list can
  /// have another length than the array has axes. All true when exact.
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
  /// The axis' place; none, and stopped, where the array lacks it.
  std::optional<std::size_t> from_front(std::int64_t axis);
  bool take(std::int64_t axis, const std::vector<std::uint32_t>& places);
  bool stop(std::string why);
  /// Numbers of a constant input.
  std::optional<Shape> constant(const Operator& op, std::size_t input) const;
  std::int64_t axis_of(const Operator& op, std::int64_t usual) const;
  /// Made by this node?
  bool made_by(std::optional<TensorId> tensor, std::uint32_t node) const;

  const Graph& graph_;
  const Network& network_;
  bool exact_;
};

/// Python's slice(begin, end) of `size` elements: negative bounds count from the end.
Interval python_slice(std::int64_t begin, std::int64_t end, std::int64_t size);

} // namespace monet::stream
