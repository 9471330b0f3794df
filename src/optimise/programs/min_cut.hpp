// Least cuts of networks with integer capacities.
#pragma once

#include <cstdint>
#include <limits>
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

} // namespace monet
