// Walks over a loop nest; the templates of context.hpp.
#pragma once

#include "execute/walk/context.hpp"

#include "monet/base/checked.hpp"

#include <algorithm>

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
    check_reach(slot.map, op_.nest, slot.count);
    result.push_back(std::move(slot));
  }
  return result;
}

/// Room for the values of one iteration, of all inputs or outputs and not less than an extent.
template <class Real>
template <std::size_t kExtent>
std::vector<Real> KernelContext<Real>::values_of(std::vector<Slot>& slots, std::size_t count) {
  constexpr std::size_t kLeast = kExtent == std::dynamic_extent ? 0 : kExtent;
  std::vector<Real> values(std::max(count, kLeast), Real{0});
  for (Slot& slot : slots)
    slot.value = &values[slot.place];
  return values;
}

template <class Real>
template <std::size_t kIn, std::size_t kOut, class F>
void KernelContext<Real>::for_each_iteration(F f) {
  std::vector<std::int64_t> loop_sizes = sizes();
  if (std::find(loop_sizes.begin(), loop_sizes.end(), 0) != loop_sizes.end())
    return;
  std::vector<Slot> in = slots(false);
  std::vector<Slot> out = slots(true);
  std::vector<Real> values = values_of<kIn>(in, index_.inputs.size());
  std::vector<Real> results = values_of<kOut>(out, index_.outputs.size());
  const auto seen = std::span<const Real>(values).template subspan<0, kIn>();
  const auto made = std::span<Real>(results).template subspan<0, kOut>();
  std::vector<std::int64_t> point(loop_sizes.size(), 0);
  const std::int64_t run = loop_sizes.empty() ? 1 : loop_sizes.back();
  std::int64_t none = 0;
  std::int64_t& last = loop_sizes.empty() ? none : point.back();
  if (!loop_sizes.empty())
    loop_sizes.back() = 1; // the last loop is walked below
  do {
    check_stop();
    begin_run(in, point);
    begin_run(out, point);
    for (last = 0; last < run; ++last) {
      for (const Slot& slot : in)
        *slot.value = load(slot, last, point);
      f(seen, made);
      for (const Slot& slot : out)
        store(slot, last, point);
    }
    last = 0;
  } while (next_point(point, loop_sizes));
}

template <class Real>
void KernelContext<Real>::begin_run(std::vector<Slot>& slots, std::span<const std::int64_t> point) {
  for (Slot& slot : slots) {
    if (slot.map.bounds.empty())
      slot.begin = slot.map.offset + weighted_sum(slot.map.strides, point);
  }
}

/// Element at `step` of the last loop, or -1 outside of the tensor.
template <class Real>
std::int64_t KernelContext<Real>::element_of(const Slot& slot, std::int64_t step,
                                             std::span<const std::int64_t> point) {
  if (!slot.map.bounds.empty())
    return slot.map.element(point, slot.count);
  return slot.begin + step * slot.stride;
}

template <class Real>
Real KernelContext<Real>::load(const Slot& slot, std::int64_t step,
                               std::span<const std::int64_t> point) {
  const std::int64_t element = element_of(slot, step, point);
  if (element < 0)
    return Real{0};
  return slot.real == nullptr ? static_cast<Real>(slot.whole[element]) : slot.real[element];
}

template <class Real>
void KernelContext<Real>::store(const Slot& slot, std::int64_t step,
                                std::span<const std::int64_t> point) {
  const std::int64_t element = element_of(slot, step, point);
  if (element < 0)
    return;
  if (slot.real == nullptr) {
    slot.whole[element] = saturated_integer(*slot.value);
  } else {
    Real& target = slot.real[element];
    target = slot.summed ? target + *slot.value : *slot.value;
  }
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

/// Addresses of a row: by table where the row stays inside its tensor, point by point otherwise.
template <class Real>
void KernelContext<Real>::find_elements(typename Group::Row& row, std::vector<std::int64_t>& point,
                                        std::span<const std::size_t> inner,
                                        std::span<const std::int64_t> inner_sizes) {
  for (const std::size_t d : inner)
    point[d] = 0;
  const std::span<std::int64_t> address = row.address;
  if (row.map->bounds.empty()) {
    const std::int64_t first = row.map->offset + weighted_sum(row.map->strides, point);
    const auto table = std::span<const std::int64_t>(row.table).first(address.size());
    for (std::size_t i = 0; i < address.size(); ++i)
      address[i] = first + table[i];
    return;
  }
  std::vector<std::int64_t> place(inner.size(), 0);
  for (std::int64_t& element : address) {
    for (std::size_t d = 0; d < inner.size(); ++d)
      point[inner[d]] = place[d];
    element = row.map->element(point, row.count);
    next_point(place, inner_sizes);
  }
}

/// Numbers at addresses of find_elements(), which are inside the tensor: 0 for those outside.
template <class Real>
template <class Number>
void KernelContext<Real>::take(std::span<const std::int64_t> address, const Number* from,
                               std::span<Number> to) {
  to = to.first(address.size());
  for (std::size_t i = 0; i < address.size(); ++i)
    to[i] = address[i] < 0 ? Number{0} : from[address[i]];
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
      take<Real>(row.address, row.numbers->real.data(), row.real);
      continue;
    }
    take<std::int64_t>(row.address, row.numbers->whole.data(), row.whole);
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
    const std::span<const std::int64_t> address = row.address;
    const auto real = std::span<const Real>(row.real).first(address.size());
    const auto whole = std::span<const std::int64_t>(row.whole).first(address.size());
    Real* const to_real = row.numbers->real.data(); // addresses are inside
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
      std::fill(row.whole.begin(), row.whole.end(), 0);
    }
    gather(group, point, inner_index, inner_sizes);
    f(group);
    scatter(group, point, inner_index, inner_sizes);
  } while (next_point(outer, outer_sizes));
}

} // namespace monet
