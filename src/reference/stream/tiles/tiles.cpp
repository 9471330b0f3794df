// Makes tiles from layers, with ranges, groups, cores and tensors. This is the fourth step of
// make_stream_workload() (stream_tiles.cpp).
#include "base/shared/checked.hpp"
#include "reference/stream/tiles/stages.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>

namespace monet::stream {

namespace {

/// The number of parts of each loop.
std::vector<std::uint32_t> parts_of(const Layer& layer) {
  std::vector<std::uint32_t> parts;
  for (const Dim& dim : layer.dims)
    parts.push_back(static_cast<std::uint32_t>(dim.padded / dim.tile));
  return parts;
}

/// Counter over tiles that yields the part of each loop that a tile covers.
class PartCounter {
public:
  explicit PartCounter(const Layer& layer)
      : loops_(outer_loops(layer)), values_(loops_.size(), 0), weights_(loops_.size(), 1),
        parts(layer.dims.size(), 0) {
    for (std::size_t i = 0; i < loops_.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (loops_[j].dim == loops_[i].dim)
          weights_[i] *= static_cast<std::uint32_t>(loops_[j].count);
      }
    }
  }

  void next() {
    for (std::size_t i = 0; i < loops_.size(); ++i) {
      parts[loops_[i].dim] += weights_[i];
      if (++values_[i] < loops_[i].count)
        return;
      parts[loops_[i].dim] -= weights_[i] * static_cast<std::uint32_t>(loops_[i].count);
      values_[i] = 0;
    }
  }

private:
  std::vector<Factor> loops_;
  std::vector<std::int64_t> values_;
  std::vector<std::uint32_t> weights_;

public:
  std::vector<std::uint32_t> parts; ///< by dim
};

/// Groups of tiles that run on one core: their ranges along loops cut over cores are equal, modulo
/// the range of one step over time. Groups are numbered in order of appearance.
class Groups {
public:
  explicit Groups(const Layer& layer) : layer_(layer) {
    std::size_t combinations = 1;
    for (const Factor& factor : layer.inter) {
      const Dim& dim = layer.dims[factor.dim];
      std::int64_t steps = 1;
      for (std::size_t i = layer.intra.size(); i-- > 0;) {
        if (layer.intra[i].dim == factor.dim)
          steps = layer.intra[i].count; // the first factor of this loop
      }
      const std::int64_t period = std::max<std::int64_t>(dim.padded / steps, 1);
      std::map<std::pair<std::int64_t, std::int64_t>, std::uint32_t> seen;
      std::vector<std::uint32_t>& classes = classes_.emplace_back();
      for (std::int64_t begin = 0; begin < dim.padded; begin += dim.tile) {
        const std::pair key{begin % period, (begin + dim.tile) % period};
        classes.push_back(seen.emplace(key, static_cast<std::uint32_t>(seen.size())).first->second);
      }
      sizes_.push_back(seen.size());
      combinations *= seen.size();
    }
    numbers_.assign(combinations, kNone);
  }

  std::uint32_t group_of(const std::vector<std::uint32_t>& parts) {
    std::size_t combination = 0;
    for (std::size_t i = 0; i < layer_.inter.size(); ++i)
      combination = combination * sizes_[i] + classes_[i][parts[layer_.inter[i].dim]];
    if (numbers_[combination] == kNone)
      numbers_[combination] = count_++;
    return numbers_[combination];
  }

private:
  const Layer& layer_;
  std::vector<std::vector<std::uint32_t>> classes_; ///< per inter factor, by part
  std::vector<std::size_t> sizes_;
  std::vector<std::uint32_t> numbers_;
  std::uint32_t count_ = 0;
};

/// The tensors of one operand of a layer, identified by the parts of the loops that index it.
class OperandTensors {
public:
  OperandTensors(const Layer& layer, std::uint32_t index, Operand operand)
      : index_(index), operand_(operand), use_(layer.use(operand)) {
    const std::vector<std::uint32_t> parts = parts_of(layer);
    std::vector<bool> indexes(layer.dims.size(), false);
    for (const std::uint32_t axis : use_.axes) {
      if (axis < layer.dims.size()) {
        indexes[axis] = true;
        continue;
      }
      const PartialDim& partial = layer.partial[axis - layer.dims.size()];
      for (const std::uint32_t dim : partial.dims)
        indexes[dim] = true;
      // Different parts may then access the same range, so tensors are identified by range.
      by_range_ = by_range_ || (parts[partial.dims[0]] > 1 && parts[partial.dims[1]] > 1);
    }
    std::size_t size = 1;
    for (std::uint32_t dim = 0; dim < indexes.size(); ++dim) {
      if (indexes[dim] && parts[dim] > 1) {
        dims_.push_back(dim);
        strides_.push_back(static_cast<std::uint32_t>(size));
        size *= parts[dim];
      }
    }
    known_.assign(size, kNone);
    for (const Factor& loop : outer_loops(layer)) {
      if (!indexes[loop.dim] && layer.dims[loop.dim].parsed != 1)
        priority_ = checked_multiply(priority_, loop.count);
    }
  }

  std::uint32_t find(Workload& workload, const std::vector<std::uint32_t>& parts,
                     std::uint32_t tile, std::span<const Interval> ranges) {
    std::size_t key = 0;
    for (std::size_t i = 0; i < dims_.size(); ++i)
      key += static_cast<std::size_t>(parts[dims_[i]]) * strides_[i];
    if (known_[key] != kNone)
      return known_[key];
    if (by_range_) {
      std::vector<std::int64_t> bounds;
      for (const std::uint32_t axis : use_.axes)
        bounds.insert(bounds.end(), {ranges[axis].begin, ranges[axis].end});
      const auto [at, added] = by_bounds_.emplace(
          std::move(bounds), static_cast<std::uint32_t>(workload.tensors.size()));
      if (!added)
        return known_[key] = at->second;
    }
    known_[key] = static_cast<std::uint32_t>(workload.tensors.size());
    Tensor tensor;
    tensor.layer = index_;
    tensor.tile = tile;
    tensor.operand = operand_;
    tensor.constant = use_.source == Source::constant;
    tensor.bits.value = use_.bits;
    for (const std::uint32_t axis : use_.axes)
      tensor.bits.value = checked_multiply(tensor.bits.value, ranges[axis].size());
    tensor.base_priority = tensor.constant ? priority_ : 0;
    workload.tensors.push_back(tensor);
    return known_[key];
  }

private:
  std::uint32_t index_;
  Operand operand_;
  const OperandUse& use_;
  bool by_range_ = false;
  std::vector<std::uint32_t> dims_, strides_;
  std::vector<std::uint32_t> known_;
  std::map<std::vector<std::int64_t>, std::uint32_t> by_bounds_;
  std::int64_t priority_ = 1; ///< product of factors of loops that do not index the operand
};

void set_ranges(const Layer& layer, const std::vector<std::uint32_t>& parts,
                std::span<Interval> ranges) {
  for (std::size_t i = 0; i < layer.dims.size(); ++i) {
    const std::int64_t begin = parts[i] * layer.dims[i].tile;
    ranges[i] = {begin, begin + layer.dims[i].tile};
  }
  for (std::size_t i = 0; i < layer.partial.size(); ++i) {
    const PartialDim& partial = layer.partial[i];
    Interval& range = ranges[layer.dims.size() + i];
    range = {-partial.pad_begin, -partial.pad_begin + 1};
    for (std::size_t k = 0; k < 2; ++k) {
      range.begin += partial.coefficients[k] * ranges[partial.dims[k]].begin;
      range.end += partial.coefficients[k] * (ranges[partial.dims[k]].end - 1);
    }
  }
}

/// Whether all loops that the output lacks have reached their end, as defined by `end`.
template <class End>
bool reaches_end(const Layer& layer, std::span<const Interval> ranges, End end) {
  const std::vector<std::uint32_t>& output = layer.operands[0].axes;
  for (std::uint32_t i = 0; i < layer.dims.size(); ++i) {
    const Dim& dim = layer.dims[i];
    if (dim.parsed != 1 && ranges[i].end < end(dim) && std::ranges::find(output, i) == output.end())
      return false;
  }
  return true;
}

/// Checks that no range of a tile overflows 64 bits, since strides and dilations are user input.
void check_ranges(const Layer& layer) {
  for (const PartialDim& partial : layer.partial) {
    std::int64_t reach = checked_add(partial.pad_begin, partial.pad_end);
    for (std::size_t k = 0; k < 2; ++k)
      reach = checked_add(
          reach, checked_multiply(partial.coefficients[k], layer.dims[partial.dims[k]].padded));
  }
}

void make_layer_tiles(Workload& workload, std::uint32_t index) {
  Layer& layer = workload.layers[index];
  check_ranges(layer);
  layer.first_tile = static_cast<std::uint32_t>(workload.tiles.size());
  layer.first_range = static_cast<std::uint32_t>(workload.all_ranges.size());
  PartCounter counter(layer);
  Groups groups(layer);
  std::vector<OperandTensors> tensors;
  for (const Operand operand : layer.equation)
    tensors.emplace_back(layer, index, operand);
  for (std::uint32_t sub = 0; sub < layer.tiles; ++sub, counter.next()) {
    const auto id = static_cast<std::uint32_t>(workload.tiles.size());
    workload.all_ranges.resize(workload.all_ranges.size() + layer.axes());
    const std::span<Interval> ranges = std::span(workload.all_ranges).last(layer.axes());
    set_ranges(layer, counter.parts, ranges);
    Tile tile;
    tile.layer = index;
    tile.sub = sub;
    tile.group = groups.group_of(counter.parts);
    tile.core = tile.group < layer.cores.size() ? layer.cores[tile.group] : layer.cores[0];
    tile.final_output = reaches_end(layer, ranges, [](const Dim& dim) { return dim.size; });
    for (std::size_t i = 0; i < layer.equation.size(); ++i) {
      tile.tensors[static_cast<std::size_t>(layer.equation[i])] =
          tensors[i].find(workload, counter.parts, id, ranges);
    }
    workload.tiles.push_back(tile);
  }
}

} // namespace

std::vector<Factor> outer_loops(const Layer& layer) {
  std::vector<Factor> loops;
  for (const std::vector<Factor>* list : {&layer.inter, &layer.intra}) {
    for (const Factor& factor : *list) {
      if (factor.count > 1)
        loops.push_back(factor);
    }
  }
  return loops;
}

std::vector<std::vector<std::uint32_t>> part_offsets(const Layer& layer) {
  std::vector<std::vector<std::uint32_t>> result(layer.dims.size(), {0});
  std::uint64_t tiles = 1;
  for (const Factor& loop : outer_loops(layer)) {
    // An outer factor of the same loop advances over all parts of the inner factors.
    std::vector<std::uint32_t>& offsets = result[loop.dim];
    const std::size_t inner = offsets.size();
    for (std::int64_t value = 1; value < loop.count; ++value) {
      for (std::size_t i = 0; i < inner; ++i)
        offsets.push_back(offsets[i] +
                          static_cast<std::uint32_t>(static_cast<std::uint64_t>(value) * tiles));
    }
    tiles *= static_cast<std::uint64_t>(loop.count);
  }
  return result;
}

std::vector<std::uint32_t> combinations(const Layer& layer, const std::vector<std::uint32_t>& dims,
                                        bool complete) {
  const std::vector<std::vector<std::uint32_t>> offsets = part_offsets(layer);
  std::vector<std::uint32_t> sums{0};
  for (const std::uint32_t dim : dims) {
    const Dim& loop = layer.dims[dim];
    std::vector<std::uint32_t> longer;
    for (std::size_t part = 0; part < offsets[dim].size(); ++part) {
      if (complete && loop.parsed != 1 &&
          static_cast<std::int64_t>(part + 1) * loop.tile < loop.parsed)
        continue;
      for (const std::uint32_t sum : sums)
        longer.push_back(sum + offsets[dim][part]);
    }
    sums = std::move(longer);
  }
  return sums;
}

bool is_complete(const Workload& workload, std::uint32_t tile) {
  return reaches_end(workload.layers[workload.tiles[tile].layer], workload.ranges(tile),
                     [](const Dim& dim) { return dim.parsed; });
}

void make_tiles(Workload& workload) {
  std::uint64_t tiles = 0;
  std::uint64_t ranges = 0;
  for (Layer& layer : workload.layers) {
    std::uint64_t count = 1;
    for (const Factor& loop : outer_loops(layer)) {
      count *= static_cast<std::uint64_t>(loop.count);
      if (count > kMaxTiles)
        break;
    }
    tiles += count;
    if (tiles > kMaxTiles) {
      throw InfeasibleError(fmt::format("layer {} ({}) brings the tiles to more than {}; fewer or "
                                        "smaller tiling factors are needed",
                                        layer.id, layer.name, kMaxTiles));
    }
    layer.tiles = static_cast<std::uint32_t>(count);
    ranges += count * layer.axes();
  }
  workload.tiles.reserve(tiles);
  workload.all_ranges.reserve(ranges);
  for (std::uint32_t i = 0; i < workload.layers.size(); ++i)
    make_layer_tiles(workload, i);
}

} // namespace monet::stream
