// Cuts the operators of one stack into slices, from consumers back to producers. The stack search
// (stacks.cpp), turns and fusion estimates use it.
#include "tiling/stacks/slices.hpp"

#include "tiling/partition/split.hpp"

#include <algorithm>

namespace monet {

namespace {

constexpr std::uint32_t kOutside = UINT32_MAX;

bool usable(const Access& access, std::size_t axis) {
  return !access.opaque && !access.axes[axis].data_dependent;
}

/// Offset range that the constant and the other loops add to coefficient * loop on an axis.
struct OtherLoops {
  std::int64_t coefficient = 0;
  std::int64_t low = 0;
  std::int64_t high = 0;
};

OtherLoops rest_of(const AxisExpr& axis, const LoopNest& nest, std::uint32_t dim) {
  OtherLoops rest{0, axis.offset, axis.offset};
  for (const AffineTerm& term : axis.terms) {
    if (term.dim == dim) {
      rest.coefficient = term.coefficient;
      continue;
    }
    const std::int64_t reach = term.coefficient * (nest.dims[term.dim].size - 1);
    rest.low += std::min<std::int64_t>(0, reach);
    rest.high += std::max<std::int64_t>(0, reach);
  }
  return rest;
}

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  return a >= 0 ? a / b : -((-a + b - 1) / b);
}

/// The smallest range of iterations that together write [wanted.begin, wanted.end) of the axis.
Interval writers(const OtherLoops& rest, Interval wanted, std::int64_t size) {
  if (wanted.empty())
    return {0, 0};
  const std::int64_t begin =
      floor_div(wanted.begin - rest.high + rest.coefficient - 1, rest.coefficient);
  const std::int64_t end =
      floor_div(wanted.end - rest.low + rest.coefficient - 1, rest.coefficient);
  return {std::clamp<std::int64_t>(begin, 0, size), std::clamp<std::int64_t>(end, 0, size)};
}

/// The reader's only cut that moves the axis; null if no cut or several cuts move it.
const SliceCut* moving_cut(const Slices& slices, const AxisExpr& axis) {
  const SliceCut* found = nullptr;
  for (const SliceCut& cut : slices) {
    if (!has_loop(axis, cut.dim))
      continue;
    if (found != nullptr)
      return nullptr;
    found = &cut;
  }
  return found;
}

/// Consecutive parts of [0, size) with the given ends. Parts whose end does not advance are
/// omitted.
std::vector<Interval> parts_up_to(const std::vector<std::int64_t>& ends, std::int64_t size) {
  std::vector<Interval> parts;
  std::int64_t at = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const std::int64_t end = i + 1 == ends.size() ? size : std::min(ends[i], size);
    if (end <= at)
      continue;
    parts.push_back({at, end});
    at = end;
  }
  return parts;
}

/// Widens parts until begins and ends never decrease and the parts cover [0, size) without gap.
std::vector<Interval> covering(std::vector<Interval> parts, std::int64_t size) {
  for (std::size_t i = parts.size(); i-- > 0;) {
    if (parts[i].empty())
      parts[i] = {size - 1, 0}; // no slice may be empty
    if (i + 1 < parts.size())
      parts[i].begin = std::min(parts[i].begin, parts[i + 1].begin);
  }
  std::int64_t end = 0;
  for (Interval& part : parts) {
    part.begin = std::min(part.begin, end);
    part.end = std::max({part.end, end, part.begin + 1});
    end = part.end;
  }
  parts.back().end = size;
  return parts;
}

} // namespace

std::optional<std::uint32_t> leading_loop(const AxisExpr& axis, const LoopNest& nest) {
  std::optional<std::uint32_t> best;
  std::int64_t furthest = 0;
  for (const AffineTerm& term : axis.terms) {
    const std::int64_t step = term.coefficient < 0 ? -term.coefficient : term.coefficient;
    if (step > furthest && nest.dims[term.dim].size > 1) {
      furthest = step;
      best = term.dim;
    }
  }
  return best;
}

SliceCut even_slices(const LoopNest& nest, std::uint32_t dim, std::int64_t parts) {
  const std::int64_t size = nest.dims[dim].size;
  SliceCut cut{dim, {}};
  parts = std::clamp<std::int64_t>(parts, 1, size);
  for (std::int64_t i = 0; i < parts; ++i)
    cut.parts.push_back(even_part(size, parts, i));
  return cut;
}

StackSlicer::Scratch::Scratch(const Graph& graph)
    : position(graph.operators().size(), kOutside), left_behind(graph.operators().size(), false) {
  for (const TensorId output : graph.outputs) {
    if (const auto producer = graph.tensor(output).producer)
      left_behind[producer->index()] = true;
  }
  for (const Tensor& tensor : graph.tensors()) {
    if (tensor.alias_of && tensor.producer)
      left_behind[tensor.producer->index()] = true;
  }
}

StackSlicer::StackSlicer(const Graph& graph, std::span<const OpId> members, Scratch& scratch)
    : graph_(graph), members_(members), scratch_(scratch) {
  std::vector<std::uint32_t>& position = scratch.position;
  for (std::size_t m = 0; m < members.size(); ++m)
    position[members[m].index()] = static_cast<std::uint32_t>(m);
  for (std::size_t m = 0; m < members.size(); ++m) {
    for (const Access& read : graph.op(members[m]).nest.operands) {
      const auto producer = graph.tensor(read.tensor).producer;
      if (read.mode != AccessMode::read || !producer || position[producer->index()] == kOutside)
        continue;
      if (const Access* write = written_access(graph.op(*producer).nest, read.tensor))
        links_.push_back(
            {position[producer->index()], static_cast<std::uint32_t>(m), write, &read});
    }
  }
  std::ranges::stable_sort(links_, {}, &Link::producer);
}

StackSlicer::~StackSlicer() {
  for (const OpId member : members_)
    scratch_.position[member.index()] = kOutside;
}

std::span<const StackSlicer::Link> StackSlicer::links_from(std::uint32_t producer) const {
  return std::ranges::equal_range(links_, producer, {}, &Link::producer);
}

void StackSlicer::spread(Loops& loops) const {
  // A member without a loop receives the leading loop of the first axis that its neighbour's loop
  // leads.
  const auto follow = [&](const Link& link, std::uint32_t member, const Access& own,
                          std::uint32_t neighbour, const Access& other, auto suits) {
    if (loops[member] || !loops[neighbour])
      return false;
    for (std::size_t a = 0; a < own.axes.size(); ++a) {
      if (!usable(*link.read, a) || !usable(*link.write, a) ||
          leading_loop(other.axes[a], nest(neighbour)) != loops[neighbour])
        continue;
      const auto loop = leading_loop(own.axes[a], nest(member));
      if (loop && suits(loop_use(nest(member), *loop)))
        loops[member] = loop;
      return loops[member].has_value();
    }
    return false;
  };
  // Consumers first: their needs determine the slices of producers. Passes over the links repeat
  // until none sets a loop; members still without a loop stay whole.
  for (bool changed = true; changed;) {
    changed = false;
    for (auto link = links_.rbegin(); link != links_.rend(); ++link)
      changed |= follow(*link, link->producer, *link->write, link->consumer, *link->read,
                        [](LoopUse use) { return use == LoopUse::parallel; });
    for (const Link& link : links_)
      changed |= follow(link, link.consumer, *link.read, link.producer, *link.write,
                        [](LoopUse use) { return use != LoopUse::never; });
  }
}

/// Slices of a member along `dim` that follow from its consumers' slices; `count` even ones if no
/// consumer's slices move along `dim`.
SliceCut StackSlicer::pulled(std::uint32_t member, std::uint32_t dim, std::int64_t count, Halo halo,
                             const std::vector<Slices>& slices) const {
  struct PulledAxis {
    const Link* link;
    std::size_t axis;
    const SliceCut* cut;
    OtherLoops rest;
  };
  const LoopNest& own = nest(member);
  std::vector<PulledAxis> pulls;
  std::size_t most = 0;
  for (const Link& link : links_from(member)) {
    if (link.read->opaque || link.write->opaque)
      continue;
    const std::span<const AxisExpr> written = link.write->axes;
    const auto read = std::span<const AxisExpr>(link.read->axes).first(written.size());
    const Slices& of_reader = slices[link.consumer];
    for (std::size_t a = 0; a < written.size(); ++a) {
      if (read[a].data_dependent || written[a].data_dependent)
        continue;
      const OtherLoops rest = rest_of(written[a], own, dim);
      const SliceCut* cut = moving_cut(of_reader, read[a]);
      if (rest.coefficient <= 0 || cut == nullptr)
        continue;
      pulls.push_back({&link, a, cut, rest});
      most = std::max(most, cut->parts.size());
    }
  }
  if (pulls.empty() || loop_use(own, dim) != LoopUse::parallel)
    return even_slices(own, dim, count);

  const std::int64_t size = own.dims[dim].size;
  std::vector<Interval> needs(most, Interval{size, 0});
  for (const PulledAxis& pull : pulls) {
    const LoopNest& reader = nest(pull.link->consumer);
    const std::int64_t extent = graph_.tensor(pull.link->read->tensor).shape[pull.axis];
    const AxisExpr& axis = pull.link->read->axes[pull.axis];
    const std::span<const Interval> parts = pull.cut->parts;
    std::vector<Interval> ranges = full_tile(reader);
    Interval& range = ranges[pull.cut->dim];
    std::size_t i = 0;
    for (Interval& all : needs) {
      range = parts[i++ * parts.size() / most];
      const Interval need = writers(pull.rest, axis_range(axis, ranges, extent), size);
      if (need.empty())
        continue;
      all = {std::min(all.begin, need.begin), std::max(all.end, need.end)};
    }
  }
  if (halo == Halo::recomputed)
    return {dim, covering(std::move(needs), size)};
  std::vector<std::int64_t> ends;
  for (const Interval need : needs)
    ends.push_back(need.end);
  return {dim, parts_up_to(ends, size)};
}

void StackSlicer::make_slices(const Loops& loops, std::int64_t count, Halo halo,
                              const std::vector<bool>& fixed, std::vector<Slices>& slices) const {
  for (std::size_t m = members_.size(); m-- > 0;) {
    const auto member = static_cast<std::uint32_t>(m);
    const Halo own_halo = scratch_.left_behind[members_[m].index()] ? Halo::cached : halo;
    const bool cut = std::ranges::any_of(
        slices[m], [&](const SliceCut& known) { return known.dim == loops[m]; });
    if (!fixed[m] && loops[m] && !cut) {
      SliceCut own = pulled(member, *loops[m], count, own_halo, slices);
      if (own.parts.size() > 1)
        slices[m].push_back(std::move(own));
    } else if (fixed[m] && slices[m].size() == 1 && own_halo == Halo::recomputed) {
      SliceCut own = pulled(member, slices[m][0].dim,
                            static_cast<std::int64_t>(slices[m][0].parts.size()), own_halo, slices);
      if (own.parts.size() == slices[m][0].parts.size())
        slices[m] = {std::move(own)};
    }
  }
}

} // namespace monet
