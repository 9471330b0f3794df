// What to hold and what to make again, as a least cut: the relaxation of a limit on the bytes held
// by a price per byte.
#pragma once

#include "monet/optimise/recompute_problem.hpp"

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace monet {

/// A directed network. Capacities are not negative; their sum must stay below kNoLimit.
class CutNetwork {
public:
  static constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max() / 4;

  /// The node's index.
  std::uint32_t add_node();
  /// `capacity` is paid when `from` is on the source's side and `to` is not; kNoLimit: never so.
  /// The edge's index, for set_capacity().
  std::uint32_t add_edge(std::uint32_t from, std::uint32_t to, std::int64_t capacity);
  void set_capacity(std::uint32_t edge, std::int64_t capacity) { capacity_[2 * edge] = capacity; }

  /// The least cut (Dinic 1970), which equals the largest flow; kNoLimit or more: there is none.
  std::int64_t solve(std::uint32_t source, std::uint32_t sink);
  /// After solve(): on the source's side of the least cut with the fewest nodes there.
  bool on_source_side(std::uint32_t node) const { return level_[node] != kUnreached; }

private:
  static constexpr std::uint32_t kUnreached = std::numeric_limits<std::uint32_t>::max();

  void order_arcs();
  bool find_levels(std::uint32_t source, std::uint32_t sink);
  std::int64_t augment(std::uint32_t source, std::uint32_t sink);

  // Arc 2e is edge e, arc 2e + 1 its way back.
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

/// Every wanted buffer is held, or its producer runs again; then every buffer that the producer
/// reads is wanted, too. Whoever holds a buffer at a price pays when it is wanted and not made
/// again; as all these choices are pairwise, the cheapest are a cut. (The min-cut partitioner of
/// PyTorch is the case without costs of running again.)
class RerunCut {
public:
  /// `there`: per buffer, 1 where nobody need hold it or make it again. Those of operators that
  /// are not repeatable must be held when they are wanted. Keeps a reference to the problem.
  RerunCut(const RecomputeProblem& problem, std::span<const std::uint32_t> wanted,
           std::span<const std::uint8_t> there);

  struct Answer {
    std::int64_t bound = 0;         ///< runs of no choice within the room cost less
    bool infeasible = false;        ///< there is no choice within the room
    std::int64_t cost = 0;          ///< runs of the choice below
    std::int64_t bytes = 0;         ///< that it holds
    std::vector<std::uint8_t> held; ///< per buffer; empty: no choice within the room was found
  };
  /// The largest bound of all prices, and the cheapest choice within `room` that any of them gave.
  Answer least(std::int64_t room);

private:
  /// A choice for some price.
  struct Point {
    std::int64_t cost = 0;
    std::int64_t units = 0;
  };

  struct Node {
    std::uint32_t of; ///< buffer or operator
    std::uint32_t node;
    std::uint32_t edge; ///< whose capacity is the price of holding it, or the cost of running it
    std::uint32_t maker = 0; ///< of a buffer: node of its operator, or the sink if that runs once
  };

  Point solve(std::int64_t scale, std::int64_t price, std::int64_t& value);
  std::int64_t scale_for(double price) const;
  bool is_held(const Node& buffer) const;
  void take(const Point& point, Answer& answer) const;

  const RecomputeProblem& problem_;
  CutNetwork network_;
  std::uint32_t source_, sink_;
  std::int64_t unit_ = 1;      ///< bytes
  std::int64_t all_units_ = 0; ///< of the buffers wanted from outside
  std::int64_t all_cost_ = 0;  ///< of the operators
  std::vector<Node> buffers_, ops_;
  std::size_t asked_ = 0; ///< the first of the buffers are those wanted from outside
};

} // namespace monet
