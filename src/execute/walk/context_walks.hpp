// Walks over a loop nest; the templates of context.hpp.
#pragma once

#include "execute/walk/context.hpp"

#include "monet/base/checked.hpp"

#include <algorithm>
#include <array>

namespace monet {

template <class Real>
double KernelContext<Real>::scalar(std::size_t i, double fallback) const {
  if (!has_input(i))
    return fallback;
  return is_real_input(i) ? static_cast<double>(input(i).at(0))
                          : static_cast<double>(integers(i).at(0));
}

template <class Real>
OperandMap KernelContext<Real>::map_of(std::size_t operand) const {
  const Access& access = op_.nest.operands.at(operand);
  const Shape& shape = graph().tensor(access.tensor).shape;
  return map_operand(op_.nest, access, shape, strides_of(shape));
}

template <class Real>
std::vector<std::int64_t> KernelContext<Real>::sizes() const {
  std::vector<std::int64_t> result;
  for (const LoopDim& dim : op_.nest.dims)
    result.push_back(dim.size);
  return result;
}

template <class Real>
bool KernelContext<Real>::depends_on(const OperandMap& map, const std::vector<bool>& loops) const {
  for (std::size_t d = 0; d < loops.size(); ++d) {
    if (loops[d] && map.strides[d] != 0 && op_.nest.dims[d].size > 1)
      return true;
  }
  return false;
}

template <class Real>
auto KernelContext<Real>::slots(bool outputs) const -> std::vector<Slot> {
  const auto& operands = outputs ? index_.outputs : index_.inputs;
  const auto& tensors = outputs ? op_.outputs : op_.inputs;
  std::vector<Slot> result;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i])
      continue;
    const Access& access = op_.nest.operands[*operands[i]];
    if (access.opaque)
      continue;
    Slot slot{i, map_of(*operands[i]), &store_[*tensors[i]]};
    slot.summed = access.mode == AccessMode::accumulate;
    for (std::size_t d = 0; d < op_.nest.dims.size(); ++d)
      slot.summed = slot.summed || (op_.nest.dims[d].size > 1 && slot.map.strides[d] == 0);
    TensorNumbers<Real>& numbers = *slot.numbers;
    slot.real = numbers.real.empty() ? nullptr : numbers.real.data();
    slot.whole = numbers.whole.data();
    slot.count = static_cast<std::int64_t>(numbers.real.empty() ? numbers.whole.size()
                                                                : numbers.real.size());
    slot.stride = slot.map.strides.empty() ? 0 : slot.map.strides.back();
    slot.block.resize(kIterationBlock);
    check_reach(slot.map, op_.nest, slot.count);
    result.push_back(std::move(slot));
  }
  return result;
}

template <class Real>
template <std::size_t kIn, std::size_t kOut, class F>
void KernelContext<Real>::for_each_iteration(F f) {
  if constexpr (kIn != std::dynamic_extent && kOut != std::dynamic_extent) {
    for_each_block<kIn, kOut>([&](const auto& from, const auto& to, std::size_t count) {
      std::array<const Real*, kIn> in{};
      std::array<Real*, kOut> out{};
      std::copy_n(from.begin(), kIn, in.begin());
      std::copy_n(to.begin(), kOut, out.begin());
      for (std::size_t i = 0; i < count; ++i) { // vectorised where f is
        std::array<Real, kIn> seen{};
        std::array<Real, kOut> made{};
        for (std::size_t k = 0; k < kIn; ++k)
          seen[k] = in[k][i];
        f(std::span<const Real, kIn>(seen), std::span<Real, kOut>(made));
        for (std::size_t k = 0; k < kOut; ++k)
          out[k][i] = made[k];
      }
    });
    return;
  }
  std::vector<Real> values;
  std::vector<Real> results;
  for_each_block<kIn, kOut>([&](const auto& from, const auto& to, std::size_t count) {
    values.resize(from.size());
    results.resize(to.size());
    const auto seen = std::span<const Real>(values).template subspan<0, kIn>();
    const auto made = std::span<Real>(results).template subspan<0, kOut>();
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t k = 0; k < values.size(); ++k)
        values[k] = from[k][i];
      f(seen, made);
      for (std::size_t k = 0; k < results.size(); ++k)
        to[k][i] = results[k];
    }
  });
}

template <class Real>
template <std::size_t kIn, std::size_t kOut, class F>
void KernelContext<Real>::for_each_block(F f) {
  std::vector<std::int64_t> loop_sizes = sizes();
  if (std::find(loop_sizes.begin(), loop_sizes.end(), 0) != loop_sizes.end())
    return;
  std::vector<Slot> in = slots(false);
  std::vector<Slot> out = slots(true);
  join_loops(loop_sizes, in, out);
  constexpr std::size_t kLeastIn = kIn == std::dynamic_extent ? 0 : kIn;
  constexpr std::size_t kLeastOut = kOut == std::dynamic_extent ? 0 : kOut;
  const std::vector<Real> zeros(kIterationBlock, Real{0}); // of inputs that are not there
  std::vector<const Real*> from(std::max(index_.inputs.size(), kLeastIn), zeros.data());
  std::vector<std::vector<Real>> made(std::max(index_.outputs.size(), kLeastOut));
  std::vector<Real*> to;
  for (std::vector<Real>& block : made)
    to.push_back((block.resize(kIterationBlock), block.data()));
  std::vector<std::int64_t> point(loop_sizes.size(), 0);
  const std::int64_t run = loop_sizes.empty() ? 1 : loop_sizes.back();
  if (!loop_sizes.empty())
    loop_sizes.back() = 1; // the last loop is walked below
  do {
    begin_run(in, point);
    begin_run(out, point);
    for (std::int64_t first = 0; first < run; first += kIterationBlock) {
      check_stop();
      const Block block{
          first, static_cast<std::size_t>(std::min<std::int64_t>(kIterationBlock, run - first))};
      for (Slot& slot : in)
        from[slot.place] = load(slot, block, point);
      for (Slot& slot : out)
        to[slot.place] =
            slot.is_plain() && !slot.summed ? slot.real + slot.begin + first : slot.block.data();
      f(from, to, block.count);
      for (Slot& slot : out)
        store(slot, block, point);
    }
  } while (next_point(point, loop_sizes));
}

/// Neighbouring loops that are one to every operand become one; the order of iterations stays.
template <class Real>
void KernelContext<Real>::join_loops(std::vector<std::int64_t>& sizes, std::vector<Slot>& in,
                                     std::vector<Slot>& out) {
  std::vector<OperandMap*> maps;
  for (std::vector<Slot>* slots : {&in, &out}) {
    for (Slot& slot : *slots)
      maps.push_back(&slot.map);
  }
  if (!std::ranges::all_of(maps, [](const OperandMap* map) { return map->bounds.empty(); }))
    return;
  const auto erase = [&](std::size_t loop) {
    const auto at = static_cast<std::ptrdiff_t>(loop);
    sizes.erase(sizes.begin() + at);
    for (OperandMap* map : maps)
      map->strides.erase(map->strides.begin() + at);
  };
  for (std::size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] == 1)
      erase(d);
  }
  for (std::size_t d = sizes.size(); d-- > 1;) {
    const bool one = std::ranges::all_of(maps, [&](const OperandMap* map) {
      return map->strides[d - 1] == map->strides[d] * sizes[d];
    });
    if (!one)
      continue;
    sizes[d] *= sizes[d - 1];
    erase(d - 1);
  }
  for (std::vector<Slot>* slots : {&in, &out}) {
    for (Slot& slot : *slots)
      slot.stride = slot.map.strides.empty() ? 0 : slot.map.strides.back();
  }
}

template <class Real>
void KernelContext<Real>::begin_run(std::vector<Slot>& slots, std::span<const std::int64_t> point) {
  for (Slot& slot : slots) {
    if (slot.map.bounds.empty())
      slot.begin = slot.map.offset + weighted_sum(slot.map.strides, point);
  }
}

/// Element of every iteration of a block, -1 outside of the tensor: f(i, element).
template <class Slot, class Block, class F>
void for_each_element(const Slot& slot, const Block& block, std::span<const std::int64_t> point,
                      F f) {
  if (slot.map.bounds.empty()) {
    std::int64_t element = slot.begin + block.first * slot.stride;
    for (std::size_t i = 0; i < block.count; ++i, element += slot.stride)
      f(i, element);
    return;
  }
  std::vector<std::int64_t> place(point.begin(), point.end());
  for (std::size_t i = 0; i < block.count; ++i) {
    if (!place.empty())
      place.back() = block.first + static_cast<std::int64_t>(i);
    f(i, slot.map.element(place, slot.count));
  }
}

/// Where the values of a block are, one after another.
template <class Real>
const Real* KernelContext<Real>::load(Slot& slot, const Block& block,
                                      std::span<const std::int64_t> point) {
  if (slot.is_plain())
    return slot.real + slot.begin + block.first;
  Real* const values = slot.block.data();
  if (slot.real != nullptr && slot.map.bounds.empty() && slot.stride == 0) {
    std::fill_n(values, block.count, slot.real[slot.begin]);
    return values;
  }
  for_each_element(slot, block, point, [&](std::size_t i, std::int64_t element) {
    values[i] = element < 0            ? Real{0}
                : slot.real == nullptr ? static_cast<Real>(slot.whole[element])
                                       : slot.real[element];
  });
  return values;
}

/// Puts the values of a block where they belong, unless they were made there.
template <class Real>
void KernelContext<Real>::store(Slot& slot, const Block& block,
                                std::span<const std::int64_t> point) {
  if (slot.is_plain() && !slot.summed)
    return;
  const Real* const values = slot.block.data();
  for_each_element(slot, block, point, [&](std::size_t i, std::int64_t element) {
    if (element < 0)
      return;
    if (slot.real == nullptr) {
      slot.whole[element] = saturated_integer(values[i]);
    } else {
      Real& target = slot.real[element];
      target = slot.summed ? target + values[i] : values[i];
    }
  });
}

template <class Real>
std::vector<bool> KernelContext<Real>::inner_loops() const {
  const LoopNest& nest = op_.nest;
  const OperandMap first = map_of(0);
  std::vector<bool> inner;
  for (std::size_t d = 0; d < nest.dims.size(); ++d)
    inner.push_back(nest.dims[d].coupled || first.strides[d] == 0);
  return inner;
}

template <class Real>
auto KernelContext<Real>::make_group(const std::vector<bool>& inner) const -> Group {
  Group group;
  group.size_ = 1;
  for (std::size_t d = 0; d < inner.size(); ++d) {
    if (inner[d])
      group.size_ *= static_cast<std::size_t>(op_.nest.dims[d].size);
  }
  std::vector<bool> outer = inner;
  outer.flip();
  const auto add = [&](std::vector<typename Group::Row>& rows, bool outputs) {
    rows.resize(outputs ? index_.outputs.size() : index_.inputs.size());
    for (Slot& slot : slots(outputs)) {
      typename Group::Row& row = rows[slot.place];
      row.numbers = slot.numbers;
      row.count = slot.count;
      row.map = std::move(slot.map);
      const bool full = !outputs || depends_on(*row.map, inner);
      const std::size_t length = full ? group.size_ : 1;
      row.summed =
          outputs && op_.nest.operands[*index_.outputs[slot.place]].mode == AccessMode::accumulate;
      for (std::size_t d = 0; d < inner.size(); ++d) {
        const bool repeats = op_.nest.dims[d].size > 1 && row.map->strides[d] == 0;
        row.summed = row.summed || (outer[d] && repeats);
      }
      if (row.map->bounds.empty())
        row.table = inner_offsets(*row.map, inner, length);
      find_run(row);
      row.integral = row.numbers->real.empty();
      row.real.resize(length);
      row.address.resize(length);
      if (row.integral || outputs)
        row.whole.resize(length);
    }
  };
  add(group.inputs_, false);
  add(group.outputs_, true);
  return group;
}

/// Distance of every inner iteration from the first one.
template <class Real>
std::vector<std::int64_t> KernelContext<Real>::inner_offsets(const OperandMap& map,
                                                             const std::vector<bool>& inner,
                                                             std::size_t length) const {
  std::vector<std::int64_t> inner_sizes;
  std::vector<std::int64_t> strides;
  for (std::size_t d = 0; d < inner.size(); ++d) {
    if (!inner[d])
      continue;
    inner_sizes.push_back(op_.nest.dims[d].size);
    strides.push_back(map.strides[d]);
  }
  std::vector<std::int64_t> offsets;
  std::vector<std::int64_t> place(strides.size(), 0);
  while (offsets.size() < length) {
    offsets.push_back(weighted_sum(strides, place));
    next_point(place, inner_sizes);
  }
  return offsets;
}

/// What of a row's table is simple.
template <class Real>
void KernelContext<Real>::find_run(typename Group::Row& row) {
  const std::vector<std::int64_t>& table = row.table;
  row.constant = std::ranges::all_of(table, [](std::int64_t offset) { return offset == 0; });
  std::size_t run = 1;
  while (run < table.size() && table[run] == static_cast<std::int64_t>(run))
    ++run;
  bool repeats = !table.empty() && table.size() % run == 0;
  for (std::size_t i = 0; i < table.size() && repeats; ++i)
    repeats = table[i] - table[i - i % run] == static_cast<std::int64_t>(i % run);
  row.run = repeats ? run : 1;
}

/// Addresses of a row: by table where the row stays inside its tensor, point by point otherwise.
template <class Real>
void KernelContext<Real>::find_elements(typename Group::Row& row, std::vector<std::int64_t>& point,
                                        std::span<const std::size_t> inner,
                                        std::span<const std::int64_t> inner_sizes) {
  for (const std::size_t d : inner)
    point[d] = 0;
  const std::span<std::int64_t> address = row.address;
  if (row.map->bounds.empty()) {
    row.first = row.map->offset + weighted_sum(row.map->strides, point);
    return; // whoever wants addresses has find_addresses()
  }
  std::vector<std::int64_t> place(inner.size(), 0);
  for (std::int64_t& element : address) {
    for (std::size_t d = 0; d < inner.size(); ++d)
      point[inner[d]] = place[d];
    element = row.map->element(point, row.count);
    next_point(place, inner_sizes);
  }
}

/// Numbers at the elements of find_elements(), which are inside the tensor: 0 for those outside.
template <class Real>
template <class Number>
void KernelContext<Real>::take(const typename Group::Row& row, const Number* from,
                               std::span<Number> to) {
  to = to.first(row.address.size());
  if (!row.map->bounds.empty()) {
    for (std::size_t i = 0; i < to.size(); ++i)
      to[i] = row.address[i] < 0 ? Number{0} : from[row.address[i]];
    return;
  }
  if (row.constant) {
    std::ranges::fill(to, to.empty() ? Number{0} : from[row.first]);
    return;
  }
  const auto table = std::span<const std::int64_t>(row.table).first(to.size());
  if (row.run == 1) {
    for (std::size_t i = 0; i < to.size(); ++i)
      to[i] = from[row.first + table[i]];
    return;
  }
  for (std::size_t i = 0; i < to.size(); i += row.run)
    std::copy_n(from + row.first + table[i], row.run, to.data() + i);
}

template <class Real>
void KernelContext<Real>::gather(Group& group, std::vector<std::int64_t>& point,
                                 std::span<const std::size_t> inner,
                                 std::span<const std::int64_t> inner_sizes) const {
  for (auto& row : group.inputs_) {
    if (!row.map)
      continue;
    find_elements(row, point, inner, inner_sizes);
    if (!row.integral) {
      take<Real>(row, row.numbers->real.data(), row.real);
      continue;
    }
    take<std::int64_t>(row, row.numbers->whole.data(), row.whole);
    std::ranges::transform(row.whole, row.real.begin(),
                           [](std::int64_t whole) { return static_cast<Real>(whole); });
  }
}

/// Of a row's two kinds of numbers, the one that the kernel left alone is zero.
template <class Real>
void KernelContext<Real>::scatter(Group& group, std::vector<std::int64_t>& point,
                                  std::span<const std::size_t> inner,
                                  std::span<const std::int64_t> inner_sizes) const {
  for (auto& row : group.outputs_) {
    if (!row.map)
      continue;
    find_elements(row, point, inner, inner_sizes);
    Real* const to_real = row.numbers->real.data(); // addresses are inside
    const auto real = std::span<const Real>(row.real).first(row.address.size());
    if (!row.integral && !row.is_whole && !row.summed && row.map->bounds.empty()) {
      for (std::size_t i = 0; i < real.size(); i += row.run) {
        Real* const target = to_real + row.first + row.table[i];
        for (std::size_t k = 0; k < row.run; ++k)
          target[k] = real[i + k] + Real{0};
      }
      continue;
    }
    row.find_addresses();
    const std::span<const std::int64_t> address = row.address;
    const auto whole = std::span<const std::int64_t>(row.whole).first(address.size());
    std::int64_t* const to_whole = row.numbers->whole.data();
    for (std::size_t i = 0; i < address.size(); ++i) {
      if (address[i] < 0)
        continue;
      if (row.integral) {
        to_whole[address[i]] = whole[i] + saturated_integer(real[i]);
      } else {
        const Real made = real[i] + static_cast<Real>(whole[i]);
        Real& target = to_real[address[i]];
        target = row.summed ? target + made : made;
      }
    }
  }
}

template <class Real>
template <class F>
void KernelContext<Real>::for_each_group(F f) {
  for_each_group(inner_loops(), f);
}

template <class Real>
template <class F>
void KernelContext<Real>::for_each_group(const std::vector<bool>& inner, F f) {
  Group group = make_group(inner);
  std::vector<std::size_t> inner_index;
  std::vector<std::size_t> outer_index;
  std::vector<std::int64_t> inner_sizes;
  std::vector<std::int64_t> outer_sizes;
  for (std::size_t d = 0; d < inner.size(); ++d) {
    (inner[d] ? inner_index : outer_index).push_back(d);
    (inner[d] ? inner_sizes : outer_sizes).push_back(op_.nest.dims[d].size);
  }
  if (std::find(outer_sizes.begin(), outer_sizes.end(), 0) != outer_sizes.end())
    return;
  std::vector<std::int64_t> point(inner.size(), 0);
  std::vector<std::int64_t> outer(outer_index.size(), 0);
  do {
    check_stop();
    for (std::size_t d = 0; d < outer.size(); ++d)
      point[outer_index[d]] = outer[d];
    for (auto& row : group.outputs_) {
      std::fill(row.real.begin(), row.real.end(), Real{0});
      if (row.is_whole)
        std::fill(row.whole.begin(), row.whole.end(), 0);
    }
    gather(group, point, inner_index, inner_sizes);
    f(group);
    scatter(group, point, inner_index, inner_sizes);
  } while (next_point(outer, outer_sizes));
}

} // namespace monet
