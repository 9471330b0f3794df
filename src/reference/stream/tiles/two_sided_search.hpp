// Shortest paths as networkx finds them: which of several it is decides what the reference does.
#pragma once

#include "monet/base/ids.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace monet::stream {

/// Searches from both ends by turns, one whole level at a time from the end with the smaller fringe
/// (the first when equal), and stops at the first meeting. `Neighbours`: (node, ahead) -> the nodes
/// after it, or those before it, in the order of the edges.
template <class Neighbours>
class TwoSidedSearch {
public:
  TwoSidedSearch(std::size_t nodes, Neighbours neighbours)
      : neighbours_(std::move(neighbours)), before_(nodes, kNone), after_(nodes, kNone) {}

  /// Nodes strictly between the two; nullopt without a path. `from` and `to` differ.
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
    path.pop_back(); // `to` itself, however the two searches met
    return path;
  }

private:
  void mark(std::vector<std::uint32_t>& from, std::uint32_t node, std::uint32_t by) {
    from[node] = by;
    touched_.push_back(node);
  }

  /// One level further; the node where the searches meet, or kNone.
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
  std::vector<std::uint32_t> before_, after_; ///< node from which each was reached; kNone = not yet
  std::vector<std::uint32_t> touched_, forward_, backward_;
};

} // namespace monet::stream
