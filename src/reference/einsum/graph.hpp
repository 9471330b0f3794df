// What joins of Einsums there are, whatever their rows: after each Einsum the different futures,
// and which rows lead from one to the next.
#pragma once

#include "reference/einsum/rows.hpp"

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace monet::einsum {

/// A tensor that a later Einsum uses, as that Einsum needs to know it.
struct Live {
  struct Loop {
    int axis = -1; ///< of the tensor; -1: the loop does not index it
    std::int64_t tile = 0;
    friend bool operator==(const Loop&, const Loop&) = default;
  };
  std::uint32_t tensor = 0;
  int level = kInDram;   ///< loops of the path above its tile in the buffer
  std::int64_t bits = 0; ///< of that tile
  /// The loops above the tile, and those below it under which Einsums since its making have run:
  /// who reads it under such a loop must find there what is complete.
  std::vector<Loop> loops;
};

/// One future: the loops that are shared with what comes, and the tensors that live on.
struct Node {
  std::vector<std::int64_t> trips; ///< of the shared loops
  std::vector<Live> live;          ///< by tensor
};

/// Rows of `group` of the next Einsum lead from one node to another.
struct Edge {
  std::uint32_t from = 0;
  std::uint32_t group = 0;
  std::uint32_t to = 0;
};

struct Layer {
  std::vector<Node> nodes; ///< after the Einsum
  std::vector<Edge> edges; ///< of the Einsum, by `from`
};

/// What an Einsum does to the tensors that are followed from Einsum to Einsum.
struct Uses {
  struct Use {
    std::uint32_t operand = 0;
    std::uint32_t tensor = 0;
    bool before = false; ///< an Einsum before uses or makes it
    bool after = false;  ///< an Einsum after uses it
    bool made = false;   ///< by this or an earlier Einsum, not given from outside
  };
  std::vector<Use> uses; ///< by tensor
};

struct LayerStatistics {
  std::int64_t pairs = 0; ///< that agree on the tensors which they share
  std::int64_t compatible = 0;
};

struct LayerRules {
  bool unordered = false; ///< the reference's rule (EinsumOptions)
  bool relaxed = false;   ///< tensors that are not followed may share loops, too
  std::size_t max_pairs = std::numeric_limits<std::size_t>::max(); ///< of nodes with groups
  /// Tensors that are not followed may need the outermost loop after the Einsum.
  bool goes_on = false;
};

/// The layer after one Einsum more; a part of it when interrupted. Beyond `max_pairs` only every
/// second, third, ... node is followed, and `complete` becomes false.
Layer next_layer(const std::vector<Node>& before, const Shape& shape, const Rows& rows,
                 const Uses& uses, const LayerRules& rules, const SearchControl& control,
                 LayerStatistics& statistics, bool& complete);

/// Which nodes of a layer to keep.
struct NodeLimits {
  std::size_t count = 0;                                               ///< at most
  std::int64_t max_dram = std::numeric_limits<std::int64_t>::max();    ///< so far, less than that
  std::int64_t buffer_bits = std::numeric_limits<std::int64_t>::max(); ///< for all that lives on
};

/// Drops nodes that need too much DRAM traffic so far or too much of the buffer, and beyond the
/// count those that need the most so far and for reading once what is in DRAM; and their edges.
/// `so_far` (by node before the layer) becomes that of the nodes after it. Returns how many the
/// count dropped.
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
/// The same of nodes, with the edges that lead to them.
void keep_nodes(Layer& layer, const std::vector<bool>& keep);

/// By how much the rows' columns are off when a group joins a node, since tensors of both sides
/// count once and one that goes past stays beside: added to the bits held under at most d = 0, 1,
/// ... loops, and last to those held in all.
void correction(const Node& node, const RowGroup& group, const Uses& uses,
                std::vector<std::int64_t>& shift);

} // namespace monet::einsum
