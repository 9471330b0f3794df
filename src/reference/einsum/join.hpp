// Joins rows along the graph of joins. Per node, rows are kept that are not dominated and that may
// still lead to a new point of the front.
#pragma once

#include "reference/einsum/graph.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace monet::einsum {

inline constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

/// The graph of joins of a cascade. Step e leads from the nodes of step e - 1, or from the empty
/// mapping, to the nodes after Einsum e.
struct JoinGraph {
  struct Step {
    const Shape* shape = nullptr;
    const Rows* rows = nullptr;
    Uses uses;
    Layer layer;
  };
  std::vector<Step> steps;
  std::vector<Node> root = std::vector<Node>(1);

  const std::vector<Node>& nodes(std::size_t step) const { ///< nodes before `step`
    return step == 0 ? root : steps[step - 1].layer.nodes;
  }
};

/// Lower bounds of the DRAM traffic of the rest of a mapping, by node and buffer size. Each Einsum
/// must fit alone, together with a lower bound of the bits held above it.
struct RemainingBound {
  std::vector<std::int64_t> buffers;            ///< ascending; the last is the capacity
  std::vector<std::vector<std::int64_t>> least; ///< [step][node before it * buffers + buffer]

  std::int64_t at(std::size_t step, std::uint32_t node, std::size_t buffer) const {
    return least[step][node * buffers.size() + buffer];
  }
};

/// Computes the bounds from the last step backwards. If interrupted, the remaining bounds are 0.
RemainingBound make_to_go(const JoinGraph& graph, std::vector<std::int64_t> buffers,
                          const SearchControl& control);

/// Rows of one node: {DRAM bits, C_0 .. C_n-1, P_n .. P_0}, where n is the number of loops shared
/// with later Einsums. C_d are the bits held under at most d of them; P_d is the peak in bits of
/// finished branches under d loops.
struct NodeRows {
  struct Backpointer {
    std::uint32_t edge, row; ///< `row` is of the edge's source node
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

/// Keeps the items that are not dominated in peak and DRAM traffic, sorted by ascending peak.
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
  std::size_t rows_per_node = 0; ///< 0: no limit
  std::size_t max_rows = 0;      ///< of all nodes after an Einsum
  std::int64_t max_joins = 0;    ///< total in the statistics; 0: no limit
  bool one_buffer = false;       ///< only the capacity matters: P_0 is ignored in comparisons
  /// Per node after the last step: maximum of DRAM bits + price * peak of useful rows.
  const std::vector<double>* most = nullptr;
  double price = 0;
  const RemainingBound* to_go = nullptr; ///< drops rows that cannot improve on `known`; may be null
  std::vector<Point> known;              ///< known front: ascending peaks, descending DRAM bits
};

struct JoinStatistics {
  std::int64_t joined = 0; ///< pairs of rows
  std::int64_t fitting = 0;
  std::int64_t promising = 0;
  std::int64_t kept = 0;
};

struct Joined {
  std::vector<std::vector<NodeRows>> steps; ///< after each Einsum, by node; values of the last only
  bool complete = true;                     ///< false: a work limit dropped rows
  bool interrupted = false;
};

/// Computes the rows after the last step of the graph from the rows before it. Sets the flags
/// `complete` and `interrupted` of `joined`.
std::vector<NodeRows> join_last(const JoinGraph& graph, const std::vector<NodeRows>& before,
                                const JoinLimits& limits, const SearchControl& control,
                                Joined& joined, JoinStatistics& statistics);

/// The row of the empty mapping, from which joins start.
std::vector<NodeRows> empty_rows();

Joined join(const JoinGraph& graph, const JoinLimits& limits, const SearchControl& control,
            JoinStatistics& statistics);

} // namespace monet::einsum
