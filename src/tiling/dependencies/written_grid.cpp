// Finds which tiles of an operator write which elements of a tensor; edges.cpp derives dependencies
// from it.
#include "tiling/dependencies/written_grid.hpp"

#include <algorithm>
#include <numeric>

namespace monet {

namespace {

/// Groups of axes that share a cut loop, with the loops of each group.
struct AxisSets {
  std::vector<std::vector<std::uint32_t>> axes;
  std::vector<std::vector<std::uint32_t>> dims;
};

AxisSets connected_axes(const Access& access, std::size_t rank, const PartIndex& index) {
  std::vector<std::size_t> group(rank); // identified by its smallest axis
  std::iota(group.begin(), group.end(), std::size_t{0});
  std::vector<std::vector<std::uint32_t>> moving(rank);
  for (std::size_t a = 0; a < rank && !access.opaque; ++a) {
    if (access.axes[a].data_dependent)
      continue;
    for (const AffineTerm& term : access.axes[a].terms) {
      if (term.coefficient != 0 && index.is_cut(term.dim))
        moving[a].push_back(term.dim);
    }
  }
  for (std::size_t a = 0; a < rank; ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      const bool shared = std::ranges::any_of(moving[a], [&](std::uint32_t dim) {
        return std::ranges::find(moving[b], dim) != moving[b].end();
      });
      if (!shared || group[a] == group[b])
        continue;
      const auto [low, high] = std::minmax(group[a], group[b]);
      const std::size_t keep = low;
      const std::size_t gone = high;
      std::replace(group.begin(), group.end(), gone, keep);
    }
  }
  AxisSets sets;
  for (std::size_t root = 0; root < rank; ++root) {
    if (group[root] != root)
      continue;
    auto& axes = sets.axes.emplace_back();
    auto& dims = sets.dims.emplace_back();
    for (std::size_t a = 0; a < rank; ++a) {
      if (group[a] != root)
        continue;
      axes.push_back(static_cast<std::uint32_t>(a));
      dims.insert(dims.end(), moving[a].begin(), moving[a].end());
    }
    std::sort(dims.begin(), dims.end());
    dims.erase(std::unique(dims.begin(), dims.end()), dims.end());
  }
  return sets;
}

void sort_group(WrittenGroup& group) {
  group.order.resize(group.combos.size());
  std::iota(group.order.begin(), group.order.end(), 0U);
  const auto first_axis = [&](std::uint32_t combo) { return group.box(combo).front(); };
  std::stable_sort(group.order.begin(), group.order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return first_axis(a).begin < first_axis(b).begin;
  });
  for (std::size_t i = 1; i < group.order.size(); ++i) {
    if (first_axis(group.order[i]).end < first_axis(group.order[i - 1]).end)
      group.sorted_ends = false;
  }
}

/// True if neighbouring parts share iterations.
bool overlapping(const std::vector<Interval>& parts) {
  return std::adjacent_find(parts.begin(), parts.end(),
                            [](Interval a, Interval b) { return b.begin < a.end; }) != parts.end();
}

WrittenGroup make_group(const Access& access, const OperatorTiling& tiling, const PartIndex& index,
                        const Tensor& tensor, std::vector<std::uint32_t> axes,
                        std::vector<std::uint32_t> dims) {
  WrittenGroup group{std::move(axes), PartCombos(index, std::move(dims)), {}, {}};
  std::vector<Interval> ranges;
  ranges.reserve(tiling.parts.size());
  for (const auto& parts : tiling.parts) // cut loops are set below
    ranges.push_back({parts.front().begin, parts.back().end});
  std::vector<std::uint32_t> parts(tiling.parts.size(), 0);
  group.boxes.reserve(group.combos.size() * group.axes.size());
  for (std::uint32_t combo = 0; combo < group.combos.size(); ++combo) {
    group.combos.parts_of(combo, parts);
    for (const std::uint32_t dim : group.combos.dims())
      ranges[dim] = tiling.parts[dim][parts[dim]];
    for (const std::uint32_t a : group.axes) {
      group.boxes.push_back(access.opaque ? Interval{0, tensor.shape[a]}
                                          : axis_range(access.axes[a], ranges, tensor.shape[a]));
    }
  }
  sort_group(group);
  group.recomputed =
      group.axes.size() == 1 && std::ranges::any_of(group.combos.dims(), [&](std::uint32_t dim) {
        return overlapping(tiling.parts[dim]);
      });
  return group;
}

std::int64_t overlap_volume(std::span<const Interval> a, const std::vector<std::uint32_t>& axes,
                            std::span<const Interval> box) {
  std::int64_t volume = 1;
  for (std::size_t i = 0; i < axes.size(); ++i)
    volume *= intersect(a[i], box[axes[i]]).size();
  return volume;
}

/// Covers `wanted` with overlapping parts of one axis: from left to right, always the part that
/// reaches furthest.
void cover(const WrittenGroup& group, Interval wanted, std::vector<Overlap>& overlaps) {
  std::int64_t at = wanted.begin;
  auto next = group.order.begin();
  while (at < wanted.end) {
    std::optional<std::uint32_t> best;
    for (; next != group.order.end() && group.box(*next).front().begin <= at; ++next) {
      const std::int64_t end = group.box(*next).front().end;
      if (end > at && (!best || end > group.box(*best).front().end))
        best = *next;
    }
    if (best) {
      overlaps.push_back({*best, intersect(group.box(*best).front(), wanted).size()});
      at = group.box(*best).front().end;
    } else if (next != group.order.end()) {
      at = group.box(*next).front().begin; // the gap is not written
    } else {
      return;
    }
  }
}

} // namespace

PartIndex::PartIndex(const OperatorTiling& tiling)
    : cuts_(tiling.cuts), tiles_(tiling.size()), offsets_(tiling.parts.size()) {
  std::uint32_t below = tiles_;
  for (const LoopCut& cut : cuts_) {
    below /= cut.count;
    if (cut.count == 1)
      continue;
    std::vector<std::uint32_t>& offsets = offsets_[cut.dim];
    if (offsets.empty()) {
      cut_dims_.push_back(cut.dim);
      offsets.push_back(0);
    }
    std::vector<std::uint32_t> finer;
    finer.reserve(offsets.size() * cut.count);
    for (const std::uint32_t offset : offsets) {
      for (std::uint32_t i = 0; i < cut.count; ++i)
        finer.push_back(offset + i * below);
    }
    offsets = std::move(finer);
  }
}

void PartIndex::parts_of(std::uint32_t number, std::span<std::uint32_t> parts) const {
  for (const std::uint32_t dim : cut_dims_)
    parts[dim] = 0;
  std::uint32_t below = tiles_;
  for (const LoopCut& cut : cuts_) {
    below /= cut.count;
    std::uint32_t& part = parts[cut.dim];
    part = part * cut.count + number / below;
    number %= below;
  }
}

PartCombos::PartCombos(const PartIndex& index, std::vector<std::uint32_t> dims)
    : dims_(std::move(dims)) {
  offsets_ = {0};
  for (const std::uint32_t dim : dims_) {
    const std::uint32_t count = index.parts(dim);
    counts_.push_back(count);
    std::vector<std::uint32_t> finer;
    finer.reserve(offsets_.size() * count);
    for (const std::uint32_t offset : offsets_) {
      for (std::uint32_t part = 0; part < count; ++part)
        finer.push_back(offset + index.offset(dim, part));
    }
    offsets_ = std::move(finer);
  }
}

std::uint32_t PartCombos::combo_of(std::span<const std::uint32_t> parts) const {
  std::uint32_t combo = 0;
  auto count = counts_.begin(); // iterators: this is in inner loops
  for (const std::uint32_t dim : dims_)
    combo = combo * *count++ + parts[dim];
  return combo;
}

void PartCombos::parts_of(std::uint32_t combo, std::span<std::uint32_t> parts) const {
  auto count = counts_.rbegin();
  for (auto dim = dims_.rbegin(); dim != dims_.rend(); ++dim, ++count) {
    parts[*dim] = combo % *count;
    combo /= *count;
  }
}

std::optional<WrittenGrid> written_grid(const Operator& op, const OperatorTiling& tiling,
                                        const PartIndex& index, TensorId id, const Tensor& tensor) {
  const Access* const access = written_access(op.nest, id);
  if (access == nullptr)
    return std::nullopt;
  AxisSets sets = connected_axes(*access, tensor.shape.size(), index);
  std::vector<std::uint32_t> repeating = index.cut_dims();
  std::erase_if(repeating, [&](std::uint32_t dim) {
    return std::ranges::any_of(
        sets.dims, [&](const auto& dims) { return std::ranges::find(dims, dim) != dims.end(); });
  });
  WrittenGrid grid{{}, PartCombos(index, std::move(repeating)), {}};
  for (std::size_t g = 0; g < sets.axes.size(); ++g) {
    grid.groups.push_back(make_group(*access, tiling, index, tensor, std::move(sets.axes[g]),
                                     std::move(sets.dims[g])));
  }
  for (std::uint32_t combo = 0; combo < grid.repeats.size(); ++combo)
    grid.repeat_offsets.push_back(grid.repeats.offset(combo));
  std::sort(grid.repeat_offsets.begin(), grid.repeat_offsets.end());
  return grid;
}

void find_overlaps(const WrittenGroup& group, std::span<const Interval> box,
                   std::span<const std::uint32_t> preferred, std::vector<Overlap>& overlaps) {
  overlaps.clear();
  const Interval wanted = box[group.axes.front()];
  if (group.recomputed) {
    if (wanted.empty())
      return;
    if (!preferred.empty() && group.box(preferred.front()).front().begin <= wanted.begin &&
        group.box(preferred.back()).front().end >= wanted.end) {
      for (const std::uint32_t combo : preferred) {
        const std::int64_t size = intersect(group.box(combo).front(), wanted).size();
        if (size > 0)
          overlaps.push_back({combo, size});
      }
      return;
    }
    cover(group, wanted, overlaps);
    return;
  }
  auto at = group.order.begin();
  if (group.sorted_ends) {
    at = std::partition_point(at, group.order.end(), [&](std::uint32_t combo) {
      return group.box(combo).front().end <= wanted.begin;
    });
  }
  for (; at != group.order.end() && group.box(*at).front().begin < wanted.end; ++at) {
    const std::int64_t volume = overlap_volume(group.box(*at), group.axes, box);
    if (volume > 0)
      overlaps.push_back({*at, volume});
  }
}

} // namespace monet
