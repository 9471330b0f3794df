#include "optimise/programs/min_cut.hpp"

#include <algorithm>

namespace monet {

std::uint32_t CutNetwork::add_node() {
  return nodes_++;
}

std::uint32_t CutNetwork::add_edge(std::uint32_t from, std::uint32_t to, std::int64_t capacity) {
  head_.push_back(to);
  head_.push_back(from);
  capacity_.push_back(capacity);
  capacity_.push_back(0);
  return static_cast<std::uint32_t>(head_.size() / 2 - 1);
}

/// Arcs by the node that they leave.
void CutNetwork::order_arcs() {
  begin_.assign(nodes_ + 1, 0);
  for (std::size_t arc = 0; arc < head_.size(); ++arc)
    ++begin_[head_[arc ^ 1] + 1];
  for (std::uint32_t node = 0; node < nodes_; ++node)
    begin_[node + 1] += begin_[node];
  arcs_.resize(head_.size());
  std::vector<std::uint32_t> at(begin_.begin(), begin_.end() - 1);
  for (std::size_t arc = 0; arc < head_.size(); ++arc)
    arcs_[at[head_[arc ^ 1]]++] = static_cast<std::uint32_t>(arc);
}

/// Distances from the source over arcs with capacity left; whether the sink has one. All nodes that
/// can be reached get theirs.
bool CutNetwork::find_levels(std::uint32_t source, std::uint32_t sink) {
  level_.assign(nodes_, kUnreached);
  level_[source] = 0;
  queue_.assign(1, source);
  for (std::size_t i = 0; i < queue_.size(); ++i) {
    const std::uint32_t node = queue_[i];
    for (std::uint32_t k = begin_[node]; k < begin_[node + 1]; ++k) {
      const std::uint32_t to = head_[arcs_[k]];
      if (left_[arcs_[k]] > 0 && level_[to] == kUnreached) {
        level_[to] = level_[node] + 1;
        queue_.push_back(to);
      }
    }
  }
  return level_[sink] != kUnreached;
}

/// One path down the levels; what flows along it, 0 when there is none left.
std::int64_t CutNetwork::augment(std::uint32_t source, std::uint32_t sink) {
  path_.clear();
  std::uint32_t node = source;
  while (node != sink) {
    if (next_[node] == begin_[node + 1]) { // a dead end
      if (path_.empty())
        return 0;
      node = head_[path_.back() ^ 1];
      path_.pop_back();
      ++next_[node];
      continue;
    }
    const std::uint32_t arc = arcs_[next_[node]];
    if (left_[arc] > 0 && level_[head_[arc]] == level_[node] + 1) {
      path_.push_back(arc);
      node = head_[arc];
    } else {
      ++next_[node];
    }
  }
  std::int64_t flow = kNoLimit;
  for (const std::uint32_t arc : path_)
    flow = std::min(flow, left_[arc]);
  for (const std::uint32_t arc : path_) {
    left_[arc] -= flow;
    left_[arc ^ 1] += flow;
  }
  return flow;
}

std::int64_t CutNetwork::solve(std::uint32_t source, std::uint32_t sink) {
  if (arcs_.size() != head_.size() || begin_.size() != nodes_ + 1)
    order_arcs();
  left_ = capacity_;
  std::int64_t cut = 0;
  while (cut < kNoLimit && find_levels(source, sink)) {
    next_.assign(begin_.begin(), begin_.end() - 1);
    while (const std::int64_t flow = augment(source, sink)) {
      cut += flow;
      if (cut >= kNoLimit)
        break;
    }
  }
  return cut;
}

} // namespace monet
