// What to hold and what to make again, as a least cut: the relaxation of a limit on the bytes held
// by a price per byte.
#pragma once

#include "optimise/programs/min_cut.hpp"

#include "monet/optimise/recompute_problem.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace monet {

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
