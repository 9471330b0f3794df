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
auto KernelContext<Real>::slots(bool outputs) const -> std::vector<std::optional<Slot>> {
  const auto& operands = outputs ? index_.outputs : index_.inputs;
  const auto& tensors = outputs ? op_.outputs : op_.inputs;
  std::vector<std::optional<Slot>> result(operands.size());
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i])
      continue;
    const Access& access = op_.nest.operands[*operands[i]];
    if (access.opaque)
      continue;
    Slot slot{map_of(*operands[i]), &store_[*tensors[i]], access.mode == AccessMode::accumulate};
    for (std::size_t d = 0; d < op_.nest.dims.size(); ++d)
      slot.summed = slot.summed || (op_.nest.dims[d].size > 1 && slot.map.strides[d] == 0);
    result[i] = std::move(slot);
  }
  return result;
}

template <class Real>
template <class F>
void KernelContext<Real>::for_each_iteration(F f) {
  std::vector<std::optional<Slot>> in = slots(false);
  std::vector<std::optional<Slot>> out = slots(true);
  std::vector<std::int64_t> loop_sizes = sizes();
  if (std::find(loop_sizes.begin(), loop_sizes.end(), 0) != loop_sizes.end())
    return;
  std::vector<Real> values(in.size(), Real{0});
  std::vector<Real> results(out.size(), Real{0});
  std::vector<std::int64_t> point(loop_sizes.size(), 0);
  const std::size_t last = loop_sizes.size() - 1; // meaningless without loops
  const std::int64_t run = loop_sizes.empty() ? 1 : loop_sizes.back();
  if (!loop_sizes.empty())
    loop_sizes.back() = 1; // the last loop is walked below
  do {
    check_stop();
    for (auto& slot : in)
      begin_run(slot, point);
    for (auto& slot : out)
      begin_run(slot, point);
    for (std::int64_t step = 0; step < run; ++step) {
      if (!loop_sizes.empty())
        point[last] = step;
      for (std::size_t i = 0; i < in.size(); ++i) {
        if (in[i])
          values[i] = load(*in[i], step, point);
      }
      f(std::span<const Real>(values), std::span<Real>(results));
      for (std::size_t i = 0; i < out.size(); ++i) {
        if (out[i])
          store(*out[i], step, point, results[i]);
      }
    }
    if (!loop_sizes.empty())
      point[last] = 0;
  } while (next_point(point, loop_sizes));
}

template <class Real>
void KernelContext<Real>::begin_run(std::optional<Slot>& slot,
                                    std::span<const std::int64_t> point) {
  if (slot && slot->map.bounds.empty())
    slot->begin = *slot->map.at(point);
}

/// Element at `step` of the last loop, or -1 outside of the tensor.
template <class Real>
std::int64_t KernelContext<Real>::element_of(const Slot& slot, std::int64_t step,
                                             std::span<const std::int64_t> point) {
  if (!slot.map.bounds.empty())
    return slot.map.at(point).value_or(-1);
  return slot.map.strides.empty() ? slot.begin : slot.begin + step * slot.map.strides.back();
}

template <class Real>
Real KernelContext<Real>::load(const Slot& slot, std::int64_t step,
                               std::span<const std::int64_t> point) {
  const std::int64_t element = element_of(slot, step, point);
  if (element < 0)
    return Real{0};
  const auto at = static_cast<std::size_t>(element);
  return slot.numbers->real.empty() ? static_cast<Real>(slot.numbers->whole[at])
                                    : slot.numbers->real[at];
}

template <class Real>
void KernelContext<Real>::store(const Slot& slot, std::int64_t step,
                                std::span<const std::int64_t> point, Real result) {
  const std::int64_t element = element_of(slot, step, point);
  if (element < 0)
    return;
  const auto at = static_cast<std::size_t>(element);
  if (slot.numbers->real.empty()) {
    slot.numbers->whole[at] = saturated_integer(result);
  } else {
    Real& target = slot.numbers->real[at];
    target = slot.summed ? target + result : result;
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
  const auto add = [&](std::vector<typename Group::Row>& rows,
                       std::vector<std::optional<Slot>> from, bool outputs) {
    rows.resize(from.size());
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (!from[i])
        continue;
      typename Group::Row& row = rows[i];
      row.numbers = from[i]->numbers;
      row.map = std::move(from[i]->map);
      const bool full = !outputs || depends_on(*row.map, inner);
      const std::size_t length = full ? group.size_ : 1;
      row.summed = outputs && op_.nest.operands[*index_.outputs[i]].mode == AccessMode::accumulate;
      for (std::size_t d = 0; d < inner.size(); ++d) {
        const bool repeats = op_.nest.dims[d].size > 1 && row.map->strides[d] == 0;
        row.summed = row.summed || (outer[d] && repeats);
      }
      if (row.map->bounds.empty())
        row.table = inner_offsets(*row.map, inner, length);
      row.integral = row.numbers->real.empty();
      row.real.resize(length);
      if (row.integral || outputs)
        row.whole.resize(length);
      if (!outputs)
        row.address.resize(length);
    }
  };
  add(group.inputs_, slots(false), false);
  add(group.outputs_, slots(true), true);
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
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < place.size(); ++d)
      offset += strides[d] * place[d];
    offsets.push_back(offset);
    next_point(place, inner_sizes);
  }
  return offsets;
}

/// Elements of a row: by table where the row stays inside its tensor, point by point otherwise.
template <class Real>
template <class F>
void KernelContext<Real>::for_each_of_row(const typename Group::Row& row, std::size_t length,
                                          std::vector<std::int64_t>& point,
                                          std::span<const std::size_t> inner,
                                          std::span<const std::int64_t> inner_sizes, F f) {
  for (const std::size_t d : inner)
    point[d] = 0;
  if (row.map->bounds.empty()) {
    const std::int64_t first = *row.map->at(point);
    for (std::size_t i = 0; i < length; ++i)
      f(i, first + row.table[i]);
    return;
  }
  std::vector<std::int64_t> place(inner.size(), 0);
  for (std::size_t i = 0; i < length; ++i) {
    for (std::size_t d = 0; d < inner.size(); ++d)
      point[inner[d]] = place[d];
    f(i, row.map->at(point).value_or(-1));
    next_point(place, inner_sizes);
  }
}

template <class Real>
void KernelContext<Real>::gather(Group& group, std::vector<std::int64_t>& point,
                                 std::span<const std::size_t> inner,
                                 std::span<const std::int64_t> inner_sizes) const {
  for (auto& row : group.inputs_) {
    if (!row.map)
      continue;
    const TensorNumbers<Real>& numbers = *row.numbers;
    for_each_of_row(row, group.size_, point, inner, inner_sizes,
                    [&](std::size_t i, std::int64_t element) {
                      row.address[i] = element;
                      const auto at = static_cast<std::size_t>(element);
                      if (!row.integral) {
                        row.real[i] = element < 0 ? Real{0} : numbers.real[at];
                      } else {
                        row.whole[i] = element < 0 ? 0 : numbers.whole[at];
                        row.real[i] = static_cast<Real>(row.whole[i]);
                      }
                    });
  }
}

template <class Real>
void KernelContext<Real>::scatter(Group& group, std::vector<std::int64_t>& point,
                                  std::span<const std::size_t> inner,
                                  std::span<const std::int64_t> inner_sizes) const {
  for (auto& row : group.outputs_) {
    if (!row.map)
      continue;
    for_each_of_row(row, row.real.size(), point, inner, inner_sizes,
                    [&](std::size_t i, std::int64_t element) {
                      if (element < 0)
                        return;
                      const auto at = static_cast<std::size_t>(element);
                      // The one that the kernel left alone is zero.
                      if (row.integral) {
                        row.numbers->whole[at] = row.whole[i] + saturated_integer(row.real[i]);
                      } else {
                        const Real made = row.real[i] + static_cast<Real>(row.whole[i]);
                        Real& target = row.numbers->real[at];
                        target = row.summed ? target + made : made;
                      }
                    });
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
