// The elements of a tensor that a tile touches, one by one.
#pragma once

#include "monet/workload/graph.hpp"

#include <set>
#include <vector>

namespace monet::testing {

/// Positions of the elements of one operand that a tile touches: loops that the operand does not
/// have stand still, an axis that data decide takes every value.
class ElementWalk {
public:
  ElementWalk(const Access& access, const std::vector<Interval>& tile,
              const std::vector<std::int64_t>& shape)
      : access_(access), tile_(tile), shape_(shape), at_(tile.size()) {
    for (std::size_t d = 0; d < tile.size(); ++d) {
      at_[d] = tile[d].begin;
      if (uses(d) && !access.opaque)
        loops_.push_back(d);
    }
  }

  std::set<std::int64_t> positions() {
    for (const Interval& range : tile_) {
      if (range.empty())
        return {};
    }
    std::set<std::int64_t> all;
    do {
      collect(0, 0, all);
    } while (next());
    return all;
  }

private:
  bool uses(std::size_t dim) const {
    for (const AxisExpr& axis : access_.axes) {
      for (const AffineTerm& term : axis.terms) {
        if (term.dim == dim)
          return true;
      }
    }
    return false;
  }

  bool next() {
    for (const std::size_t d : loops_) {
      if (++at_[d] < tile_[d].end)
        return true;
      at_[d] = tile_[d].begin;
    }
    return false;
  }

  void collect(std::size_t axis, std::int64_t position, std::set<std::int64_t>& all) const {
    if (axis == shape_.size()) {
      all.insert(position);
      return;
    }
    if (access_.opaque || access_.axes[axis].data_dependent) {
      for (std::int64_t i = 0; i < shape_[axis]; ++i)
        collect(axis + 1, position * shape_[axis] + i, all);
      return;
    }
    std::int64_t value = access_.axes[axis].offset;
    for (const AffineTerm& term : access_.axes[axis].terms)
      value += term.coefficient * at_[term.dim];
    if (value >= 0 && value < shape_[axis])
      collect(axis + 1, position * shape_[axis] + value, all);
  }

  const Access& access_;
  const std::vector<Interval>& tile_;
  const std::vector<std::int64_t>& shape_;
  std::vector<std::int64_t> at_;
  std::vector<std::size_t> loops_;
};

/// What all reading (or writing) operands of the operator touch in a tile with these ranges.
inline std::set<std::int64_t> touched_elements(const Graph& graph, OpId op,
                                               const std::vector<Interval>& ranges, TensorId tensor,
                                               bool writes) {
  std::set<std::int64_t> all;
  for (const Access& access : graph.op(op).nest.operands) {
    if (access.tensor != tensor || (access.mode != AccessMode::read) != writes)
      continue;
    all.merge(ElementWalk(access, ranges, graph.tensor(tensor).shape).positions());
  }
  return all;
}

} // namespace monet::testing
