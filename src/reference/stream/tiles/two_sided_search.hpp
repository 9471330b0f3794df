// Shortest paths with the tie-breaking of networkx, on which the reference's results depend.
#pragma once

#include "monet/base/ids.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace monet::stream {

/// Bidirectional search, one whole level at a time from the end with the smaller fringe (the first
/// end if equal), until the searches meet. `Neighbours`: (node, ahead) -> the successors or
/// predecessors of a node, in edge order.
template <class Neighbours>
class TwoSidedSearch {
public:
  TwoSidedSearch(std::size_t nodes, Neighbours neighbours)
      : neighbours_(std::move(neighbours)), before_(nodes, kNone), after_(nodes, kNone) {}

  /// The nodes strictly between `from` and `to`, which must differ; nullopt if no path exists.
  std::optional<std::vector<std::uint32_t>> between(std::uint32_t from, std::uint32_t to) {
    for (const std::uint32_t node : touched_)
      before_[node] = after_[node] = kNone;
    touched_.clear();
    mark(before_, from, from);
    mark(after_, to, to);
    forward_ = {from};
    backward_ = {to};
    std::uint32_t meeting = kNone;
    while (meeting == kNone && !forward_.empty() && !backward_.empty())
      meeting = expand(forward_.size() <= backward_.size());
    if (meeting == kNone)
      return std::nullopt;
    std::vector<std::uint32_t> path;
    for (std::uint32_t node = meeting; node != from; node = before_[node])
      path.push_back(node);
    std::ranges::reverse(path);
    for (std::uint32_t node = meeting; node != to;) {
      node = after_[node];
      path.push_back(node);
    }
    path.pop_back(); // the last node is always `to`
    return path;
  }

private:
  void mark(std::vector<std::uint32_t>& from, std::uint32_t node, std::uint32_t by) {
    from[node] = by;
    touched_.push_back(node);
  }

  /// Expands one level. Returns the node where the searches meet, or kNone.
  std::uint32_t expand(bool ahead) {
    std::vector<std::uint32_t>& fringe = ahead ? forward_ : backward_;
    std::vector<std::uint32_t>& mine = ahead ? before_ : after_;
    const std::vector<std::uint32_t>& others = ahead ? after_ : before_;
    const std::vector<std::uint32_t> level = std::move(fringe);
    fringe.clear();
    for (const std::uint32_t node : level) {
      for (const std::uint32_t next : neighbours_(node, ahead)) {
        if (mine[next] == kNone) {
          fringe.push_back(next);
          mark(mine, next, node);
        }
        if (others[next] != kNone)
          return next;
      }
    }
    return kNone;
  }

  Neighbours neighbours_;
  std::vector<std::uint32_t> before_, after_; ///< node from which each was reached, or kNone
  std::vector<std::uint32_t> touched_, forward_, backward_;
};

} // namespace monet::stream
