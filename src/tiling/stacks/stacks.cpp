// Chooses which operators run fused and along which loops their slices are cut; tiling.cpp calls it
// before slices are divided over cores.
#include "tiling/stacks/stacks.hpp"

#include "base/shared/checked.hpp"
#include "tiling/partition/split.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/stop.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>

namespace monet {

namespace {

/// Maximum operators of an automatically chosen stack.
constexpr std::size_t kLongestStack = 64;
/// Maximum consecutive operators of a stack whose tiles would fit without slices.
constexpr std::size_t kMaxLightOperators = 8;
/// Maximum loops of one operator from which slices may start.
constexpr std::size_t kMaxSeeds = 6;
/// Maximum size of a first axis that is cut into single iterations.
constexpr std::int64_t kLargestBatch = 64;
/// Maximum pairs of slices of a reader and of its producer with common elements in automatic
/// slicing. kFewNeighbours pairs for each slice of the reader are always allowed.
constexpr double kMaxCrossings = 16384;
constexpr double kFewNeighbours = 16;
constexpr std::uint32_t kAlone = std::numeric_limits<std::uint32_t>::max();

/// The loop of the first output's first axis if it may be cut and has 2 to kLargestBatch
/// iterations.
std::optional<std::uint32_t> batch_loop(const LoopNest& nest) {
  const auto output = std::ranges::find_if(
      nest.operands, [](const Access& a) { return a.mode != AccessMode::read; });
  if (output == nest.operands.end() || output->axes.size() < 2 ||
      output->axes.front().terms.size() != 1)
    return std::nullopt;
  const std::uint32_t dim = output->axes.front().terms.front().dim;
  const std::int64_t size = nest.dims[dim].size;
  if (size < 2 || size > kLargestBatch || loop_use(nest, dim) != LoopUse::parallel)
    return std::nullopt;
  return dim;
}

/// Makes the slices that follow from `loops` and from the given ones, which stay. The number of
/// slices of members without sliced consumers is that of the given ones, at least `least`.
void follow_given(const StackSlicer& slicer, StackSlicer::Loops loops, std::int64_t least,
                  Halo halo, std::vector<Slices>& slices) {
  std::vector<bool> fixed;
  for (const Slices& given : slices) {
    fixed.push_back(!given.empty());
    if (!given.empty())
      least = std::max(least, std::ssize(given.front().parts));
  }
  slicer.spread(loops);
  slicer.make_slices(loops, least, halo, fixed, slices);
}

} // namespace

/// One or two loops of a member, from which slices start. `outer`, if any, is cut into single
/// iterations.
struct SliceFinder::Seed {
  std::uint32_t member = 0;
  std::uint32_t loop = 0;
  std::optional<std::uint32_t> outer;
};

/// Slices of all members that follow from a seed.
struct SliceFinder::Candidate {
  Seed seed;
  StackSlicer::Loops outer;
  StackSlicer::Loops loops;
  std::size_t reached = 0;  ///< members with a loop
  std::size_t sums = 0;     ///< members whose slices add up
  std::int64_t longest = 1; ///< iterations of the longest loop
  std::int64_t outer_count = 1;
  std::int64_t count = 1;     ///< slices along `loops`
  std::int64_t excess = 0;    ///< bits that do not fit
  std::vector<Slices> slices; ///< per member

  /// Smaller for better candidates.
  auto key() const {
    return std::tuple(excess > 0, -static_cast<std::int64_t>(reached), sums, excess,
                      count * outer_count);
  }
};

SliceFinder::SliceFinder(const Graph& graph, const Chip& chip, const CoreLists& cores,
                         const std::vector<Slices>& given, const std::vector<Slices>& planned)
    : graph_(graph), cores_(cores), given_(given), planned_(planned),
      any_given_(std::ranges::any_of(given, [](const auto& s) { return !s.empty(); })), room_(chip),
      scratch_(graph) {}

/// True if the operator's tiles do not fit their cores without slices.
bool SliceFinder::crowded(OpId op) const {
  const auto& cores = cores_[op.index()];
  return tile_bits(graph_, graph_.op(op), {}, std::ssize(cores)) > room_.of_a_tile(cores);
}

bool SliceFinder::update(std::size_t op) const {
  return graph_.op(OpId(op)).phase == Phase::update;
}

/// Loops of the member from which slices may start: single ones, then each inside the batch loop.
std::vector<SliceFinder::Seed> SliceFinder::seeds(std::uint32_t member, OpId op) const {
  const LoopNest& nest = graph_.op(op).nest;
  std::vector<std::uint32_t> dims;
  for (std::size_t d = 0; d < nest.dims.size() && dims.size() < kMaxSeeds; ++d) {
    if (nest.dims[d].size > 1 && loop_use(nest, d) == LoopUse::parallel)
      dims.push_back(static_cast<std::uint32_t>(d));
  }
  std::vector<Seed> result;
  for (const std::uint32_t dim : dims)
    result.push_back({member, dim, std::nullopt});
  const auto batch = batch_loop(nest);
  for (const std::uint32_t dim : dims) {
    if (batch && dim != *batch)
      result.push_back({member, dim, batch});
  }
  return result;
}

/// The loops of all members that follow from the seed; slices are not made yet.
SliceFinder::Candidate SliceFinder::spread(const StackSlicer& slicer, std::span<const OpId> members,
                                           const Seed& seed) const {
  Candidate candidate;
  candidate.seed = seed;
  candidate.loops.resize(members.size());
  candidate.loops[seed.member] = seed.loop;
  slicer.spread(candidate.loops);
  if (seed.outer) {
    candidate.outer.resize(members.size());
    candidate.outer[seed.member] = seed.outer;
    slicer.spread(candidate.outer);
    candidate.outer_count = graph_.op(members[seed.member]).nest.dims[*seed.outer].size;
  }
  for (std::size_t m = 0; m < members.size(); ++m) {
    const LoopNest& nest = graph_.op(members[m]).nest;
    const auto& outer = seed.outer ? candidate.outer[m] : std::nullopt;
    candidate.reached += candidate.loops[m] || outer ? 1 : 0;
    for (const auto& loop : {candidate.loops[m], outer}) {
      if (loop && loop_use(nest, *loop) == LoopUse::summed)
        ++candidate.sums;
    }
    if (candidate.loops[m])
      candidate.longest = std::max(candidate.longest, nest.dims[*candidate.loops[m]].size);
  }
  return candidate;
}

/// Bits by which the members' tiles and their working set exceed the memories.
std::int64_t SliceFinder::excess(const StackSlicer& slicer, std::span<const OpId> members,
                                 const std::vector<Slices>& slices) const {
  std::int64_t excess = 0;
  std::vector<bool> used;
  std::vector<std::int64_t> copies; // copies of kept operands per member: at most one per core
  for (std::size_t m = 0; m < members.size(); ++m) {
    const auto& cores = cores_[members[m].index()];
    if (update(members[m].index())) { // refine() cuts it until it fits
      copies.push_back(0);
      continue;
    }
    copies.push_back(std::ssize(cores));
    for (const CoreId core : cores) {
      if (used.size() <= core.index())
        used.resize(core.index() + 1, false);
      used[core.index()] = true;
    }
    const std::int64_t bits =
        tile_bits(graph_, graph_.op(members[m]), slices[m], std::ssize(cores));
    excess = checked_add(excess, std::max<std::int64_t>(0, bits - room_.of_a_tile(cores)));
  }
  return checked_add(
      excess, std::max<std::int64_t>(0, working_set(graph_, members, slicer, slices, copies) -
                                            room_.together(used)));
}

/// Finds the fewest slices, doubling from `least`, with which everything fits; the most allowed if
/// it never fits.
void SliceFinder::fit(const StackSlicer& slicer, std::span<const OpId> members, Halo halo,
                      std::int64_t least, Candidate& candidate) const {
  const std::vector<bool> fixed(members.size(), false);
  std::vector<Slices> outer(members.size());
  if (candidate.seed.outer)
    slicer.make_slices(candidate.outer, candidate.outer_count, halo, fixed, outer);
  std::pair<std::int64_t, std::vector<Slices>> fewer;
  for (std::int64_t count = std::min(least, candidate.longest);; count *= 2) {
    candidate.count = std::min(count, candidate.longest);
    candidate.slices = outer;
    if (candidate.count > 1)
      slicer.make_slices(candidate.loops, candidate.count, halo, fixed, candidate.slices);
    if (cross_much(members, candidate.slices)) {
      if (count > std::min(least, candidate.longest)) {
        candidate.count = fewer.first;
        candidate.slices = std::move(fewer.second);
      }
      candidate.excess = std::max<std::int64_t>(
          1, excess(slicer, members, candidate.slices)); // more slices would meet even more pairs
      return;
    }
    fewer = {candidate.count, candidate.slices};
    candidate.excess = excess(slicer, members, candidate.slices);
    if (candidate.excess == 0 && recomputes_much(graph_, members, candidate.slices))
      candidate.excess = 1; // smaller slices recompute more
    if (candidate.excess == 0 || count >= candidate.longest)
      return;
  }
}

/// True if slices of a member and of an operator that it reads form too many pairs to follow.
bool SliceFinder::cross_much(std::span<const OpId> members,
                             const std::vector<Slices>& slices) const {
  for (std::size_t m = 0; m < members.size(); ++m) {
    const LoopNest& nest = graph_.op(members[m]).nest;
    const double most = std::max(kMaxCrossings, kFewNeighbours * slices_in(slices[m]));
    for (const Access& access : nest.operands) {
      const auto producer = graph_.tensor(access.tensor).producer;
      if (access.mode != AccessMode::read || !producer)
        continue;
      const auto at = std::ranges::find(members, *producer);
      const Slices& makers = at != members.end()
                                 ? slices[static_cast<std::size_t>(at - members.begin())]
                                 : planned_[producer->index()];
      if (crossings(graph_, access, nest, slices[m], makers) > most)
        return true;
    }
  }
  return false;
}

/// True if the mapping's slices, and those that follow for other members, fit on the chip.
bool SliceFinder::fits_as_given(const StackSlicer& slicer, std::span<const OpId> members,
                                Halo halo) const {
  StackSlicer::Loops loops;
  std::vector<Slices> slices;
  for (const OpId member : members) {
    const Slices& own = slices.emplace_back(given_[member.index()]);
    loops.push_back(own.empty() ? std::nullopt : std::optional(own.front().dim));
  }
  follow_given(slicer, std::move(loops), 1, halo, slices);
  return excess(slicer, members, slices) == 0;
}

/// End of the longest stack from `first` that fits when it is sliced from a single seed. Operators
/// at its end that would fit without slices are left out, except one after the last crowded
/// operator.
std::size_t SliceFinder::grow(std::size_t first, Halo halo) {
  check_stop();
  std::vector<OpId> members{OpId(first)};
  std::vector<std::pair<Seed, std::int64_t>> alive; // with its number of slices so far
  if (!any_given_) {
    for (const Seed& seed : seeds(0, OpId(first)))
      alive.emplace_back(seed, 1);
  }
  std::size_t last_crowded = first;
  std::size_t end = first + 1;
  for (; end < graph_.operators().size() && members.size() < kLongestStack && !update(end); ++end) {
    members.emplace_back(end);
    const StackSlicer slicer(graph_, members, scratch_);
    std::vector<std::pair<Seed, std::int64_t>> left;
    if (any_given_ && fits_as_given(slicer, members, halo))
      left.emplace_back();
    for (const auto& [seed, count] : alive) {
      Candidate candidate = spread(slicer, members, seed);
      if (candidate.reached < members.size())
        continue;
      fit(slicer, members, halo, count, candidate);
      if (candidate.excess == 0)
        left.emplace_back(seed, candidate.count);
    }
    if (left.empty())
      break;
    if (!any_given_)
      alive = std::move(left);
    if (crowded(OpId(end)))
      last_crowded = end;
    if (end - last_crowded > kMaxLightOperators)
      break;
  }
  // The operator after a crowded one reads a tensor that is too large for one core.
  return std::min(end, last_crowded + 2);
}

std::vector<std::vector<OpId>> SliceFinder::stacks(Halo halo) {
  const std::size_t count = graph_.operators().size();
  std::vector<std::vector<OpId>> stacks;
  stacked_.assign(count, kAlone);
  for (std::size_t first = 0; first < count;) {
    const bool starts =
        !update(first) && (crowded(OpId(first)) ||
                           (first + 1 < count && !update(first + 1) && crowded(OpId(first + 1))));
    const std::size_t last = starts ? grow(first, halo) : first + 1;
    if (last - first > 1) {
      auto& stack = stacks.emplace_back();
      for (std::size_t i = first; i < last; ++i) {
        stack.emplace_back(i);
        stacked_[i] = static_cast<std::uint32_t>(stacks.size() - 1);
      }
    }
    first = last;
  }
  for (std::size_t i = 0; i < count; ++i)
    join_gradient(OpId(i), stacks);
  return stacks;
}

/// Adds an update to the stack of the latest producer of its inputs, if that makes a weight's
/// gradient.
void SliceFinder::join_gradient(OpId id, std::vector<std::vector<OpId>>& stacks) {
  const Operator& op = graph_.op(id);
  if (op.phase != Phase::update || stacked_[id.index()] != kAlone)
    return;
  std::optional<OpId> maker;
  for (const auto& input : op.inputs) {
    if (input && graph_.tensor(*input).producer)
      maker = std::max(maker, graph_.tensor(*input).producer);
  }
  const GradientOf of = maker ? graph_.op(*maker).gradient_of : GradientOf::none;
  if (of != GradientOf::weight && of != GradientOf::both)
    return;
  std::uint32_t& stack = stacked_[maker->index()];
  if (stack == kAlone) {
    stack = static_cast<std::uint32_t>(stacks.size());
    stacks.push_back({*maker});
  }
  stacks[stack].push_back(id);
  stacked_[id.index()] = stack;
}

std::optional<StackSlices> SliceFinder::fill_in(std::span<const OpId> members, Halo halo,
                                                std::int64_t least, StackSlicer::Loops loops,
                                                std::vector<Slices>& slices) {
  const StackSlicer slicer(graph_, members, scratch_);
  if (std::ranges::any_of(loops, [](const auto& loop) { return loop.has_value(); })) {
    follow_given(slicer, std::move(loops), least, halo, slices);
    return std::nullopt;
  }
  std::vector<Seed> starts = seeds(static_cast<std::uint32_t>(members.size() - 1), members.back());
  if (members.size() > 1) {
    const std::vector<Seed> more = seeds(0, members.front());
    starts.insert(starts.end(), more.begin(), more.end());
  }
  std::optional<Candidate> best;
  for (const Seed& seed : starts) {
    Candidate candidate = spread(slicer, members, seed);
    fit(slicer, members, halo, least, candidate);
    if (!best || candidate.key() < best->key())
      best = std::move(candidate);
  }
  StackSlices chosen;
  if (!best)
    return chosen;
  slices = std::move(best->slices);
  refine_updates(members, slices);
  const OpId from = members[best->seed.member];
  if (best->seed.outer)
    chosen.cuts.push_back({from, *best->seed.outer, best->outer_count});
  if (best->count > 1)
    chosen.cuts.push_back({from, best->seed.loop, best->count});
  return chosen;
}

std::vector<Slices> SliceFinder::cut(std::span<const OpId> members, Halo halo,
                                     const StackSlices& plan) {
  const StackSlicer slicer(graph_, members, scratch_);
  const std::vector<bool> fixed(members.size(), false);
  std::vector<Slices> slices(members.size());
  for (const StackSlices::Cut& cut : plan.cuts) {
    const auto place = std::ranges::find(members, cut.op);
    internal_check(place != members.end(), "a stack is cut along a loop of an operator outside");
    const LoopNest& nest = graph_.op(cut.op).nest;
    internal_check(cut.dim < nest.dims.size() && loop_use(nest, cut.dim) != LoopUse::never,
                   "a stack is cut along a loop that may not be cut");
    StackSlicer::Loops loops(members.size());
    loops[static_cast<std::size_t>(place - members.begin())] = cut.dim;
    slicer.spread(loops);
    slicer.make_slices(loops, cut.count, plan.halo.value_or(halo), fixed, slices);
  }
  if (members.size() > 1 || !plan.cuts.empty()) // else the operator stays whole
    refine_updates(members, slices);
  return slices;
}

void SliceFinder::refine_updates(std::span<const OpId> members, std::vector<Slices>& slices) const {
  for (std::size_t m = 0; m < members.size(); ++m) {
    if (update(members[m].index()))
      refine(members[m], slices[m]);
  }
}

/// Cuts the operator along further loops until its tiles fit their cores.
void SliceFinder::refine(OpId id, Slices& slices) const {
  const Operator& op = graph_.op(id);
  const auto& cores = cores_[id.index()];
  const std::int64_t room = room_.of_a_tile(cores);
  for (std::uint32_t d = 0; d < op.nest.dims.size(); ++d) {
    const bool known =
        std::ranges::any_of(slices, [&](const SliceCut& cut) { return cut.dim == d; });
    if (known || op.nest.dims[d].size < 2 || loop_use(op.nest, d) != LoopUse::parallel)
      continue;
    slices.push_back({d, {}});
    for (std::int64_t parts = 1;; parts = std::min(2 * parts, op.nest.dims[d].size)) {
      slices.back() = even_slices(op.nest, d, parts);
      if (parts > 1 && cross_much({&id, 1}, {slices})) {
        slices.pop_back();
        break;
      }
      const bool fits = tile_bits(graph_, op, slices, std::ssize(cores)) <= room;
      if (!fits && parts < op.nest.dims[d].size)
        continue;
      if (parts == 1)
        slices.pop_back();
      if (fits)
        return;
      break;
    }
  }
}

bool SliceFinder::alone_in_slices(OpId op) const {
  return graph_.op(op).nest.compute != ComputeKind::mac && crowded(op);
}

Stacks complete_stacks(const Graph& graph, std::vector<std::vector<OpId>> given) {
  std::vector<bool> named(graph.operators().size(), false);
  for (auto& stack : given) {
    std::ranges::sort(stack);
    for (const OpId member : stack)
      named[member.index()] = true;
  }
  for (std::size_t i = 0; i < named.size(); ++i) {
    if (!named[i])
      given.push_back({OpId(i)});
  }
  std::erase_if(given, [](const std::vector<OpId>& stack) { return stack.empty(); });
  std::ranges::sort(given, [](const auto& a, const auto& b) { return a[0] < b[0]; });
  Stacks stacks{std::move(given), std::vector<std::uint32_t>(named.size(), 0)};
  for (std::size_t s = 0; s < stacks.members.size(); ++s) {
    for (const OpId member : stacks.members[s])
      stacks.stack_of[member.index()] = static_cast<std::uint32_t>(s);
  }
  return stacks;
}

} // namespace monet
