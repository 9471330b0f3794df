// Rows along the graph of joins: of those that have the same future the ones that no other
// dominates, and that may still lead to something new.
#pragma once

#include "reference/einsum/graph.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace monet::einsum {

inline constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

/// The graph of joins of a cascade: layers[e] leads from the nodes of layers[e - 1], or from the
/// empty mapping, to those after Einsum e.
struct JoinGraph {
  struct Step {
    const Shape* shape = nullptr;
    const Rows* rows = nullptr;
    Uses uses;
    Layer layer;
  };
  std::vector<Step> steps;
  std::vector<Node> root = std::vector<Node>(1);

  const std::vector<Node>& nodes(std::size_t step) const { ///< before `step`
    return step == 0 ? root : steps[step - 1].layer.nodes;
  }
};

/// Less DRAM traffic than this no rest of a mapping has, by what the buffer may hold at most.
/// Memory is shared by nothing but the row itself and the least that is held above it.
struct RemainingBound {
  std::vector<std::int64_t> buffers;            ///< rising; the last is the limit
  std::vector<std::vector<std::int64_t>> least; ///< [step][node before it * buffers + buffer]

  std::int64_t at(std::size_t step, std::uint32_t node, std::size_t buffer) const {
    return least[step][node * buffers.size() + buffer];
  }
};

/// Nothing is known of rests (0) from where it is interrupted.
RemainingBound make_to_go(const JoinGraph& graph, std::vector<std::int64_t> buffers,
                          const SearchControl& control);

/// Rows of one node: {DRAM bits, C_0 .. C_n-1, P_n .. P_0} where n loops are shared with what
/// comes; C_d bits are held under at most d of them; P_d bits is the peak of branches that have
/// ended under d loops.
struct NodeRows {
  struct Backpointer {
    std::uint32_t edge, row; ///< row of the node that the edge comes from
    std::uint32_t group_row;
  };
  std::size_t stride = 2;
  std::vector<std::int64_t> values;
  std::vector<Backpointer> backs;

  std::size_t size() const { return backs.size(); }
  const std::int64_t* row(std::size_t i) const { return values.data() + i * stride; }
};

struct Point {
  std::int64_t peak = 0;
  std::int64_t dram = 0;
};

/// Drops what another needs no more of the buffer and no more DRAM traffic than; peaks rising.
template <class Item>
void keep_front(std::vector<Item>& items, std::int64_t Item::*peak, std::int64_t Item::*dram) {
  std::ranges::stable_sort(items, [&](const Item& a, const Item& b) {
    return std::pair(a.*peak, a.*dram) < std::pair(b.*peak, b.*dram);
  });
  std::int64_t least = kMax;
  std::erase_if(items, [&](const Item& item) {
    const bool worse = item.*dram >= least;
    least = std::min(least, item.*dram);
    return worse;
  });
}

struct JoinLimits {
  std::int64_t buffer_bits = kMax;
  std::size_t rows_per_node = 0; ///< 0: all of them
  std::size_t max_rows = 0;      ///< of all nodes after an Einsum
  std::int64_t max_joins = 0;    ///< of the statistics; 0: any number
  bool one_buffer =
      false; ///< what has ended below no loop is forgotten, since it fits: P_0 is only told
  /// Per node after the last step: of no use where DRAM bits + price * peak are more.
  const std::vector<double>* most = nullptr;
  double price = 0;
  const RemainingBound* to_go =
      nullptr;              ///< with what is known: rows that cannot lead past it are dropped
  std::vector<Point> known; ///< peaks rising, DRAM bits falling
};

struct JoinStatistics {
  std::int64_t joined = 0; ///< row with row
  std::int64_t fitting = 0;
  std::int64_t promising = 0;
  std::int64_t kept = 0;
};

struct Joined {
  std::vector<std::vector<NodeRows>> steps; ///< after each Einsum, by node; values of the last only
  bool complete = true;                     ///< no row was dropped for a limit of work
  bool interrupted = false;
};

/// Rows after the last step of the graph, given those before it; `joined` receives whether all.
std::vector<NodeRows> join_last(const JoinGraph& graph, const std::vector<NodeRows>& before,
                                const JoinLimits& limits, const SearchControl& control,
                                Joined& joined, JoinStatistics& statistics);

/// The one row of the empty mapping.
std::vector<NodeRows> empty_rows();

Joined join(const JoinGraph& graph, const JoinLimits& limits, const SearchControl& control,
            JoinStatistics& statistics);

} // namespace monet::einsum
