// Minimum cuts that choose held and recomputed buffers at a price per byte; stored_choice.cpp and
// window_bound.cpp use them.
#include "optimise/recompute/bounds/rerun_cut.hpp"

#include "base/shared/checked.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/ids.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace monet {

namespace {

constexpr int kPrices = 40;
constexpr double kLargestSum = 0x1p60; // maximum sum of capacities

std::int64_t rounded_up(std::int64_t a, std::int64_t b) {
  return a / b + (a % b > 0 ? 1 : 0);
}

} // namespace

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

/// Sorts arcs by the node that they leave.
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

/// Computes distances from the source over arcs with remaining capacity, for all reachable nodes.
/// Returns whether the sink is reachable.
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

/// Augments one path down the levels. Returns its flow, or 0 if no path remains.
std::int64_t CutNetwork::augment(std::uint32_t source, std::uint32_t sink) {
  path_.clear();
  std::uint32_t node = source;
  while (node != sink) {
    if (next_[node] == begin_[node + 1]) { // dead end
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

RerunCut::RerunCut(const RecomputeProblem& problem, std::span<const std::uint32_t> wanted,
                   std::span<const std::uint8_t> there)
    : problem_(problem), source_(network_.add_node()), sink_(network_.add_node()) {
  std::vector<std::uint32_t> op_node(problem.ops.size(), kNone);
  std::vector<std::uint32_t> buffer_node(problem.buffers.size(), kNone);
  std::vector<std::uint32_t> open;
  unit_ = 0;
  const auto node_of = [&](std::uint32_t op) {
    if (op_node[op] == kNone) {
      op_node[op] = network_.add_node();
      ops_.push_back({op, op_node[op], network_.add_edge(op_node[op], sink_, 0)});
      all_cost_ = checked_add(all_cost_, problem.ops[op].cost);
      open.push_back(op);
    }
    return op_node[op];
  };
  const auto want = [&](std::uint32_t b, std::uint32_t reader) {
    if (there[b] != 0)
      return;
    if (buffer_node[b] == kNone) {
      buffer_node[b] = network_.add_node();
      const std::uint32_t producer = *problem.buffers[b].producer;
      const std::uint32_t maker = problem.ops[producer].repeatable ? node_of(producer) : sink_;
      buffers_.push_back({b, buffer_node[b], network_.add_edge(buffer_node[b], maker, 0), maker});
      unit_ = std::gcd(unit_, problem.buffers[b].bytes);
    }
    network_.add_edge(reader, buffer_node[b], CutNetwork::kNoLimit);
  };
  for (const std::uint32_t b : wanted)
    want(b, source_);
  asked_ = buffers_.size();
  while (!open.empty()) {
    const std::uint32_t op = open.back();
    open.pop_back();
    for (const std::uint32_t b : problem.ops[op].reads)
      want(b, op_node[op]);
  }
  unit_ = std::max<std::int64_t>(unit_, 1);
  for (std::size_t i = 0; i < asked_; ++i)
    all_units_ = checked_add(all_units_, problem.buffers[buffers_[i].of].bytes / unit_);
}

/// Scale of the integer capacities: costs times the scale, and bytes times the scaled price.
std::int64_t RerunCut::scale_for(double price) const {
  double units = 0;
  for (const Node& b : buffers_)
    units += static_cast<double>(problem_.buffers[b.of].bytes / unit_);
  const double sum = static_cast<double>(all_cost_) + (price + 1) * units + 1;
  double scale = 1;
  while (scale < 0x1p20 && 2 * scale * sum < kLargestSum)
    scale *= 2;
  return scale * sum < kLargestSum ? static_cast<std::int64_t>(scale) : 0;
}

RerunCut::Point RerunCut::solve(std::int64_t scale, std::int64_t price, std::int64_t& value) {
  for (const Node& b : buffers_)
    network_.set_capacity(b.edge, price * (problem_.buffers[b.of].bytes / unit_));
  for (const Node& op : ops_)
    network_.set_capacity(op.edge, scale * problem_.ops[op.of].cost);
  value = network_.solve(source_, sink_);
  Point point;
  for (const Node& op : ops_)
    point.cost += network_.on_source_side(op.node) ? problem_.ops[op.of].cost : 0;
  for (const Node& b : buffers_)
    point.units += is_held(b) ? problem_.buffers[b.of].bytes / unit_ : 0;
  return point;
}

bool RerunCut::is_held(const Node& buffer) const {
  return network_.on_source_side(buffer.node) && !network_.on_source_side(buffer.maker);
}

/// Stores the last solution.
void RerunCut::take(const Point& point, Answer& answer) const {
  answer.cost = point.cost;
  answer.bytes = point.units * unit_;
  answer.held.assign(problem_.buffers.size(), 0);
  for (const Node& b : buffers_)
    answer.held[b.of] = is_held(b) ? 1 : 0;
}

RerunCut::Answer RerunCut::least(std::int64_t room) {
  internal_check(room >= 0, "no room to hold anything");
  Answer answer;
  const std::int64_t units = room / unit_;
  Point above{0, all_units_}; // holds too many bytes
  if (above.units <= units) {
    answer.bytes = above.units * unit_;
    answer.held.assign(problem_.buffers.size(), 0);
    for (std::size_t i = 0; i < asked_; ++i)
      answer.held[buffers_[i].of] = 1;
    return answer;
  }
  std::int64_t value = 0;
  Point within = solve(0, 1, value); // minimum bytes at any cost
  if (within.units > units) {
    answer.infeasible = true;
    return answer;
  }
  take(within, answer);
  for (int i = 0; i < kPrices && above.units > within.units; ++i) {
    const double price = static_cast<double>(within.cost - above.cost) /
                         static_cast<double>(above.units - within.units);
    const std::int64_t scale = scale_for(price);
    if (scale == 0)
      break; // numbers are too large for a proof
    const auto whole = static_cast<std::int64_t>(std::floor(price * static_cast<double>(scale)));
    const Point found = solve(scale, whole, value);
    answer.bound = std::max(answer.bound, rounded_up(value - whole * units, scale));
    if (found.units <= units) {
      if (found.cost >= within.cost)
        break;
      within = found;
      take(within, answer);
    } else {
      if (found.cost <= above.cost)
        break;
      above = found;
    }
  }
  return answer;
}

} // namespace monet
