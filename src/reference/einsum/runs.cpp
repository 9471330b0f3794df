// Enumerates runs by joining Einsums from every possible begin. The search by runs (mapper.cpp)
// calls this, and the planner (plan.cpp) chooses among the runs.
#include "reference/einsum/runs.hpp"

#include "monet/base/errors.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace monet::einsum {

namespace {

using Pattern = std::vector<Run::Crossing>; // with local tensor numbers

/// The Einsums from one begin on, with tensors numbered locally in order of appearance.
class Window {
public:
  Window(const Cascade& c, std::uint32_t begin, bool open, std::uint32_t longest)
      : c_(c), begin_(begin), open_(open), longest_(longest),
        local_(c.cascade.tensors.size(), kNone) {}

  std::uint32_t begin() const { return begin_; }
  bool ended() const { return begin_ + uses_.size() == c_.cascade.einsums.size(); }
  std::size_t length() const { return uses_.size(); }
  /// Adds the next Einsum.
  void extend() {
    const auto e = static_cast<std::uint32_t>(begin_ + uses_.size());
    const auto known = static_cast<std::uint32_t>(tensors_.size());
    Uses uses;
    for (const Uses::Use& use : uses_of(c_.cascade, c_.following, e).uses) {
      const std::uint32_t t = use.tensor;
      const bool from_before = comes_from_before(t);
      if (from_before && !c_.following.may_stay[t])
        continue; // it is complete in DRAM
      if (local_[t] == kNone) {
        local_[t] = static_cast<std::uint32_t>(tensors_.size());
        tensors_.push_back(t);
      }
      // An earlier tensor stays in the key, because the previous run must agree on its place.
      const bool after = use.after && !(open_ && forgotten(t, e));
      uses.uses.push_back({use.operand, local_[t], local_[t] < known,
                           after || (from_before && !open_), use.made && !from_before});
    }
    std::ranges::sort(uses.uses, {}, &Uses::Use::tensor);
    signature_.push_back(c_.table.of[e]);
    for (const Uses::Use& use : uses.uses) {
      const bool from_before = comes_from_before(tensors_[use.tensor]);
      signature_.push_back((((static_cast<std::uint64_t>(use.tensor) << 8 | use.operand) << 6) |
                            (use.before ? 1U : 0U) | (use.after ? 2U : 0U) | (use.made ? 4U : 0U) |
                            (from_before ? 8U : 0U) |
                            (c_.following.may_stay[tensors_[use.tensor]] ? 16U : 0U)));
    }
    uses_.push_back(std::move(uses));
    passed_ = open_ && something_passes();
    signature_.push_back(passed_ ? ~std::uint64_t{1} : ~std::uint64_t{0});
  }
  /// Whether a tensor that the window does not use may need loops at its end that began earlier.
  bool passed() const { return passed_; }
  bool open() const { return open_; }
  const std::vector<std::uint64_t>& signature() const { return signature_; }
  std::uint32_t tensor(std::uint32_t local) const { return tensors_[local]; }
  bool comes_from_before(std::uint32_t tensor) const {
    return c_.following.uses[tensor].front() < begin_;
  }

  JoinGraph::Step step(std::size_t i) const {
    const std::uint32_t row = c_.table.of[begin_ + i];
    return {&c_.table.shapes[row], &c_.table.rows[row], uses_[i], {}};
  }
  /// Whether all earlier tensors are in places that are possible at the begin.
  bool possible(const Node& node) const {
    return open_ || std::ranges::none_of(node.live, [&](const Live& live) {
             return live.level > 0 && comes_from_before(tensors_[live.tensor]);
           });
  }
  Pattern pattern(const Node& node) const {
    Pattern pattern;
    for (const Live& live : node.live) {
      if (c_.following.may_stay[tensors_[live.tensor]])
        pattern.push_back({live.tensor, live.level == kInDram ? StorageLevel::dram
                                        : live.level == 0     ? StorageLevel::buffer
                                                              : StorageLevel::loops});
    }
    return pattern;
  }

  /// Upper bound of DRAM bits plus priced peak of a useful partial run that ends in this node. Only
  /// for a closed begin: paths to an open one are known only where runs were cut.
  double most(const Node& node, const RunBounds& bounds) const {
    const auto end = static_cast<std::uint32_t>(begin_ + uses_.size());
    const double price = price_of(bounds);
    const double around =
        bounds.before[RunBounds::closed(begin_)] +
        bounds.after[node.trips.empty() ? RunBounds::closed(end)
                                        : RunBounds::open(end, bounds.part(begin_))];
    double most = bounds.most - bounds.constant - around;
    std::size_t next = 0;
    for (std::uint32_t local = 0; local < tensors_.size(); ++local) {
      while (next < node.live.size() && node.live[next].tensor < local)
        ++next;
      const bool lives = next < node.live.size() && node.live[next].tensor == local;
      const std::uint32_t t = tensors_[local];
      const bool stored = lives && node.live[next].level == 0;
      const bool looped = lives && node.live[next].level > 0;
      if (!c_.following.may_stay[t] || !(stored || looped))
        continue;
      most += looped ? 0 : price * static_cast<double>(bounds.bits[t]);
      const std::vector<std::uint32_t>& uses = c_.following.uses[t];
      for (std::size_t u = 0; u < uses.size(); ++u) {
        if (uses[u] < begin_ || uses[u] >= end)
          continue;
        const std::size_t use = bounds.first_use[t] + u;
        const double whole = bounds.agreement[use];
        const double below = bounds.agreement[bounds.agreement.size() / 2 + use];
        most -= stored ? whole : below;
      }
    }
    return most + 1e-9 * (std::abs(bounds.most) + std::abs(bounds.constant)) + 0.5;
  }
  double price_of(const RunBounds& bounds) const {
    double price = 0;
    for (std::size_t e = begin_; e < begin_ + uses_.size(); ++e)
      price += bounds.capacity[e];
    return price;
  }

private:
  /// Whether a piece stops tracking a tensor after its use by Einsum e, because the next use is far
  /// away. Its place is then free, which keeps states few and pieces long.
  bool forgotten(std::uint32_t tensor, std::uint32_t e) const {
    const std::vector<std::uint32_t>& uses = c_.following.uses[tensor];
    const auto next = std::ranges::upper_bound(uses, e);
    return next != uses.end() && *next >= begin_ + longest_;
  }
  bool something_passes() const {
    for (std::uint32_t t = 0; t < local_.size(); ++t) {
      if (!c_.following.followed[t])
        continue;
      const bool away = local_[t] == kNone
                            ? comes_from_before(t)
                            : forgotten(t, static_cast<std::uint32_t>(begin_ + uses_.size()) - 1);
      if (away && c_.following.may_stay[t] && c_.following.uses[t].back() >= begin_ + uses_.size())
        return true;
    }
    return false;
  }

  const Cascade& c_;
  std::uint32_t begin_;
  bool open_;
  std::uint32_t longest_;
  std::vector<std::uint32_t> local_;   ///< by tensor
  std::vector<std::uint32_t> tensors_; ///< by local number
  std::vector<Uses> uses_;
  std::vector<std::uint64_t> signature_;
  bool passed_ = false;
};

/// Appends the layer of the window's last Einsum, without nodes that are impossible at the begin.
/// Returns false and appends nothing if there are too many pairs.
bool append_layer(const Window& window, const LayerRules& rules, const SearchControl& control,
                  LayerStatistics& statistics, JoinGraph& graph) {
  const std::size_t i = graph.steps.size();
  JoinGraph::Step step = window.step(i);
  bool complete = true;
  step.layer = next_layer(graph.nodes(i), {*step.shape, *step.rows, step.uses}, rules, control,
                          statistics, complete);
  if (!complete)
    return false;
  std::vector<bool> keep;
  for (const Node& node : step.layer.nodes)
    keep.push_back(window.possible(node));
  keep_nodes(step.layer, keep);
  graph.steps.push_back(std::move(step));
  return true;
}

/// Enumerates all runs from one begin on.
class Explorer {
public:
  Explorer(Window& window, const RunLimits& limits, const SearchControl& control)
      : window_(window), limits_(limits), control_(control) {}

  /// The runs, with local tensor numbers and begin 0.
  std::vector<Run> run() {
    std::vector<NodeRows> before = empty_rows();
    while (!window_.ended() && advance(before)) {
    }
    return std::move(runs_);
  }

private:
  bool advance(std::vector<NodeRows>& before) {
    window_.extend();
    const std::size_t i = window_.length() - 1;
    const bool appended = append(i);
    if (control_.interrupted())
      return false;
    if (!appended)
      return cut(i, before);
    JoinLimits limits;
    limits.buffer_bits = limits_.buffer_bits;
    limits.max_rows = i == 0 ? 0 : limits_.rows;
    limits.max_joins = i == 0 ? 0 : limits_.joins;
    std::vector<double> most;
    if (limits_.bounds != nullptr && !window_.open()) {
      for (const Node& node : graph_.steps.back().layer.nodes)
        most.push_back(window_.most(node, *limits_.bounds));
      limits.most = &most;
      limits.price = window_.price_of(*limits_.bounds);
    }
    Joined joined;
    std::vector<NodeRows> after = join_last(graph_, before, limits, control_, joined, statistics_);
    if (joined.interrupted)
      return false;
    if (!joined.complete) {
      graph_.steps.pop_back();
      return cut(i, before);
    }
    Layer& layer = graph_.steps.back().layer;
    std::vector<bool> keep;
    for (std::size_t n = 0; n < layer.nodes.size(); ++n) {
      const bool ends = layer.nodes[n].trips.empty();
      if (ends && after[n].size() > 0)
        add(layer.nodes[n], after[n]);
      keep.push_back(!ends && after[n].size() > 0);
    }
    emit(i + 1, false);
    keep_marked(after, keep);
    keep_nodes(layer, keep);
    layer.edges.clear();
    before = std::move(after);
    if (before.empty())
      return false;
    if (i + 1 >= limits_.longest || before.size() > limits_.nodes ||
        statistics_.joined > limits_.joins)
      return cut(i + 1, before);
    return true;
  }

  /// Appends the states after Einsum i. Returns false if there are too many.
  bool append(std::size_t i) {
    LayerRules rules;
    rules.unordered = limits_.unordered;
    rules.relaxed = window_.open();
    rules.goes_on = window_.passed();
    if (i > 0)
      rules.max_pairs = static_cast<std::size_t>(std::max<std::int64_t>(1, limits_.pairs - pairs_));
    LayerStatistics statistics;
    const bool complete = append_layer(window_, rules, control_, statistics, graph_);
    pairs_ += i == 0 ? 0 : statistics.pairs;
    return complete;
  }

  /// Ends enumeration: nodes with shared loops after `length` Einsums become open ends of pieces.
  bool cut(std::size_t length, const std::vector<NodeRows>& rows) {
    for (std::size_t n = 0; length > 0 && n < rows.size(); ++n)
      add(graph_.steps.back().layer.nodes[n], rows[n]);
    emit(length, true);
    return false;
  }

  void add(const Node& node, const NodeRows& rows) {
    std::vector<Run::Point>& points = found_[window_.pattern(node)];
    const std::size_t first_peak = 1 + node.trips.size();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::int64_t* row = rows.row(i);
      points.push_back({*std::max_element(row + first_peak, row + rows.stride), row[0]});
    }
  }
  void emit(std::size_t length, bool open) {
    for (auto& [pattern, points] : found_) {
      keep_front(points, &Run::Point::peak, &Run::Point::dram);
      Run run;
      run.end = static_cast<std::uint32_t>(length);
      run.open_end = open;
      run.crossing = pattern;
      run.points = std::move(points);
      runs_.push_back(std::move(run));
    }
    found_.clear();
  }

  Window& window_;
  const RunLimits& limits_;
  const SearchControl& control_;
  JoinGraph graph_;
  JoinStatistics statistics_;
  std::int64_t pairs_ = 0;
  std::map<Pattern, std::vector<Run::Point>> found_;
  std::vector<Run> runs_;
};

/// Caches runs by the signature of their Einsums, for reuse at other begins.
class RunMemo {
public:
  struct Entry {
    std::vector<std::uint64_t> signature;
    std::size_t length = 0;
    std::vector<Run> runs;
  };
  const Entry* find(const Cascade& c, std::uint32_t begin, bool open, Window& window) const {
    const auto at = entries_.find({open, c.table.of[begin]});
    if (at == entries_.end())
      return nullptr;
    for (const Entry& entry : at->second) {
      while (window.length() < entry.length && !window.ended())
        window.extend();
      if (window.length() >= entry.length && entry.signature.size() <= window.signature().size() &&
          std::equal(entry.signature.begin(), entry.signature.end(), window.signature().begin()))
        return &entry;
    }
    return nullptr;
  }
  void add(std::uint32_t shape, bool open, Entry entry) {
    entries_[{open, shape}].push_back(std::move(entry));
  }

private:
  std::map<std::pair<bool, std::uint32_t>, std::vector<Entry>> entries_;
};

void append_runs(const std::vector<Run>& from, const Window& window, std::uint32_t begin, bool open,
                 RunTable& table) {
  for (Run run : from) {
    run.begin = begin;
    run.end += begin;
    run.open_begin = open;
    for (Run::Crossing& crossing : run.crossing)
      crossing.tensor = window.tensor(crossing.tensor);
    std::ranges::sort(run.crossing);
    table.complete = table.complete && !run.open_end;
    table.runs.push_back(std::move(run));
  }
}

} // namespace

RunTable make_runs(const Cascade& cascade, const RunLimits& limits, const SearchControl& control) {
  RunTable table;
  RunMemo known;
  const auto count = static_cast<std::uint32_t>(cascade.cascade.einsums.size());
  std::vector<bool> opened(count + 1, false); // places where a piece ends
  for (std::uint32_t begin = 0; begin < count && !control.interrupted(); ++begin) {
    for (const bool open : {false, true}) {
      if (open && (begin == 0 || (limits.bounds != nullptr && !opened[begin])))
        continue;
      Window known_window(cascade, begin, open, limits.longest);
      const std::size_t first = table.runs.size();
      const bool shared = limits.bounds == nullptr || open; // bounds depend on the begin
      const RunMemo::Entry* const entry =
          shared ? known.find(cascade, begin, open, known_window) : nullptr;
      if (entry != nullptr) {
        append_runs(entry->runs, known_window, begin, open, table);
      } else {
        Window window(cascade, begin, open, limits.longest);
        RunMemo::Entry fresh;
        fresh.runs = Explorer(window, limits, control).run();
        fresh.signature = window.signature();
        fresh.length = window.length();
        append_runs(fresh.runs, window, begin, open, table);
        if (shared)
          known.add(cascade.table.of[begin], open, std::move(fresh));
      }
      for (std::size_t i = first; i < table.runs.size(); ++i)
        opened[table.runs[i].end] = opened[table.runs[i].end] || table.runs[i].open_end;
    }
    control.tell({"einsums: runs", begin + 1, count});
  }
  return table;
}

std::vector<EinsumMapping> map_run(const Cascade& cascade, const RunLimits& limits, const Run& run,
                                   const Run::Point& point, const SearchControl& control) {
  Window window(cascade, run.begin, false, limits.longest);
  JoinGraph graph;
  LayerStatistics statistics;
  for (std::uint32_t e = run.begin; e < run.end; ++e) {
    window.extend();
    LayerRules rules;
    rules.unordered = limits.unordered;
    append_layer(window, rules, control, statistics, graph);
    Layer& layer = graph.steps.back().layer;
    std::vector<bool> keep;
    for (const Node& node : layer.nodes) {
      Pattern pattern = window.pattern(node);
      for (Run::Crossing& crossing : pattern)
        crossing.tensor = window.tensor(crossing.tensor);
      std::ranges::sort(pattern);
      keep.push_back(node.trips.empty() == (e + 1 == run.end) &&
                     (e + 1 < run.end || pattern == run.crossing));
    }
    keep_nodes(layer, keep);
  }
  JoinLimits join_limits;
  join_limits.buffer_bits = point.peak;
  JoinStatistics joins;
  const Joined joined = join(graph, join_limits, control, joins);
  if (joined.interrupted || joined.steps.size() < graph.steps.size())
    return {};
  const NodeRows& last = joined.steps.back().front();
  for (std::uint32_t row = 0; row < last.size(); ++row) {
    if (last.row(row)[0] == point.dram)
      return trace(graph, joined, row);
  }
  throw InternalError("a run's mapping is not found again");
}

} // namespace monet::einsum
