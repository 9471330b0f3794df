// Joins the rows of consecutive Einsums along the graph of joins, and bounds the rest of each
// mapping. The searches by states (mapper.cpp) and by runs (runs.cpp) call this.
#include "reference/einsum/join.hpp"

#include <algorithm>

namespace monet::einsum {

namespace {

/// The minimum of every column of a group's rows.
std::vector<std::int64_t> min_of(const RowGroup& group) {
  std::vector<std::int64_t> least(group.row(0), group.row(0) + group.stride());
  for (std::size_t i = 1; i < group.size(); ++i) {
    for (std::size_t c = 0; c < least.size(); ++c)
      least[c] = std::min(least[c], group.row(i)[c]);
  }
  return least;
}

/// A lower bound of the bits held under all loops of a node's path: [step][node before it].
std::vector<std::vector<std::int64_t>> min_held(const JoinGraph& graph) {
  std::vector<std::vector<std::vector<std::int64_t>>> held{{{}}}; // [step][node][loops]
  std::vector<std::vector<std::int64_t>> least{{0}};
  std::vector<std::int64_t> shift;
  for (std::size_t e = 0; e < graph.steps.size(); ++e) {
    const JoinGraph::Step& step = graph.steps[e];
    std::vector<std::vector<std::int64_t>> columns;
    for (const RowGroup& group : step.rows->groups)
      columns.push_back(min_of(group));
    std::vector<std::vector<std::int64_t>> after;
    for (const Node& node : step.layer.nodes)
      after.emplace_back(node.trips.size(), kMax);
    for (const Edge& edge : step.layer.edges) {
      correction(graph.nodes(e)[edge.from], step.rows->groups[edge.group], step.uses, shift);
      const std::vector<std::int64_t>& before = held.back()[edge.from];
      std::vector<std::int64_t>& to = after[edge.to];
      for (std::size_t d = 0; d < to.size(); ++d) {
        const std::int64_t path = before.empty() ? 0 : before[std::min(d, before.size() - 1)];
        to[d] = std::min(to[d], path + columns[edge.group][d + 1] + shift[d]);
      }
    }
    std::vector<std::int64_t> deepest;
    for (const std::vector<std::int64_t>& node : after)
      deepest.push_back(node.empty() ? 0 : node.back());
    least.push_back(std::move(deepest));
    held.push_back(std::move(after));
  }
  return least;
}

/// Limits of the DRAM traffic per node and peak, beyond which a known point is at least as good.
class Slack {
public:
  explicit Slack(const JoinLimits& limits) : limits_(limits) {
    if (limits.to_go == nullptr)
      return;
    const std::vector<std::int64_t>& buffers = limits.to_go->buffers;
    for (std::size_t k = 0; k < buffers.size(); ++k) {
      const std::int64_t from = k == 0 ? 0 : buffers[k - 1] + 1; // minimum peak in interval k
      best_.push_back(kMax);
      for (const Point& point : limits.known)
        best_.back() = point.peak <= from ? std::min(best_.back(), point.dram) : best_.back();
    }
  }
  /// Computes the limits of a node before `step`.
  void prepare(std::size_t step, std::uint32_t node) {
    const RemainingBound& to_go = *limits_.to_go;
    slack_.resize(to_go.buffers.size());
    std::int64_t most = -1;
    for (std::size_t k = slack_.size(); k-- > 0;) {
      const std::int64_t rest = to_go.at(step, node, k);
      if (rest != kMax)
        most = std::max(most, best_[k] == kMax ? kMax : best_[k] - rest);
      slack_[k] = most;
    }
  }
  /// Whether a row with this DRAM traffic and peak may lead to a point better than the known ones.
  bool promising(std::int64_t dram, std::int64_t peak) const {
    const std::vector<std::int64_t>& buffers = limits_.to_go->buffers;
    const auto k = std::ranges::lower_bound(buffers, peak) - buffers.begin();
    return static_cast<std::size_t>(k) < slack_.size() &&
           dram < slack_[static_cast<std::size_t>(k)];
  }

private:
  const JoinLimits& limits_;
  std::vector<std::int64_t> best_; ///< per buffer size: DRAM bits of the best known point
  std::vector<std::int64_t> slack_;
};

class Step {
public:
  Step(const JoinGraph& graph, std::size_t e, const std::vector<NodeRows>& before,
       const JoinLimits& limits, JoinStatistics& statistics)
      : graph_(graph), step_(graph.steps[e]), e_(e), before_(before), limits_(limits),
        statistics_(statistics), slack_(limits) {
    const std::vector<Node>& nodes = step_.layer.nodes;
    after_.resize(nodes.size());
    thinned_.assign(nodes.size(), 0);
    winner_.assign(nodes.size(), 0);
    for (std::size_t n = 0; n < nodes.size(); ++n)
      after_[n].stride = 2 * nodes[n].trips.size() + 2;
    into_.resize(nodes.size());
    for (std::uint32_t i = 0; i < step_.layer.edges.size(); ++i)
      into_[step_.layer.edges[i].to].push_back(i);
  }

  std::vector<NodeRows> run(const SearchControl& control, Joined& joined) {
    std::size_t total = 0;
    for (std::uint32_t n = 0; n < after_.size(); ++n) {
      if (limits_.to_go != nullptr)
        slack_.prepare(e_ + 1, n);
      for (const std::uint32_t edge : into_[n])
        along(edge, control, joined);
      thin(n);
      if (limits_.rows_per_node != 0 && after_[n].size() > limits_.rows_per_node) {
        spread(after_[n], limits_.rows_per_node);
        joined.complete = false;
      }
      total += after_[n].size();
      if ((n & 15U) == 0 && control.interrupted())
        joined.interrupted = true;
      if (joined.interrupted || too_many() || (limits_.max_rows != 0 && total > limits_.max_rows)) {
        joined.complete = false;
        break;
      }
    }
    statistics_.kept += static_cast<std::int64_t>(total);
    return std::move(after_);
  }

private:
  bool too_many() const { return limits_.max_joins != 0 && statistics_.joined > limits_.max_joins; }

  void along(std::uint32_t index, const SearchControl& control, Joined& joined) {
    const Edge& edge = step_.layer.edges[index];
    const NodeRows& left = before_[edge.from];
    const RowGroup& group = step_.rows->groups[edge.group];
    NodeRows& to = after_[edge.to];
    const Node& from = graph_.nodes(e_)[edge.from];
    correction(from, group, step_.uses, shift_);
    n_ = from.trips.size();
    m_ = group.path.size();
    kept_ = step_.layer.nodes[edge.to].trips.size();
    out_.resize(to.stride);
    for (std::uint32_t i = 0; i < left.size() && !joined.interrupted && !too_many(); ++i) {
      for (std::uint32_t j = 0; j < group.size(); ++j) {
        if ((++statistics_.joined & 0xFFF) == 0 && control.interrupted()) {
          joined.interrupted = true;
          return;
        }
        if (!combine(left.row(i), group.row(j)))
          continue;
        ++statistics_.fitting;
        if (limits_.to_go != nullptr && !slack_.promising(out_[0], peak_))
          continue;
        if (limits_.most != nullptr &&
            static_cast<double>(out_[0]) + limits_.price * static_cast<double>(peak_) >
                (*limits_.most)[edge.to])
          continue;
        ++statistics_.promising;
        if (beaten(edge.to))
          continue;
        to.values.insert(to.values.end(), out_.begin(), out_.end());
        to.backs.push_back({index, i, j});
        if (to.size() > 2 * thinned_[edge.to] + 256)
          thin(edge.to);
      }
    }
  }

  bool combine(const std::int64_t* left, const std::int64_t* right) {
    const std::int64_t* c = left + 1;          // C_0 .. C_n-1
    const std::int64_t* p = left + 1 + 2 * n_; // P_0; P_1 .. P_n precede it
    const std::int64_t* held = right + 1;      // bits under at most d loops; held[m]: total
    const std::int64_t path = n_ > 0 ? c[n_ - 1] : 0;
    const std::int64_t here = path + held[m_] + shift_[m_];
    if (here > limits_.buffer_bits)
      return false;
    out_[0] = left[0] + right[0];
    std::int64_t* to_c = out_.data() + 1;
    std::int64_t* to_p = out_.data() + 1 + kept_; // P_kept .. P_0
    for (std::size_t d = 0; d < kept_; ++d)
      to_c[d] = (n_ > 0 ? c[std::min(d, n_ - 1)] : 0) + held[d] + shift_[d];
    std::fill(to_p, to_p + kept_ + 1, std::int64_t{0});
    for (std::size_t d = 0; d <= n_; ++d) {
      const std::int64_t peak = *(p - d) + (d > 0 ? held[d - 1] + shift_[d - 1] : 0);
      std::int64_t& to = to_p[kept_ - std::min(d, kept_)];
      to = std::max(to, peak);
    }
    to_p[0] = std::max(to_p[0], here);
    for (std::size_t d = 0; d < kept_; ++d) // bits held on the path are a peak, too
      to_p[kept_ - d] = std::max(to_p[kept_ - d], to_c[d]);
    peak_ = *std::max_element(to_p, to_p + kept_ + 1);
    return peak_ <= limits_.buffer_bits;
  }

  /// Whether out_ is dominated by the row that last dominated another one, or by a row left from
  /// the last thinning. Other rows are not checked.
  bool beaten(std::uint32_t to) {
    const NodeRows& rows = after_[to];
    const auto beats = [&](std::size_t i) {
      const std::int64_t* row = rows.row(i);
      for (std::size_t c = 0; c < compared(rows); ++c) {
        if (row[c] > out_[c])
          return false;
      }
      return true;
    };
    std::size_t& last = winner_[to];
    if (last < rows.size() && beats(last))
      return true;
    // Thinned rows are sorted by DRAM bits; rows with more cannot dominate.
    for (std::size_t i = 0; i < thinned_[to] && rows.row(i)[0] <= out_[0]; ++i) {
      if (beats(i)) {
        last = i;
        return true;
      }
    }
    return false;
  }

  /// Number of columns that dominance compares.
  std::size_t compared(const NodeRows& rows) const {
    return rows.stride - (limits_.one_buffer ? 1 : 0);
  }

  static void keep(NodeRows& rows, const std::vector<std::uint32_t>& order) {
    NodeRows kept;
    kept.values.reserve(order.size() * rows.stride);
    for (const std::uint32_t i : order) {
      kept.values.insert(kept.values.end(), rows.row(i), rows.row(i) + rows.stride);
      kept.backs.push_back(rows.backs[i]);
    }
    rows.values = std::move(kept.values);
    rows.backs = std::move(kept.backs);
  }

  void thin(std::uint32_t node) {
    std::vector<std::uint32_t> order;
    keep_pareto(after_[node].values, after_[node].stride, compared(after_[node]), order);
    keep(after_[node], order);
    thinned_[node] = after_[node].size();
  }

  /// Keeps `count` rows, evenly spaced by rank in DRAM traffic, including the first and last.
  static void spread(NodeRows& rows, std::size_t count) {
    std::vector<std::uint32_t> order;
    for (std::size_t i = 0; i < count; ++i)
      order.push_back(
          static_cast<std::uint32_t>(i * (rows.size() - 1) / std::max<std::size_t>(1, count - 1)));
    keep(rows, order);
  }

  const JoinGraph& graph_;
  const JoinGraph::Step& step_;
  std::size_t e_;
  const std::vector<NodeRows>& before_;
  const JoinLimits& limits_;
  JoinStatistics& statistics_;
  Slack slack_;
  std::vector<std::vector<std::uint32_t>> into_; ///< edges by target node
  std::vector<NodeRows> after_;
  std::vector<std::size_t> thinned_; ///< per node: number of rows left from the last thinning
  std::vector<std::size_t> winner_;  ///< per node: the row that last dominated another
  std::size_t n_ = 0;
  std::size_t m_ = 0;
  std::size_t kept_ = 0;
  std::int64_t peak_ = 0;
  std::vector<std::int64_t> shift_;
  std::vector<std::int64_t> out_;
};

} // namespace

RemainingBound make_to_go(const JoinGraph& graph, std::vector<std::int64_t> buffers,
                          const SearchControl& control) {
  const std::vector<std::vector<std::int64_t>> held = min_held(graph);
  RemainingBound to_go;
  to_go.buffers = std::move(buffers);
  const std::size_t width = to_go.buffers.size();
  to_go.least.resize(graph.steps.size() + 1);
  to_go.least.back().assign(graph.nodes(graph.steps.size()).size() * width, 0);
  std::vector<std::int64_t> shift;
  for (std::size_t e = graph.steps.size(); e-- > 0;) {
    const JoinGraph::Step& step = graph.steps[e];
    std::vector<std::int64_t>& least = to_go.least[e];
    if (control.interrupted()) {
      least.assign(graph.nodes(e).size() * width, 0);
      continue;
    }
    least.assign(graph.nodes(e).size() * width, kMax);
    for (const Edge& edge : step.layer.edges) {
      const RowGroup& group = step.rows->groups[edge.group];
      correction(graph.nodes(e)[edge.from], group, step.uses, shift);
      const std::int64_t bits_held = held[e][edge.from] + shift.back();
      std::size_t row = 0; // sorted by DRAM bits: the first row that fits is the best
      for (std::size_t k = width; k-- > 0;) {
        while (row < group.size() &&
               bits_held + group.row(row)[group.stride() - 1] > to_go.buffers[k])
          ++row;
        const std::int64_t rest = to_go.least[e + 1][edge.to * width + k];
        if (row == group.size() || rest == kMax)
          break;
        std::int64_t& here = least[edge.from * width + k];
        here = std::min(here, group.row(row)[0] + rest);
      }
    }
  }
  return to_go;
}

std::vector<NodeRows> join_last(const JoinGraph& graph, const std::vector<NodeRows>& before,
                                const JoinLimits& limits, const SearchControl& control,
                                Joined& joined, JoinStatistics& statistics) {
  return Step(graph, graph.steps.size() - 1, before, limits, statistics).run(control, joined);
}

std::vector<NodeRows> empty_rows() {
  NodeRows root;
  root.values = {0, 0};
  root.backs.push_back({0, 0, 0});
  return {std::move(root)};
}

Joined join(const JoinGraph& graph, const JoinLimits& limits, const SearchControl& control,
            JoinStatistics& statistics) {
  Joined joined;
  std::vector<NodeRows> first = empty_rows();
  for (std::size_t e = 0; e < graph.steps.size() && !joined.interrupted; ++e) {
    if (limits.max_joins != 0 && statistics.joined > limits.max_joins)
      break;
    std::vector<NodeRows>& before = e == 0 ? first : joined.steps.back();
    std::vector<NodeRows> after = Step(graph, e, before, limits, statistics).run(control, joined);
    for (NodeRows& rows : before) // only the back pointers are still needed
      rows.values = {};
    joined.steps.push_back(std::move(after));
    control.tell({limits.rows_per_node != 0 ? "einsums: first joins" : "einsums: exact joins",
                  static_cast<std::int64_t>(e + 1), static_cast<std::int64_t>(graph.steps.size())});
  }
  return joined;
}

} // namespace monet::einsum
