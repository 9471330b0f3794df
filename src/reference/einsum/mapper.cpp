// Implements map_einsums(): searches the front by states or the best mapping by runs, and combines
// the results with lower bounds. The command `monet optimise fusion --model einsum` calls it.
#include "reference/einsum/plan.hpp"
#include "reference/einsum/prices.hpp"

#include "monet/base/errors.hpp"
#include "monet/reference/einsum_mapper.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace monet {

namespace {

using namespace einsum;

/// Merges `more` into a front. The result has no dominated points and ascending buffer bits.
void merge(std::vector<EinsumPoint>& front, std::vector<EinsumPoint> more) {
  std::move(more.begin(), more.end(), std::back_inserter(front));
  keep_front(front, &EinsumPoint::buffer_bits, &EinsumPoint::dram_bits);
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

/// Lower bounds of the DRAM traffic of all Einsums from each one on: sums of the minima of single
/// Einsums, with shared tensors free of charge.
std::vector<std::int64_t> min_from(const RowTable& table) {
  std::vector<std::int64_t> least(table.of.size() + 1, 0);
  for (std::size_t e = table.of.size(); e-- > 0;) {
    const Rows& rows = table.rows[table.of[e]];
    std::int64_t here = kMax;
    for (const RowGroup& group : rows.groups) // row 0 has the fewest DRAM bits
      here = std::min(here, group.row(0)[0]);
    least[e] = least[e + 1] + (rows.complete && here != kMax ? here : 0);
  }
  return least;
}

/// The search by states: a first pass keeps few rows per state, the second all rows that may lead
/// to better mappings.
class Search {
public:
  Search(const EinsumOptions& options, const SearchControl& control, EinsumResult& result)
      : options_(options), control_(control), result_(result) {
    limits_.buffer_bits = options.buffer_bits.value_or(kMax);
    limits_.max_rows = options.max_rows;
    limits_.one_buffer = !options.front;
    limits_.max_joins = options.max_joins;
  }

  void run(const JoinGraph& graph) {
    const RemainingBound any = make_to_go(graph, {limits_.buffer_bits}, control_);
    if (any.at(0, 0, 0) == kMax)
      return;
    if (result_.exact) // valid only if no row or useful state is missing
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
      limits_.known = {{0, limits_.known.back().dram}}; // only less traffic is an improvement
    const RemainingBound to_go = make_to_go(graph, std::move(buffers), control_);
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

constexpr std::uint32_t kLongLife = 6;       // Einsums between first and last use
constexpr std::size_t kPairs = 100;          // pairs per state
constexpr std::size_t kMaxPairs = 2'000'000; // pairs per Einsum
constexpr std::size_t kFutures = 500;        // states per Einsum in a first, simple attempt
constexpr std::size_t kFewestFutures = 500;  // minimum per Einsum, if some states are dropped
constexpr std::size_t kAllFutures = 800'000; // total over all Einsums, if some are dropped

/// Options and outcome of make_graph(); a future is a state after an Einsum (see Node).
struct Futures {
  std::int64_t known = kMax;  ///< states that cannot lead to less DRAM traffic are dropped
  bool complete = true;       ///< false: a limit on their number dropped states
  bool only_complete = false; ///< stop as soon as a limit drops a state
  LayerStatistics layers;
};

/// The graph of joins of a cascade; empty if interrupted.
JoinGraph make_graph(const EinsumCascade& cascade, const TensorUses& following,
                     const RowTable& table, const EinsumOptions& options,
                     const SearchControl& control, Futures& futures) {
  JoinGraph graph;
  std::vector<std::int64_t> sizes;
  for (const EinsumTensor& tensor : cascade.tensors)
    sizes.push_back(bits_of(tensor));
  const std::vector<std::int64_t> rest = min_from(table);
  std::vector<std::int64_t> so_far{0};
  for (std::uint32_t e = 0; e < cascade.einsums.size(); ++e) {
    const std::uint32_t row = table.of[e];
    JoinGraph::Step step{&table.shapes[row], &table.rows[row], uses_of(cascade, following, e), {}};
    // If states must be dropped, fewer are kept per Einsum in a longer cascade.
    const std::size_t some = std::max(kFewestFutures, kAllFutures / cascade.einsums.size());
    const NodeLimits promise{futures.complete ? options.max_futures
                                              : std::min(options.max_futures, some),
                             futures.known == kMax ? kMax : futures.known - rest[e + 1],
                             options.buffer_bits.value_or(kMax)};
    const LayerRules rules{options.reference_rules, following.relaxed,
                           std::clamp<std::size_t>(promise.count, 1, kMaxPairs / kPairs) * kPairs};
    step.layer = next_layer(graph.nodes(e), {*step.shape, *step.rows, step.uses}, rules, control,
                            futures.layers, futures.complete);
    if (control.interrupted())
      return {};
    if (keep_cheapest(step.layer, *step.rows, sizes, promise, so_far) > 0)
      futures.complete = false;
    graph.steps.push_back(std::move(step));
    control.tell({"einsums: bounds of remaining costs", e + 1,
                  static_cast<std::int64_t>(cascade.einsums.size())});
    if (futures.only_complete && !futures.complete)
      return {};
  }
  return graph;
}

/// Compulsory DRAM traffic: external tensors are transferred once per Einsum, or once in total if
/// they may stay in the buffer.
std::int64_t compulsory(const EinsumCascade& cascade, bool resident) {
  const TensorUses following = follow(cascade, resident);
  std::int64_t sum = 0;
  for (std::uint32_t e = 0; e < cascade.einsums.size(); ++e) {
    const Shape shape = shape_of(cascade, following, e);
    for (std::size_t o = 0; o < shape.operands.size(); ++o) {
      const std::uint32_t t = cascade.einsums[e].operands[o].tensor;
      const bool counts =
          cascade.tensors[t].external && (!following.may_stay[t] || following.uses[t].front() == e);
      sum += counts ? min_bits(shape, o) : 0;
    }
  }
  return sum;
}

/// Adds the best mappings found by the search by states under the given options.
void map_by_futures(const EinsumCascade& cascade, const EinsumOptions& options,
                    const SearchControl& control, Tiles tiles, EinsumResult& result) {
  const TensorUses following = follow(cascade, options.resident && options.fuse);
  const RowTable table = make_table(cascade, following, options, control, tiles);
  Futures futures;
  const JoinGraph graph = make_graph(cascade, following, table, options, control, futures);
  if (!graph.steps.empty())
    Search(options, control, result).run(graph);
}

/// Adds the best mappings with at most `loops` shared loops; 0 keeps every tensor in DRAM. This is
/// fast and serves as a fallback if the full search runs out of time.
void map_simply(const EinsumCascade& cascade, EinsumOptions options, int loops,
                const SearchControl& control, EinsumResult& result) {
  options.fuse = loops > 0;
  options.max_fused_loops = loops;
  options.max_futures = std::min(options.max_futures, kFutures);
  map_by_futures(cascade, options, control, Tiles::all, result);
}

/// Adds some mapping with every tensor in DRAM, as a fallback if there was no time for a search.
void map_coarsely(const EinsumCascade& cascade, EinsumOptions options, EinsumResult& result) {
  options.fuse = false;
  options.front = false;
  EinsumResult found;
  map_by_futures(cascade, options, {}, Tiles::coarse, found); // takes milliseconds: no limits
  merge(result.front, std::move(found.front));
}

/// A lower bound of the DRAM bits for cascades with too many states, from a relaxed problem. It is
/// `known` if no mapping is better.
std::int64_t relaxed_bound(const EinsumCascade& cascade, const TensorUses& following,
                           const RowTable& table, EinsumOptions options, std::int64_t known,
                           const SearchControl& control) {
  options.front = false;
  for (const std::uint32_t span : {4U, 2U, 1U, 0U}) {
    const TensorUses relaxed = relax(following, span);
    Futures futures;
    futures.known = known;
    const JoinGraph graph = make_graph(cascade, relaxed, table, options, control, futures);
    if (graph.steps.empty())
      return 0;
    if (!futures.complete)
      continue;
    EinsumResult result;
    Search(options, control, result).run(graph);
    if (!result.front.empty() && result.exact)
      return std::min(known, result.front.back().dram_bits);
    return result.exact ? known : std::min(known, result.bound_dram_bits);
  }
  return 0;
}

/// The mapping of a plan.
EinsumPoint point_of(const Cascade& c, const RunLimits& limits, const RunTable& runs,
                     const Plan& plan) {
  const SearchControl unlimited; // a found plan is always returned
  EinsumPoint point{plan.peak, plan.dram, {}};
  for (const Plan::Choice& choice : plan.runs) {
    const Run& run = runs.runs[choice.run];
    for (EinsumMapping& mapping : map_run(c, limits, run, run.points[choice.point], unlimited))
      point.einsums.push_back(std::move(mapping));
  }
  return point;
}

/// The tensors that may be in the buffer between runs.
std::vector<Stored> stored_of(const Cascade& c) {
  std::vector<Stored> stored;
  for (std::uint32_t t = 0; t < c.cascade.tensors.size(); ++t) {
    if (!c.following.followed[t] || !c.following.may_stay[t])
      continue;
    const std::vector<std::uint32_t>& uses = c.following.uses[t];
    const Shape& shape = c.table.shapes[c.table.of[uses.front()]];
    for (std::size_t o = 0; o < shape.operands.size(); ++o) {
      if (c.cascade.einsums[uses.front()].operands[o].tensor == t)
        stored.push_back({t, tile_bits(shape.operands[o], shape.bounds.data()), uses});
    }
  }
  return stored;
}

struct Round {
  std::uint32_t longest;
  std::size_t nodes;
  std::int64_t pairs;
  std::int64_t joins;
  std::size_t states; ///< plan states after each run
};
/// Limits of the rounds. Each round uses the bounds of the previous one to discard runs, and so can
/// afford longer runs.
constexpr std::array<Round, 3> kRounds{{{6, 500, 100'000, 1'000'000, 1'000},
                                        {24, 800, 150'000, 1'500'000, 2'000},
                                        {60, 8'000, 2'000'000, 40'000'000, 8'000}}};

/// Adds the best mapping for one buffer size, searched by runs. Returns whether it is proven
/// optimal.
bool map_runs(const Cascade& c, const EinsumOptions& options, const SearchControl& control,
              EinsumResult& result) {
  const bool all_rows = std::ranges::all_of(c.table.rows, &Rows::complete);
  RunBounds bounds;
  RunTable first;
  for (const Round& round : kRounds) {
    RunLimits limits;
    limits.buffer_bits = options.buffer_bits.value_or(kMax);
    limits.unordered = options.reference_rules;
    limits.longest = round.longest;
    limits.nodes = std::min(round.nodes, options.max_futures);
    limits.pairs = round.pairs;
    limits.joins = round.joins;
    limits.bounds = bounds.before.empty() ? nullptr : &bounds;
    RunTable runs = make_runs(c, limits, control);
    if (control.interrupted())
      return false;
    PlanProblem problem{runs,         static_cast<std::uint32_t>(c.cascade.einsums.size()),
                        stored_of(c), limits.buffer_bits,
                        kMax,         bounds};
    if (!result.front.empty())
      problem.known = result.front.back().dram_bits;
    Plan plan = plan_runs(problem, round.states, control);
    if (all_rows)
      result.bound_dram_bits = std::max(result.bound_dram_bits, plan.bound);
    if (!plan.runs.empty())
      merge(result.front, {point_of(c, limits, runs, plan)});
    if (!result.front.empty() && result.bound_dram_bits >= result.front.back().dram_bits)
      return true;
    if (runs.complete || control.interrupted())
      return false;
    bounds = std::move(plan.bounds);
    if (first.runs.empty())
      first = std::move(runs);
    Prices({first, problem.einsums, problem.stored, problem.buffer_bits, kMax, bounds}, bounds)
        .fill(bounds);
  }
  return false;
}

/// Whether a tensor that may stay in the buffer lives so long that there would be too many states.
bool lives_long(const TensorUses& following) {
  for (std::size_t t = 0; t < following.uses.size(); ++t) {
    if (following.followed[t] && following.may_stay[t] &&
        following.uses[t].back() - following.uses[t].front() > kLongLife)
      return true;
  }
  return false;
}

void map_fully(const EinsumCascade& cascade, const EinsumOptions& options,
               const SearchControl& control, EinsumResult& result) {
  const TensorUses following = follow(cascade, options.resident);
  const RowTable table = make_table(cascade, following, options, control);
  const bool all_rows = std::ranges::all_of(table.rows, &Rows::complete);
  result.bound_dram_bits = std::max(result.bound_dram_bits, min_from(table).front());
  Futures futures;
  const bool by_runs = !options.front && options.by_runs.value_or(lives_long(following));
  if (by_runs) {
    result.exact = map_runs({cascade, following, table}, options, control, result);
    if (result.exact || options.by_runs || control.interrupted()) {
      add_rules(table, {}, {}, result.statistics);
      return;
    }
    futures.only_complete = true;
  }
  if (!options.front && !result.front.empty())
    futures.known = result.front.back().dram_bits;
  const JoinGraph graph = make_graph(cascade, following, table, options, control, futures);
  for (const JoinGraph::Step& step : graph.steps)
    result.statistics.widest = std::max(result.statistics.widest, step.layer.nodes.size());
  result.exact = all_rows && futures.complete && !graph.steps.empty();
  Search search(options, control, result);
  if (!graph.steps.empty())
    search.run(graph);
  if (all_rows && !futures.complete && !futures.only_complete && !result.front.empty()) {
    const std::int64_t best = result.front.back().dram_bits;
    result.bound_dram_bits = std::max(
        result.bound_dram_bits, relaxed_bound(cascade, following, table, options, best, control));
    result.exact = !options.front && !control.interrupted() && result.bound_dram_bits == best;
  }
  if (!options.front && !by_runs && !options.by_runs && !result.exact && !control.interrupted())
    result.exact = map_runs({cascade, following, table}, options, control, result);
  add_rules(table, futures.layers, search.statistics, result.statistics);
}

} // namespace

EinsumResult map_einsums(const EinsumCascade& cascade, const EinsumOptions& options,
                         const SearchControl& control) {
  verify(cascade);
  EinsumResult result;
  if (options.fuse)
    map_simply(cascade, options, 0, control, result);
  if (options.fuse && options.max_fused_loops > 1 && !control.interrupted())
    map_simply(cascade, options, 1, control, result);
  result.exact = false;
  result.bound_dram_bits = compulsory(cascade, options.resident);
  if (!control.interrupted())
    map_fully(cascade, options, control, result);
  if (result.front.empty() && control.interrupted())
    map_coarsely(cascade, options, result);
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
