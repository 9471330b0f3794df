#include "tiling/working_set.hpp"

#include "monet/base/checked.hpp"

#include <algorithm>
#include <unordered_set>

namespace monet {

namespace {

/// The slice in the middle: one range per loop.
std::vector<Interval> middle_slice(const LoopNest& nest, const Slices& slices) {
  std::vector<Interval> ranges = full_tile(nest);
  for (const SliceCut& cut : slices)
    ranges[cut.dim] = cut.parts[cut.parts.size() / 2];
  return ranges;
}

bool moved(const Access& access, const Slices& slices) {
  if (access.opaque)
    return false;
  return std::any_of(access.axes.begin(), access.axes.end(), [&](const AxisExpr& axis) {
    return !axis.data_dependent &&
           std::any_of(axis.terms.begin(), axis.terms.end(), [&](const AffineTerm& term) {
             return std::any_of(slices.begin(), slices.end(),
                                [&](const SliceCut& cut) { return cut.dim == term.dim; });
           });
  });
}

std::int64_t touched_bits(const Graph& graph, const Access& access,
                          std::span<const Interval> ranges) {
  const Tensor& tensor = graph.tensor(access.tensor);
  return storage_of(tensor.type, volume(region(access, ranges, tensor.shape))).value;
}

/// A tensor that one member makes and others read.
struct Handed {
  std::int64_t bits = 0; ///< of one slice, as the widest reader sees it
  std::uint32_t last = 0;
  bool inside = false;
};

} // namespace

std::int64_t working_set(const Graph& graph, std::span<const OpId> members,
                         const StackSlicer& slicer, const std::vector<Slices>& slices) {
  std::vector<std::vector<Interval>> ranges;
  for (std::size_t m = 0; m < members.size(); ++m)
    ranges.push_back(middle_slice(graph.op(members[m]).nest, slices[m]));
  std::vector<std::int64_t> freed(members.size(), 0);
  std::unordered_set<TensorId> inside;
  for (const StackSlicer::Link& link : slicer.links())
    inside.insert(link.read->tensor);

  const auto handed = [&](std::uint32_t producer, TensorId tensor, std::int64_t own) {
    Handed result{own, producer, false};
    for (const StackSlicer::Link& link : slicer.links_from(producer)) {
      if (link.read->tensor != tensor)
        continue;
      result.inside = true;
      result.last = std::max(result.last, link.consumer);
      result.bits = std::max(result.bits, touched_bits(graph, *link.read, ranges[link.consumer]));
    }
    return result;
  };

  std::unordered_set<TensorId> kept_tensors;
  std::int64_t kept = 0;
  std::int64_t live = 0;
  std::int64_t peak = 0;
  for (std::uint32_t m = 0; m < members.size(); ++m) {
    std::int64_t passing = 0;
    for (const Access& access : graph.op(members[m]).nest.operands) {
      const std::int64_t bits = touched_bits(graph, access, ranges[m]);
      const bool stays = !slices[m].empty() && !moved(access, slices[m]);
      const bool reads = access.mode == AccessMode::read;
      if (reads && inside.contains(access.tensor))
        continue; // counted where it is made
      if (stays) {
        if (kept_tensors.insert(access.tensor).second)
          kept = checked_add(kept, bits);
        continue;
      }
      const Handed made = reads ? Handed{} : handed(m, access.tensor, bits);
      if (made.inside) {
        live = checked_add(live, made.bits);
        freed[made.last] += made.bits;
      } else {
        passing = checked_add(passing, bits);
      }
    }
    peak = std::max(peak, checked_add(live, passing));
    live -= freed[m];
  }
  return checked_add(kept, peak);
}

std::int64_t footprint(const Graph& graph, const Operator& op) {
  const std::vector<Interval> whole = full_tile(op.nest);
  std::int64_t bits = 0;
  for (const Access& access : op.nest.operands)
    bits = checked_add(bits, touched_bits(graph, access, whole));
  return bits;
}

std::int64_t room_on(const Chip& chip, const std::vector<bool>& cores) {
  std::int64_t bits = 0;
  std::vector<bool> counted(chip.cores.size(), false);
  for (std::size_t c = 0; c < chip.compute_cores(); ++c) {
    const Core& core = chip.cores[c];
    if (!cores[c] || counted[c] || core.memories.empty())
      continue;
    const Memory& top = core.memories.back();
    bits = checked_add(bits, checked_multiply(top.size.value, instances(core, top)));
    for (const auto& group : chip.shared_memory) {
      if (std::find(group.begin(), group.end(), CoreId(c)) == group.end())
        continue;
      for (const CoreId other : group)
        counted[other.index()] = true;
    }
  }
  return bits - bits / 4;
}

} // namespace monet
