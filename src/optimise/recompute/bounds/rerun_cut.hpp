// Choice of held and recomputed buffers as a minimum cut, with the limit on held bytes relaxed by a
// price per byte.
#pragma once

#include "monet/optimise/recompute_problem.hpp"

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace monet {

/// Directed network. Capacities are non-negative and their sum must stay below kNoLimit.
class CutNetwork {
public:
  static constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max() / 4;

  /// Adds a node and returns its index.
  std::uint32_t add_node();
  /// Adds an edge and returns its index for set_capacity(). `capacity` is the cost of `from` on the
  /// source's side and `to` on the other; kNoLimit forbids that.
  std::uint32_t add_edge(std::uint32_t from, std::uint32_t to, std::int64_t capacity);
  void set_capacity(std::uint32_t edge, std::int64_t capacity) { capacity_[2 * edge] = capacity; }

  /// Minimum cut (Dinic 1970), which equals the maximum flow; kNoLimit or more if no cut exists.
  std::int64_t solve(std::uint32_t source, std::uint32_t sink);
  /// After solve(): whether the node is on the source's side of the minimum cut with the fewest
  /// nodes there.
  bool on_source_side(std::uint32_t node) const { return level_[node] != kUnreached; }

private:
  static constexpr std::uint32_t kUnreached = std::numeric_limits<std::uint32_t>::max();

  void order_arcs();
  bool find_levels(std::uint32_t source, std::uint32_t sink);
  std::int64_t augment(std::uint32_t source, std::uint32_t sink);

  // Arc 2e is edge e, arc 2e + 1 its reverse.
  std::vector<std::uint32_t> head_;
  std::vector<std::int64_t> capacity_;
  std::vector<std::int64_t> left_;
  std::uint32_t nodes_ = 0;
  std::vector<std::uint32_t> begin_; ///< per node, into arcs_
  std::vector<std::uint32_t> arcs_;
  std::vector<std::uint32_t> next_;
  std::vector<std::uint32_t> level_;
  std::vector<std::uint32_t> queue_;
  std::vector<std::uint32_t> path_;
};

/// Relaxed choice: every wanted buffer is held or its producer is recomputed, and then every input
/// of the producer is wanted as well. A held buffer costs its price if it is wanted and not
/// recomputed. All these choices are pairwise, so the cheapest ones form a cut. (PyTorch's min-cut
/// partitioner is the case without costs of recomputation.)
class RerunCut {
public:
  /// `there`: per buffer, 1 if it is available without being held or recomputed. Buffers of
  /// operators that are not repeatable must be held if wanted. Keeps a reference to the problem.
  RerunCut(const RecomputeProblem& problem, std::span<const std::uint32_t> wanted,
           std::span<const std::uint8_t> there);

  struct Answer {
    std::int64_t bound = 0;         ///< lower bound on the cost of any choice within the room
    bool infeasible = false;        ///< no choice fits the room
    std::int64_t cost = 0;          ///< cost of the choice below
    std::int64_t bytes = 0;         ///< bytes that it holds
    std::vector<std::uint8_t> held; ///< per buffer; empty if no choice within the room was found
  };
  /// Largest bound over all prices, and the cheapest choice found within `room`.
  Answer least(std::int64_t room);

private:
  /// Choice at one price.
  struct Point {
    std::int64_t cost = 0;
    std::int64_t units = 0;
  };

  struct Node {
    std::uint32_t of; ///< buffer or operator
    std::uint32_t node;
    std::uint32_t edge;      ///< edge with the price of holding or the cost of running
    std::uint32_t maker = 0; ///< of a buffer: operator node, or the sink if it runs once
  };

  Point solve(std::int64_t scale, std::int64_t price, std::int64_t& value);
  std::int64_t scale_for(double price) const;
  bool is_held(const Node& buffer) const;
  void take(const Point& point, Answer& answer) const;

  const RecomputeProblem& problem_;
  CutNetwork network_;
  std::uint32_t source_, sink_;
  std::int64_t unit_ = 1;      ///< bytes per unit
  std::int64_t all_units_ = 0; ///< total of the buffers wanted from outside
  std::int64_t all_cost_ = 0;  ///< total of the operators
  std::vector<Node> buffers_, ops_;
  std::size_t asked_ = 0; ///< number of buffers wanted from outside; they come first
};

} // namespace monet
