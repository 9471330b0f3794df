// Estimates the memory that stacks and tiles occupy on the chip. The stack search (stacks.cpp) and
// fusion estimates use it.
#include "tiling/stacks/working_set.hpp"

#include "base/shared/checked.hpp"
#include "tiling/partition/split.hpp"

#include <algorithm>
#include <unordered_set>

namespace monet {

namespace {

/// Maximum iterations that an automatically chosen stack recomputes, as a share of all.
constexpr double kMaxRecomputed = 0.25;

/// Ranges of the middle slice, one per loop.
std::vector<Interval> middle_slice(const LoopNest& nest, const Slices& slices) {
  std::vector<Interval> ranges = full_tile(nest);
  for (const SliceCut& cut : slices)
    ranges[cut.dim] = cut.parts[cut.parts.size() / 2];
  return ranges;
}

bool moved(const Access& access, const Slices& slices) {
  return std::ranges::any_of(slices,
                             [&](const SliceCut& cut) { return moved_by(access, cut.dim); });
}

std::int64_t touched_bits(const Graph& graph, const Access& access,
                          std::span<const Interval> ranges) {
  const Tensor& tensor = graph.tensor(access.tensor);
  return storage_of(tensor.type, volume(region(access, ranges, tensor.shape))).value;
}

/// Number of sweeps of the slices over an operand. One sweep covers the full loops of the cuts from
/// `first` on.
struct Sweep {
  double times = 1;
  std::size_t first = 0;
};

Sweep sweep_of(const Access& access, const Slices& slices) {
  Sweep sweep;
  std::size_t moving = slices.size(); // one past the innermost cut that moves it
  while (moving > 0 && !moved_by(access, slices[moving - 1].dim))
    --moving;
  const std::size_t inner = moving > 0 ? moving : slices.size();
  sweep.first = inner;
  for (std::size_t i = inner; i-- > 0;) {
    if (moved_by(access, slices[i].dim))
      continue;
    sweep.times *= static_cast<double>(slices[i].parts.size());
    sweep.first = i;
  }
  return sweep;
}

/// A tensor that one member makes and other members may read.
struct PassedTensor {
  std::int64_t bits = 0; ///< of one slice, as its largest user touches it
  std::uint32_t last = 0;
  bool inside = false;
};

} // namespace

GroupSpace group_space(const Graph& graph, std::span<const OpId> members, const StackSlicer& slicer,
                       const std::vector<Slices>& slices, const std::vector<bool>& left_out) {
  std::vector<std::vector<Interval>> ranges;
  for (std::size_t m = 0; m < members.size(); ++m)
    ranges.push_back(middle_slice(graph.op(members[m]).nest, slices[m]));
  std::vector<std::int64_t> freed(members.size(), 0);
  std::unordered_set<TensorId> inside;
  for (const StackSlicer::Link& link : slicer.links())
    inside.insert(link.read->tensor);

  const auto handed = [&](std::uint32_t producer, TensorId tensor, std::int64_t own) {
    PassedTensor result{own, producer, false};
    for (const StackSlicer::Link& link : slicer.links_from(producer)) {
      if (link.read->tensor != tensor)
        continue;
      result.inside = true;
      result.last = std::max(result.last, link.consumer);
      result.bits = std::max(result.bits, touched_bits(graph, *link.read, ranges[link.consumer]));
    }
    return result;
  };

  GroupSpace space;
  std::unordered_set<TensorId> kept_tensors;
  std::int64_t live = 0;
  for (std::uint32_t m = 0; m < members.size(); ++m) {
    if (left_out[m])
      continue;
    std::int64_t passing = 0;
    const LoopNest& nest = graph.op(members[m]).nest;
    const Slices& own = slices[m];
    std::uint32_t next = 0;
    for (const Access& access : nest.operands) {
      const std::uint32_t i = next++;
      const std::int64_t bits = touched_bits(graph, access, ranges[m]);
      const bool reads = access.mode == AccessMode::read;
      if (reads && inside.contains(access.tensor))
        continue; // counted at its producer
      const Sweep sweep = sweep_of(access, own);
      if (sweep.times > 1) {
        std::vector<Interval> swept = ranges[m];
        for (const SliceCut& cut : std::span(own).subspan(sweep.first))
          swept[cut.dim] = {0, nest.dims[cut.dim].size};
        if (kept_tensors.insert(access.tensor).second)
          space.kept.push_back({touched_bits(graph, access, swept), sweep.times, m, i, !reads});
        continue;
      }
      const PassedTensor made = reads ? PassedTensor{} : handed(m, access.tensor, bits);
      if (made.inside) {
        live = checked_add(live, made.bits);
        freed[made.last] += made.bits;
      } else {
        passing = checked_add(passing, bits);
      }
    }
    space.passing = std::max(space.passing, checked_add(live, passing));
    live -= freed[m];
  }
  return space;
}

std::int64_t working_set(const Graph& graph, std::span<const OpId> members,
                         const StackSlicer& slicer, const std::vector<Slices>& slices,
                         std::span<const std::int64_t> copies) {
  std::vector<bool> left_out;
  for (const std::int64_t count : copies)
    left_out.push_back(count == 0);
  const GroupSpace space = group_space(graph, members, slicer, slices, left_out);
  std::int64_t bits = space.passing;
  for (const GroupSpace::Kept& kept : space.kept)
    bits = checked_add(bits, checked_multiply(kept.bits, copies[kept.member]));
  return bits;
}

std::int64_t tile_bits(const Graph& graph, const Operator& op, const Slices& slices,
                       std::int64_t cores) {
  const std::vector<Interval> ranges = middle_slice(op.nest, slices);
  std::vector<std::int64_t> bits;
  std::int64_t least = 0;
  for (const Access& access : op.nest.operands) {
    bits.push_back(touched_bits(graph, access, ranges));
    least = checked_add(least, bits.back());
  }
  for (std::size_t d = 0; d < ranges.size() && cores > 1; ++d) {
    const std::int64_t parts = std::min(cores, ranges[d].size());
    if (parts < 2 || !may_split(op.nest, d))
      continue;
    const Slices shared{{static_cast<std::uint32_t>(d), {}}};
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < bits.size(); ++i)
      sum += moved(op.nest.operands[i], shared) ? ceil_div(bits[i], parts) : bits[i];
    least = std::min(least, sum);
  }
  return least;
}

double slices_in(const Slices& slices) {
  double count = 1;
  for (const SliceCut& cut : slices)
    count *= static_cast<double>(cut.parts.size());
  return count;
}

bool recomputes_much(const Graph& graph, std::span<const OpId> members,
                     const std::vector<Slices>& slices) {
  double needed = 0;
  double done = 0;
  for (std::size_t m = 0; m < members.size(); ++m) {
    const LoopNest& nest = graph.op(members[m]).nest;
    const auto whole = static_cast<double>(body_count(nest));
    double times = 1;
    for (const SliceCut& cut : slices[m]) {
      std::int64_t sum = 0;
      for (const Interval part : cut.parts)
        sum += part.size();
      times *= static_cast<double>(sum) / static_cast<double>(nest.dims[cut.dim].size);
    }
    needed += whole;
    done += whole * times;
  }
  return done > needed * (1 + kMaxRecomputed);
}

double crossings(const Graph& graph, const Access& access, const LoopNest& reader,
                 const Slices& slices, const Slices& makers) {
  const Tensor& tensor = graph.tensor(access.tensor);
  const Access* const written = written_access(graph.op(*tensor.producer).nest, access.tensor);
  const Box read = region(access, middle_slice(reader, slices), tensor.shape);
  double met = 1;
  for (const SliceCut& cut : makers) {
    double share = 1; // share of the slices that a reader meets
    for (std::size_t a = 0; written != nullptr && !written->opaque && a < read.size(); ++a) {
      if (has_loop(written->axes[a], cut.dim))
        share = static_cast<double>(read[a].size()) /
                static_cast<double>(std::max<std::int64_t>(1, tensor.shape[a]));
    }
    met *= std::max(1.0, share * static_cast<double>(cut.parts.size()));
  }
  return slices_in(slices) * met;
}

std::int64_t outermost_bits(const Core& core) {
  std::vector<const Memory*> counted;
  std::int64_t bits = 0;
  for (const MemoryOperand operand : {MemoryOperand::I1, MemoryOperand::I2, MemoryOperand::O}) {
    const Memory* top = core.top(operand);
    if (top == nullptr || std::ranges::find(counted, top) != counted.end())
      continue;
    counted.push_back(top);
    bits = checked_add(bits, checked_multiply(top->size.value, instances(core, *top)));
  }
  return bits;
}

MemoryCapacity::MemoryCapacity(const Chip& chip) {
  for (std::size_t c = 0; c < chip.cores.size(); ++c) {
    memory_.push_back(chip.memory_of(CoreId(c)).value);
    const std::size_t first = memory_.back();
    bits_.push_back(first == c ? chip.pool_bits(CoreId(c)) : bits_.at(first));
  }
}

std::int64_t MemoryCapacity::together(const std::vector<bool>& cores) const {
  std::vector<bool> counted(bits_.size(), false);
  const std::span memory = memory_;
  std::int64_t bits = 0;
  for (std::size_t c = 0; c < cores.size(); ++c) {
    if (!cores[c])
      continue;
    auto known = counted[memory[c]];
    if (!known)
      bits = checked_add(bits, bits_[c]);
    known = true;
  }
  return bits - bits / 4;
}

std::int64_t MemoryCapacity::of_a_tile(std::span<const CoreId> cores) const {
  const std::span<const std::int64_t> bits = bits_;
  std::int64_t least = bits[cores.front().index()];
  for (const CoreId core : cores)
    least = std::min(least, bits[core.index()]);
  return least / 2;
}

} // namespace monet
