#include "tiling/stacks.hpp"

#include "tiling/split.hpp"
#include "tiling/working_set.hpp"

#include <algorithm>
#include <limits>
#include <optional>

namespace monet {

namespace {

/// Stacks of the tool's own choice are no longer than this.
constexpr std::size_t kLongestStack = 64;
/// Loops from which slices may start, tried per end of a stack.
constexpr std::size_t kMostSeeds = 8;

std::int64_t room_of(const Chip& chip, const CoreLists& cores, std::span<const OpId> members) {
  std::vector<bool> used(chip.cores.size(), false);
  for (const OpId member : members) {
    for (const CoreId core : cores[member.index()])
      used[core.index()] = true;
  }
  return room_on(chip, used);
}

/// Loops that may be sliced and are worth it.
std::vector<std::uint32_t> sliceable(const LoopNest& nest) {
  std::vector<std::uint32_t> dims;
  for (std::size_t d = 0; d < nest.dims.size() && dims.size() < kMostSeeds; ++d) {
    if (nest.dims[d].size > 1 && loop_use(nest, d) == LoopUse::parallel)
      dims.push_back(static_cast<std::uint32_t>(d));
  }
  return dims;
}

/// A common axis: one loop per member.
struct Candidate {
  StackSlicer::Loops loops;
  std::size_t reached = 0;    ///< members with a loop
  std::int64_t longest = 1;   ///< iterations of the longest loop
  std::int64_t count = 1;     ///< slices
  std::int64_t excess = 0;    ///< bits by which the working set does not fit
  std::vector<Slices> slices; ///< per member
};

Candidate spread_from(const Graph& graph, std::span<const OpId> members, const StackSlicer& slicer,
                      std::size_t member, std::uint32_t dim) {
  Candidate candidate;
  candidate.loops.resize(members.size());
  candidate.loops[member] = dim;
  slicer.spread(candidate.loops);
  for (std::size_t m = 0; m < members.size(); ++m) {
    if (!candidate.loops[m])
      continue;
    ++candidate.reached;
    candidate.longest =
        std::max(candidate.longest, graph.op(members[m]).nest.dims[*candidate.loops[m]].size);
  }
  return candidate;
}

/// As few slices from `least` on, doubling, as let the working set fit; the most when none do.
void fit(const Graph& graph, std::span<const OpId> members, const StackSlicer& slicer, Halo halo,
         std::int64_t room, std::int64_t least, Candidate& candidate) {
  for (std::int64_t count = std::min(least, candidate.longest);; count *= 2) {
    candidate.count = std::min(count, candidate.longest);
    candidate.slices.assign(members.size(), {});
    if (candidate.count > 1)
      slicer.make_slices(candidate.loops, candidate.count, halo, candidate.slices);
    candidate.excess =
        std::max<std::int64_t>(0, working_set(graph, members, slicer, candidate.slices) - room);
    if (candidate.excess == 0 || count >= candidate.longest)
      return;
  }
}

bool better(const Candidate& a, const Candidate& b) {
  if ((a.excess == 0) != (b.excess == 0))
    return a.excess == 0;
  if (a.reached != b.reached)
    return a.reached > b.reached;
  if (a.excess != b.excess)
    return a.excess < b.excess;
  return a.count < b.count;
}

std::optional<Candidate> best_candidate(const Graph& graph, std::span<const OpId> members,
                                        const StackSlicer& slicer, Halo halo, std::int64_t room,
                                        std::int64_t least) {
  std::optional<Candidate> best;
  for (const std::size_t member : {members.size() - 1, std::size_t{0}}) {
    for (const std::uint32_t dim : sliceable(graph.op(members[member]).nest)) {
      Candidate candidate = spread_from(graph, members, slicer, member, dim);
      fit(graph, members, slicer, halo, room, least, candidate);
      if (!best || better(candidate, *best))
        best = std::move(candidate);
    }
  }
  return best;
}

class StackFinder {
public:
  StackFinder(const Graph& graph, const Chip& chip, const CoreLists& cores)
      : graph_(graph), chip_(chip), cores_(cores), scratch_(graph) {}

  std::vector<std::vector<OpId>> find() {
    const std::size_t count = graph_.operators().size();
    stacked_.assign(count, std::nullopt);
    for (std::size_t first = 0; first < count;) {
      const std::size_t last = starts_here(first) ? grow(first) : first + 1;
      if (last - first > 1)
        add(first, last);
      first = last;
    }
    for (std::size_t i = 0; i < count; ++i)
      join_gradient(OpId(i));
    return std::move(stacks_);
  }

private:
  bool crowded(std::size_t op) const {
    const OpId id(op);
    return footprint(graph_, graph_.op(id)) > room_of(chip_, cores_, {&id, 1});
  }

  bool update(std::size_t op) const { return graph_.op(OpId(op)).phase == Phase::update; }

  bool starts_here(std::size_t first) const {
    if (update(first))
      return false;
    return crowded(first) ||
           (first + 1 < stacked_.size() && !update(first + 1) && crowded(first + 1));
  }

  /// End of the longest stack from `first` that some axis slices as a whole so that it fits;
  /// without operators at its end that would fit anyway.
  std::size_t grow(std::size_t first) {
    std::vector<OpId> members{OpId(first)};
    std::size_t last_crowded = crowded(first) ? first : first + 1;
    std::size_t end = first + 1;
    std::int64_t count = 1;
    while (end < stacked_.size() && members.size() < kLongestStack && !update(end)) {
      members.emplace_back(end);
      const StackSlicer slicer(graph_, members, scratch_);
      const bool linked =
          std::any_of(slicer.links().begin(), slicer.links().end(), [&](const auto& link) {
            return link.consumer + 1 == members.size() || link.producer + 1 == members.size();
          });
      const auto best = best_candidate(graph_, members, slicer, Halo::cached,
                                       room_of(chip_, cores_, members), count);
      if (!best || best->excess > 0 || best->reached < members.size())
        break;
      if (linked && crowded(end))
        last_crowded = end;
      count = best->count; // longer stacks need no fewer
      ++end;
      if (end - last_crowded > kMostLightOperators)
        break;
    }
    return std::min(end, std::max(last_crowded + 1, first + 1));
  }

  void add(std::size_t first, std::size_t last) {
    auto& stack = stacks_.emplace_back();
    for (std::size_t i = first; i < last; ++i) {
      stack.emplace_back(i);
      stacked_[i] = stacks_.size() - 1;
    }
  }

  /// An update whose last input to be made is a gradient runs with the operator that makes it.
  void join_gradient(OpId id) {
    const Operator& op = graph_.op(id);
    if (op.phase != Phase::update || stacked_[id.index()])
      return;
    std::optional<OpId> maker;
    for (const auto& input : op.inputs) {
      if (input && graph_.tensor(*input).producer)
        maker = std::max(maker, graph_.tensor(*input).producer);
    }
    if (!maker || graph_.op(*maker).gradient_of != GradientOf::weight)
      return;
    auto& stack = stacked_[maker->index()];
    if (!stack) {
      stack = stacks_.size();
      stacks_.push_back({*maker});
    }
    stacks_[*stack].push_back(id);
    stacked_[id.index()] = stack;
  }

  static constexpr std::size_t kMostLightOperators = 8;

  const Graph& graph_;
  const Chip& chip_;
  const CoreLists& cores_;
  StackSlicer::Scratch scratch_;
  std::vector<std::optional<std::size_t>> stacked_; ///< per operator: its stack
  std::vector<std::vector<OpId>> stacks_;
};

} // namespace

Stacks complete_stacks(const Graph& graph, std::vector<std::vector<OpId>> given) {
  std::vector<bool> named(graph.operators().size(), false);
  for (auto& stack : given) {
    std::sort(stack.begin(), stack.end());
    for (const OpId member : stack)
      named[member.index()] = true;
  }
  for (std::size_t i = 0; i < named.size(); ++i) {
    if (!named[i])
      given.push_back({OpId(i)});
  }
  std::erase_if(given, [](const std::vector<OpId>& stack) { return stack.empty(); });
  std::sort(given.begin(), given.end(), [](const auto& a, const auto& b) { return a[0] < b[0]; });
  Stacks stacks{std::move(given), std::vector<std::uint32_t>(named.size(), 0)};
  for (std::size_t s = 0; s < stacks.members.size(); ++s) {
    for (const OpId member : stacks.members[s])
      stacks.stack_of[member.index()] = static_cast<std::uint32_t>(s);
  }
  return stacks;
}

std::vector<std::vector<OpId>> automatic_stacks(const Graph& graph, const Chip& chip,
                                                const CoreLists& cores) {
  return StackFinder(graph, chip, cores).find();
}

void fill_in_slices(const Graph& graph, const Chip& chip, const CoreLists& cores,
                    std::span<const OpId> members, Halo halo, std::int64_t least,
                    StackSlicer::Scratch& scratch, StackSlicer::Loops loops,
                    std::vector<Slices>& slices) {
  const StackSlicer slicer(graph, members, scratch);
  std::int64_t count = least;
  for (const Slices& given : slices) {
    if (!given.empty())
      count = std::max(count, static_cast<std::int64_t>(given.front().parts.size()));
  }
  const bool any = std::any_of(loops.begin(), loops.end(), [](const auto& l) { return l; });
  if (any) {
    slicer.spread(loops);
    slicer.make_slices(loops, count, halo, slices);
    return;
  }
  auto best = best_candidate(graph, members, slicer, halo, room_of(chip, cores, members), least);
  if (best)
    slices = std::move(best->slices);
}

} // namespace monet
