// The graph of joins of a cascade, without its rows: the distinct states after each Einsum, and the
// row groups that lead from one state to the next.
#pragma once

#include "reference/einsum/rows.hpp"

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace monet::einsum {

/// A live tensor (used by a later Einsum), with the place of its tile.
struct Live {
  struct Loop {
    int axis = -1; ///< axis of the tensor; -1: the loop does not index it
    std::int64_t tile = 0;
    friend bool operator==(const Loop&, const Loop&) = default;
  };
  std::uint32_t tensor = 0;
  int level = kInDram;   ///< number of path loops above its tile, or kInDram
  std::int64_t bits = 0; ///< of that tile
  /// Loops above the tile, and loops below it under which Einsums have run since it was produced. A
  /// reader under one of the latter must find complete data.
  std::vector<Loop> loops;
};

/// A state after an Einsum, called a future in the documentation: loops shared with later Einsums
/// and live tensors.
struct Node {
  std::vector<std::int64_t> trips; ///< of the shared loops
  std::vector<Live> live;          ///< sorted by tensor
};

/// A transition between two nodes by the rows of `group` of the next Einsum.
struct Edge {
  std::uint32_t from = 0;
  std::uint32_t group = 0;
  std::uint32_t to = 0;
};

struct Layer {
  std::vector<Node> nodes; ///< after the Einsum
  std::vector<Edge> edges; ///< of the Einsum, sorted by `from`
};

/// Uses of tracked tensors by an Einsum.
struct Uses {
  struct Use {
    std::uint32_t operand = 0;
    std::uint32_t tensor = 0;
    bool before = false; ///< an earlier Einsum uses or makes it
    bool after = false;  ///< a later Einsum uses it
    bool made = false;   ///< by this or an earlier Einsum; false: an input of the cascade
  };
  std::vector<Use> uses; ///< sorted by tensor
};

/// An Einsum that is appended to a graph.
struct EinsumRows {
  const Shape& shape;
  const Rows& rows;
  const Uses& uses;
};

struct LayerStatistics {
  std::int64_t pairs = 0; ///< node and group with the same places of common tensors
  std::int64_t compatible = 0;
};

struct LayerRules {
  bool unordered = false; ///< the reference's rule (EinsumOptions)
  bool relaxed = false;   ///< untracked tensors may share loops, too
  std::size_t max_pairs = std::numeric_limits<std::size_t>::max(); ///< nodes times groups
  /// Whether untracked tensors may need the outermost loop after the Einsum.
  bool goes_on = false;
};

/// The layer after the next Einsum; incomplete if interrupted. Beyond `max_pairs` pairs, only every
/// second, third, ... node is expanded, and `complete` becomes false.
Layer next_layer(const std::vector<Node>& before, const EinsumRows& einsum, const LayerRules& rules,
                 const SearchControl& control, LayerStatistics& statistics, bool& complete);

/// Limits on the nodes of a layer.
struct NodeLimits {
  std::size_t count = 0;                                               ///< maximum
  std::int64_t max_dram = std::numeric_limits<std::int64_t>::max();    ///< exclusive, so far
  std::int64_t buffer_bits = std::numeric_limits<std::int64_t>::max(); ///< for live tensors
};

/// Drops nodes, with their edges, that exceed `max_dram` or `buffer_bits`. Then drops the most
/// expensive nodes beyond `count`: cost is the DRAM traffic so far plus one read of live tensors in
/// DRAM. Replaces `so_far`, the minimum traffic per node before the layer, by that after it.
/// Returns the number of nodes dropped because of `count`.
std::size_t keep_cheapest(Layer& layer, const Rows& rows,
                          const std::vector<std::int64_t>& tensor_bits, const NodeLimits& promise,
                          std::vector<std::int64_t>& so_far);

/// Keeps the marked items of a list, in order.
template <class Item>
void keep_marked(std::vector<Item>& items, const std::vector<bool>& keep) {
  std::size_t next = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!keep[i])
      continue;
    if (next != i)
      items[next] = std::move(items[i]);
    ++next;
  }
  items.resize(next);
}
/// Keeps the marked nodes of a layer, in order, and the edges that lead to them.
void keep_nodes(Layer& layer, const std::vector<bool>& keep);

/// Computes corrections of a group's rows when it joins a node: common tensors count once, and
/// tensors that the Einsum does not use stay in the buffer. `shift[d]` is added to the bits held
/// under at most d loops; the last entry is added to the total.
void correction(const Node& node, const RowGroup& group, const Uses& uses,
                std::vector<std::int64_t>& shift);

} // namespace monet::einsum
