#include "monet/optimise/einsum_mapper.hpp"

#include "einsum_join.hpp"

#include "monet/base/errors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>

namespace monet {

namespace {

using namespace einsum;

/// Where a tensor is used, and whether the mapper may choose where it is between its uses.
struct Following {
  std::vector<std::vector<std::uint32_t>> uses; ///< Einsums per tensor, rising
  std::vector<bool> made;
  std::vector<bool> followed; ///< from Einsum to Einsum
  std::vector<bool> may_stay; ///< in the buffer
  bool relaxed = false;       ///< some that may stay are not followed
};

bool used_twice(const Einsum& einsum, std::uint32_t tensor) {
  int count = 0;
  for (const EinsumOperand& operand : einsum.operands)
    count += operand.tensor == tensor ? 1 : 0;
  return count > 1;
}

Following follow(const EinsumCascade& cascade, bool resident) {
  const std::size_t tensors = cascade.tensors.size();
  Following f{std::vector<std::vector<std::uint32_t>>(tensors), std::vector<bool>(tensors),
              std::vector<bool>(tensors), std::vector<bool>(tensors, true)};
  for (std::uint32_t e = 0; e < cascade.einsums.size(); ++e) {
    for (const EinsumOperand& operand : cascade.einsums[e].operands) {
      if (f.uses[operand.tensor].empty() || f.uses[operand.tensor].back() != e)
        f.uses[operand.tensor].push_back(e);
      f.made[operand.tensor] = f.made[operand.tensor] || operand.written;
      if (used_twice(cascade.einsums[e], operand.tensor))
        f.may_stay[operand.tensor] = false;
    }
  }
  for (std::size_t t = 0; t < tensors; ++t) {
    if (f.uses[t].size() < 2 || (cascade.tensors[t].external && !resident))
      f.may_stay[t] = false;
    f.followed[t] = f.uses[t].size() > 1 && (f.made[t] || f.may_stay[t]);
  }
  return f;
}

std::int64_t bits_of(const EinsumTensor& tensor) {
  return std::accumulate(tensor.shape.begin(), tensor.shape.end(), tensor.bits,
                         std::multiplies<>());
}

/// Lets go of tensors that live past more than `span` Einsums: wherever each use wants them, they
/// are. Every mapping is one of the relaxed problem, with no more traffic and memory.
Following relax(Following f, std::uint32_t span) {
  for (std::size_t t = 0; t < f.uses.size(); ++t) {
    if (f.followed[t] && f.uses[t].back() - f.uses[t].front() > span) {
      f.followed[t] = false;
      f.relaxed = true;
    }
  }
  return f;
}

Shape shape_of(const EinsumCascade& cascade, const Following& follow, std::uint32_t e) {
  const Einsum& einsum = cascade.einsums[e];
  Shape shape{einsum.bounds, einsum.whole, {}};
  for (const EinsumOperand& operand : einsum.operands) {
    const std::uint32_t t = operand.tensor;
    const EinsumTensor& tensor = cascade.tensors[t];
    Shape::Operand o{operand.axes,    tensor.shape,       tensor.bits,
                     operand.written, follow.may_stay[t], 0};
    if (tensor.external && follow.may_stay[t] && follow.uses[t].front() == e)
      o.share_bits = bits_of(tensor);
    shape.operands.push_back(std::move(o));
  }
  return shape;
}

Uses uses_of(const EinsumCascade& cascade, const Following& follow, std::uint32_t e) {
  Uses uses;
  for (std::uint32_t o = 0; o < cascade.einsums[e].operands.size(); ++o) {
    const std::uint32_t t = cascade.einsums[e].operands[o].tensor;
    if (!follow.followed[t] || std::any_of(uses.uses.begin(), uses.uses.end(),
                                           [&](const Uses::Use& use) { return use.tensor == t; }))
      continue;
    uses.uses.push_back({o, t, follow.uses[t].front() < e, follow.uses[t].back() > e,
                         static_cast<bool>(follow.made[t])});
  }
  std::sort(uses.uses.begin(), uses.uses.end(),
            [](const Uses::Use& a, const Uses::Use& b) { return a.tensor < b.tensor; });
  return uses;
}

/// Rows by shape: each shape is solved once.
struct RowTable {
  std::vector<Shape> shapes;
  std::vector<Rows> rows;
  std::vector<std::uint32_t> of; ///< per Einsum
};

RowTable make_table(const EinsumCascade& cascade, const Following& follow,
                    const EinsumOptions& options, const SearchControl& control) {
  RowTable table;
  for (std::uint32_t e = 0; e < cascade.einsums.size(); ++e) {
    Shape shape = shape_of(cascade, follow, e);
    const auto known = std::find(table.shapes.begin(), table.shapes.end(), shape);
    table.of.push_back(static_cast<std::uint32_t>(known - table.shapes.begin()));
    if (known != table.shapes.end())
      continue;
    table.rows.push_back(make_rows(shape, options, control));
    table.shapes.push_back(std::move(shape));
    if (table.rows.back().groups.empty() && table.rows.back().complete)
      throw InfeasibleError(fmt::format("Einsum '{}' has no mapping within a buffer of {} bits",
                                        cascade.einsums[e].name, options.buffer_bits.value_or(0)));
    control.tell(
        {"einsums: mappings of one", e + 1, static_cast<std::int64_t>(cascade.einsums.size())});
  }
  return table;
}

/// The nodes of one row.
EinsumMapping describe(const Shape& shape, const Rows& rows, const RowGroup& group,
                       std::size_t row) {
  const RowSource& source = rows.sources[group.sources[row]];
  const std::size_t ranks = shape.bounds.size();
  EinsumMapping mapping;
  std::size_t path = 0;
  std::vector<std::int64_t> above = shape.bounds;
  for (std::size_t p = 0; p < source.order.size(); ++p) {
    const std::int64_t* tiles = source.tiles.data() + p * ranks;
    EinsumMapping::Node node;
    node.operand = source.order[p];
    node.in_buffer = group.levels[node.operand] != kInDram;
    node.dram_bits = source.traffic[p];
    node.tile_bits = tile_bits(shape.operands[node.operand], tiles);
    std::size_t loops = 0;
    for (std::uint32_t r = 0; r < ranks; ++r)
      loops += tiles[r] != above[r] ? 1U : 0U;
    if (path < group.path.size()) { // in the order that the neighbours have
      for (; loops > 0; --loops, ++path)
        node.loops.push_back(
            {group.path[path].rank, group.path[path].tile, group.path[path].trips});
    } else {
      for (std::uint32_t r = 0; r < ranks; ++r) {
        if (tiles[r] != above[r])
          node.loops.push_back({r, tiles[r], above[r] / tiles[r]});
      }
    }
    above.assign(tiles, tiles + ranks);
    mapping.nodes.push_back(std::move(node));
  }
  return mapping;
}

/// The mapping whose last row is `row` of the one node after the last Einsum.
std::vector<EinsumMapping> trace(const JoinGraph& graph, const Joined& joined, std::uint32_t row) {
  std::vector<EinsumMapping> mappings(graph.steps.size());
  std::uint32_t node = 0;
  for (std::size_t e = graph.steps.size(); e-- > 0;) {
    const JoinGraph::Step& step = graph.steps[e];
    const NodeRows::Back& back = joined.steps[e][node].backs[row];
    const Edge& edge = step.layer.edges[back.edge];
    mappings[e] = describe(*step.shape, *step.rows, step.rows->groups[edge.group], back.group_row);
    mappings[e].shared_loops = graph.node(e, edge.from).trips.size();
    node = edge.from;
    row = back.row;
  }
  return mappings;
}

std::vector<EinsumPoint> points_of(const JoinGraph& graph, const Joined& joined) {
  std::vector<EinsumPoint> points;
  if (joined.steps.size() < graph.steps.size() || joined.steps.back().empty())
    return points;
  const NodeRows& last = joined.steps.back().front();
  for (std::uint32_t i = 0; i < last.size(); ++i)
    points.push_back({last.row(i)[1], last.row(i)[0], trace(graph, joined, i)});
  return points;
}

/// Both together, without what another point dominates; buffer bits rising.
void merge(std::vector<EinsumPoint>& front, std::vector<EinsumPoint> more) {
  std::move(more.begin(), more.end(), std::back_inserter(front));
  std::stable_sort(front.begin(), front.end(), [](const EinsumPoint& a, const EinsumPoint& b) {
    return std::pair(a.buffer_bits, a.dram_bits) < std::pair(b.buffer_bits, b.dram_bits);
  });
  std::int64_t least = kMost;
  std::erase_if(front, [&](const EinsumPoint& point) {
    const bool worse = point.dram_bits >= least;
    least = std::min(least, point.dram_bits);
    return worse;
  });
}

void add_rules(const RowTable& table, const LayerStatistics& layers, const JoinStatistics& joins,
               EinsumStatistics& statistics) {
  statistics.signatures = table.shapes.size();
  for (const Rows& rows : table.rows) {
    for (const RowGroup& group : rows.groups)
      statistics.rows += group.size();
    for (std::size_t i = 0; i < rows.rules.size(); ++i) {
      if (statistics.rules.size() <= i)
        statistics.rules.push_back({rows.rules[i].name, 0, 0});
      statistics.rules[i].seen += rows.rules[i].seen;
      statistics.rules[i].kept += rows.rules[i].kept;
    }
  }
  statistics.joins = static_cast<std::size_t>(joins.joined);
  statistics.rules.push_back({"pairs whose loops fit together", layers.pairs, layers.compatible});
  statistics.rules.push_back({"joins that fit the buffer", joins.joined, joins.fitting});
  statistics.rules.push_back({"joins within the bounds", joins.fitting, joins.promising});
  statistics.rules.push_back({"joins that no other dominates", joins.promising, joins.kept});
}

/// Each Einsum alone, its shared tensors free: less DRAM traffic than that, of the Einsums from
/// each on, no mapping has.
std::vector<std::int64_t> least_from(const RowTable& table) {
  std::vector<std::int64_t> least(table.of.size() + 1, 0);
  for (std::size_t e = table.of.size(); e-- > 0;) {
    const Rows& rows = table.rows[table.of[e]];
    std::int64_t here = kMost;
    for (const RowGroup& group : rows.groups) // rows rise in DRAM bits
      here = std::min(here, group.row(0)[0]);
    least[e] = least[e + 1] + (rows.complete && here != kMost ? here : 0);
  }
  return least;
}

/// The search itself: a first pass with few rows for each future, then all that may beat it.
class Search {
public:
  Search(const EinsumOptions& options, const SearchControl& control, EinsumResult& result)
      : options_(options), control_(control), result_(result) {
    limits_.buffer_bits = options.buffer_bits.value_or(kMost);
    limits_.max_rows = options.max_rows;
  }

  void run(const JoinGraph& graph) {
    const ToGo any = make_to_go(graph, {limits_.buffer_bits}, control_);
    if (any.at(0, 0, 0) == kMost)
      return;
    if (result_.exact) // of all rows, and of all futures that may beat the best known
      result_.bound_dram_bits = std::max(
          result_.bound_dram_bits, result_.front.empty()
                                       ? any.at(0, 0, 0)
                                       : std::min(any.at(0, 0, 0), result_.front.back().dram_bits));
    limits_.to_go = &any;
    limits_.rows_per_node = std::max<std::size_t>(1, options_.first_rows);
    const bool all = pass(graph);
    if (all || result_.interrupted)
      return;
    limits_.rows_per_node = 0;
    std::vector<std::int64_t> buffers;
    for (const EinsumPoint& point : result_.front) {
      limits_.known.push_back({point.buffer_bits, point.dram_bits});
      if (options_.front)
        buffers.push_back(point.buffer_bits - 1);
    }
    buffers.push_back(limits_.buffer_bits);
    if (!options_.front && !limits_.known.empty())
      limits_.known = {{0, limits_.known.back().dram}}; // of use is only what needs less traffic
    const ToGo to_go = make_to_go(graph, std::move(buffers), control_);
    limits_.to_go = &to_go;
    result_.exact = pass(graph) && result_.exact;
  }

  JoinStatistics statistics;

private:
  bool pass(const JoinGraph& graph) {
    const Joined joined = join(graph, limits_, control_, statistics);
    merge(result_.front, points_of(graph, joined));
    result_.interrupted = result_.interrupted || joined.interrupted;
    if (joined.interrupted)
      result_.exact = false;
    return joined.complete;
  }

  const EinsumOptions& options_;
  const SearchControl& control_;
  EinsumResult& result_;
  JoinLimits limits_;
};

constexpr std::size_t kPairs = 100;           // tried for each future that is followed
constexpr std::size_t kMostPairs = 2'000'000; // of one Einsum
constexpr std::size_t kFutures = 500;         // of an Einsum in a first, simple attempt
constexpr std::size_t kFewestFutures = 500;   // of an Einsum, where not all are followed
constexpr std::size_t kAllFutures = 800'000;  // of all Einsums then

/// How futures were followed.
struct Futures {
  std::int64_t known = kMost; ///< only those with less DRAM traffic in the end are wanted
  bool complete = true;       ///< none was dropped for the number of them
  LayerStatistics layers;
};

/// Empty when interrupted.
JoinGraph make_graph(const EinsumCascade& cascade, const Following& following,
                     const RowTable& table, const EinsumOptions& options,
                     const SearchControl& control, Futures& futures) {
  JoinGraph graph;
  std::vector<std::int64_t> sizes;
  for (const EinsumTensor& tensor : cascade.tensors)
    sizes.push_back(bits_of(tensor));
  const std::vector<std::int64_t> rest = least_from(table);
  std::vector<std::int64_t> so_far{0};
  for (std::uint32_t e = 0; e < cascade.einsums.size(); ++e) {
    const std::uint32_t row = table.of[e];
    JoinGraph::Step step{&table.shapes[row], &table.rows[row], uses_of(cascade, following, e), {}};
    const std::vector<Node> before =
        e == 0 ? std::vector<Node>{graph.root} : graph.steps.back().layer.nodes;
    // Where not all futures can be followed, the fewer the longer the cascade.
    const std::size_t some = std::max(kFewestFutures, kAllFutures / cascade.einsums.size());
    const Promise promise{futures.complete ? options.max_futures
                                           : std::min(options.max_futures, some),
                          futures.known == kMost ? kMost : futures.known - rest[e + 1],
                          options.buffer_bits.value_or(kMost)};
    const LayerRules rules{options.reference_rules, following.relaxed,
                           std::clamp<std::size_t>(promise.count, 1, kMostPairs / kPairs) * kPairs};
    step.layer = next_layer(before, *step.shape, *step.rows, step.uses, rules, control,
                            futures.layers, futures.complete);
    if (keep_cheapest(step.layer, *step.rows, sizes, promise, so_far) > 0)
      futures.complete = false;
    graph.steps.push_back(std::move(step));
    control.tell({"einsums: futures", e + 1, static_cast<std::int64_t>(cascade.einsums.size())});
    if (control.interrupted())
      return {};
  }
  return graph;
}

/// What is outside comes in and goes out: once for each Einsum, or once if it may stay.
std::int64_t compulsory(const EinsumCascade& cascade, bool resident) {
  const Following following = follow(cascade, resident);
  std::int64_t sum = 0;
  for (std::uint32_t e = 0; e < cascade.einsums.size(); ++e) {
    const Shape shape = shape_of(cascade, following, e);
    for (std::size_t o = 0; o < shape.operands.size(); ++o) {
      const std::uint32_t t = cascade.einsums[e].operands[o].tensor;
      const bool counts =
          cascade.tensors[t].external && (!following.may_stay[t] || following.uses[t].front() == e);
      sum += counts ? tile_bits(shape.operands[o], shape.bounds.data()) : 0;
    }
  }
  return sum;
}

/// The best with at most so many shared loops, or with every tensor through DRAM for none: it takes
/// little time, and is what there is if nothing better is found in time.
void map_simply(const EinsumCascade& cascade, EinsumOptions options, int loops,
                const SearchControl& control, EinsumResult& result) {
  options.fuse = loops > 0;
  options.max_fused_loops = loops;
  options.max_futures = std::min(options.max_futures, kFutures);
  const Following following = follow(cascade, options.resident && options.fuse);
  const RowTable table = make_table(cascade, following, options, control);
  Futures futures;
  const JoinGraph graph = make_graph(cascade, following, table, options, control, futures);
  Search search(options, control, result);
  if (!graph.steps.empty())
    search.run(graph);
}

/// A bound on DRAM bits where not every future can be followed; `known` when nothing is better.
std::int64_t relaxed_bound(const EinsumCascade& cascade, const Following& following,
                           const RowTable& table, EinsumOptions options, std::int64_t known,
                           const SearchControl& control) {
  options.front = false;
  for (const std::uint32_t span : {4U, 2U, 1U, 0U}) {
    const Following relaxed = relax(following, span);
    Futures futures;
    futures.known = known;
    const JoinGraph graph = make_graph(cascade, relaxed, table, options, control, futures);
    if (graph.steps.empty())
      return 0;
    if (!futures.complete)
      continue;
    EinsumResult result;
    Search search(options, control, result);
    search.run(graph);
    if (!result.front.empty() && result.exact)
      return std::min(known, result.front.back().dram_bits);
    return result.exact ? known : std::min(known, result.bound_dram_bits);
  }
  return 0;
}

void map_fully(const EinsumCascade& cascade, const EinsumOptions& options,
               const SearchControl& control, EinsumResult& result) {
  const Following following = follow(cascade, options.resident);
  const RowTable table = make_table(cascade, following, options, control);
  const bool all_rows = std::all_of(table.rows.begin(), table.rows.end(),
                                    [](const Rows& rows) { return rows.complete; });
  result.bound_dram_bits = std::max(result.bound_dram_bits, least_from(table).front());
  Futures futures;
  if (!options.front && !result.front.empty())
    futures.known = result.front.back().dram_bits;
  const JoinGraph graph = make_graph(cascade, following, table, options, control, futures);
  for (const JoinGraph::Step& step : graph.steps)
    result.statistics.widest = std::max(result.statistics.widest, step.layer.nodes.size());
  result.exact = all_rows && futures.complete && !graph.steps.empty();
  Search search(options, control, result);
  if (!graph.steps.empty())
    search.run(graph);
  if (all_rows && !futures.complete && !result.front.empty()) {
    const std::int64_t best = result.front.back().dram_bits;
    result.bound_dram_bits = std::max(
        result.bound_dram_bits, relaxed_bound(cascade, following, table, options, best, control));
    result.exact = !options.front && !control.interrupted() && result.bound_dram_bits == best;
  }
  add_rules(table, futures.layers, search.statistics, result.statistics);
}

} // namespace

EinsumResult map_einsums(const EinsumCascade& cascade, const EinsumOptions& options,
                         const SearchControl& control) {
  verify(cascade);
  EinsumResult result;
  const SearchControl unlimited; // it takes milliseconds
  if (options.fuse)
    map_simply(cascade, options, 0, unlimited, result);
  if (options.fuse && options.max_fused_loops > 1 && !control.interrupted())
    map_simply(cascade, options, 1, control, result);
  result.exact = false;
  result.bound_dram_bits = compulsory(cascade, options.resident);
  if (!control.interrupted())
    map_fully(cascade, options, control, result);
  result.interrupted = result.interrupted || (!result.exact && control.interrupted());
  if (result.front.empty()) {
    if (!result.exact)
      return result;
    throw InfeasibleError(fmt::format("no mapping of the {} Einsums fits a buffer of {} bits",
                                      cascade.einsums.size(), options.buffer_bits.value_or(0)));
  }
  if (!options.front)
    result.front.erase(result.front.begin(), result.front.end() - 1);
  if (result.exact)
    result.bound_dram_bits = result.front.back().dram_bits;
  return result;
}

} // namespace monet
