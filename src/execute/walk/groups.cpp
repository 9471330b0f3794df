// Walks over a loop nest by groups of iterations, each gathered into rows.
#include "base/shared/checked.hpp"
#include "execute/walk/context.hpp"

#include "monet/base/stop.hpp"

#include <algorithm>

namespace monet {

template <class Real>
void GroupRow<Real>::find_addresses() {
  for (std::size_t i = 0; i < table.size() && i < address.size(); ++i)
    address[i] = first + table[i];
}

template <class Real>
std::span<const Real> IterationGroup<Real>::in(std::size_t input) const {
  return inputs_[input].real;
}
template <class Real>
std::span<const std::int64_t> IterationGroup<Real>::integers(std::size_t input) const {
  return inputs_[input].whole;
}
template <class Real>
std::span<const std::int64_t> IterationGroup<Real>::address(std::size_t input) {
  inputs_[input].find_addresses();
  return inputs_[input].address;
}
template <class Real>
std::span<Real> IterationGroup<Real>::out(std::size_t output) {
  return outputs_[output].real;
}
template <class Real>
std::span<std::int64_t> IterationGroup<Real>::out_integers(std::size_t output) {
  outputs_[output].is_whole = true;
  return outputs_[output].whole;
}
template class IterationGroup<double>;
template class IterationGroup<float>;

namespace {

template <class Real>
class GroupWalk {
public:
  GroupWalk(const LoopNest& nest, const std::vector<bool>& inner) : nest_(nest), inner_(inner) {
    for (std::size_t d = 0; d < inner.size(); ++d) {
      (inner[d] ? inner_index_ : outer_index_).push_back(d);
      (inner[d] ? inner_sizes_ : outer_sizes_).push_back(nest.dims[d].size);
    }
    for (const std::int64_t size : inner_sizes_)
      size_ *= static_cast<std::size_t>(size);
  }

  /// A row for each of the operator's inputs or outputs, of which there are `count`.
  std::vector<GroupRow<Real>> rows_of(std::vector<WalkedOperand<Real>>&& operands,
                                      std::size_t count, bool outputs) const {
    std::vector<GroupRow<Real>> rows(count);
    for (WalkedOperand<Real>& operand : operands) {
      GroupRow<Real>& row = rows[operand.place];
      row.numbers = operand.numbers;
      row.count = operand.count;
      row.integral = operand.integral;
      row.map = std::move(operand.map);
      const std::size_t length = !outputs || depends_on_inner(*row.map) ? size_ : 1;
      row.summed = outputs && operand.accumulates;
      for (const std::size_t d : outer_index_)
        row.summed = row.summed || (nest_.dims[d].size > 1 && row.map->strides[d] == 0);
      if (row.map->bounds.empty())
        row.table = inner_offsets(*row.map, length);
      find_run(row);
      row.real.resize(length);
      row.address.resize(length);
      if (row.integral || outputs)
        row.whole.resize(length);
    }
    return rows;
  }

  void run(std::vector<GroupRow<Real>>& inputs, std::vector<GroupRow<Real>>& outputs,
           FunctionRef<IterationGroup<Real>&> f) {
    if (std::ranges::find(outer_sizes_, 0) != outer_sizes_.end())
      return;
    IterationGroup<Real> group(size_, inputs, outputs);
    point_.assign(inner_.size(), 0);
    Integers outer(outer_index_.size(), 0);
    do {
      check_stop();
      for (std::size_t d = 0; d < outer.size(); ++d)
        point_[outer_index_[d]] = outer[d];
      for (auto& row : outputs) {
        std::ranges::fill(row.real, Real{0});
        if (row.is_whole)
          std::ranges::fill(row.whole, 0);
      }
      for (auto& row : inputs)
        gather(row);
      f(group);
      for (auto& row : outputs)
        scatter(row);
    } while (next_point(outer, outer_sizes_));
  }

private:
  bool depends_on_inner(const OperandMap& map) const {
    return std::ranges::any_of(
        inner_index_, [&](std::size_t d) { return map.strides[d] != 0 && nest_.dims[d].size > 1; });
  }

  /// Distance of every inner iteration from the first one.
  Integers inner_offsets(const OperandMap& map, std::size_t length) const {
    Integers strides;
    for (const std::size_t d : inner_index_)
      strides.push_back(map.strides[d]);
    Integers offsets;
    Integers place(strides.size(), 0);
    while (offsets.size() < length) {
      offsets.push_back(weighted_sum(strides, place));
      next_point(place, inner_sizes_);
    }
    return offsets;
  }

  /// Finds what is simple about a row's table.
  static void find_run(GroupRow<Real>& row) {
    const Integers& table = row.table;
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
  void find_elements(GroupRow<Real>& row) {
    for (const std::size_t d : inner_index_)
      point_[d] = 0;
    if (row.map->bounds.empty()) {
      row.first = row.map->offset + weighted_sum(row.map->strides, point_);
      return; // find_addresses() computes the addresses where they are needed
    }
    Integers place(inner_index_.size(), 0);
    for (std::int64_t& element : row.address) {
      for (std::size_t d = 0; d < inner_index_.size(); ++d)
        point_[inner_index_[d]] = place[d];
      element = row.map->element(point_, row.count);
      next_point(place, inner_sizes_);
    }
  }

  /// Numbers at the elements of find_elements(): 0 for those outside the tensor.
  template <class Number>
  static void take(const GroupRow<Real>& row, const Number* from, std::span<Number> to) {
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

  void gather(GroupRow<Real>& row) {
    if (!row.map)
      return;
    find_elements(row);
    if (!row.integral) {
      take<Real>(row, row.numbers->real.data(), row.real);
      return;
    }
    take<std::int64_t>(row, row.numbers->whole.data(), row.whole);
    std::ranges::transform(row.whole, row.real.begin(),
                           [](std::int64_t whole) { return static_cast<Real>(whole); });
  }

  /// Writes a row to its tensor. A kernel fills either `real` or `whole`; the other one is zero.
  void scatter(GroupRow<Real>& row) {
    if (!row.map)
      return;
    find_elements(row);
    Real* const to_real = row.numbers->real.data(); // addresses are inside
    const auto real = std::span<const Real>(row.real).first(row.address.size());
    if (!row.integral && !row.is_whole && !row.summed && row.map->bounds.empty()) {
      const std::size_t run = row.run;
      for (std::size_t i = 0; i < real.size(); i += run) {
        Real* const target = to_real + row.first + row.table[i];
        const Real* const made = real.data() + i;
        for (std::size_t k = 0; k < run; ++k)
          target[k] = made[k] + Real{0};
      }
      return;
    }
    row.find_addresses();
    std::int64_t* const to_whole = row.numbers->whole.data();
    for (std::size_t i = 0; i < real.size(); ++i) {
      const std::int64_t address = row.address[i];
      if (address < 0)
        continue;
      if (row.integral) {
        to_whole[address] = row.whole[i] + saturated_integer(real[i]);
      } else {
        const Real made = real[i] + static_cast<Real>(row.whole[i]);
        to_real[address] = row.summed ? to_real[address] + made : made;
      }
    }
  }

  const LoopNest& nest_;
  const std::vector<bool>& inner_;
  std::size_t size_ = 1;
  std::vector<std::size_t> inner_index_, outer_index_;
  Integers inner_sizes_, outer_sizes_;
  Integers point_; ///< of all loops
};

} // namespace

template <class Real>
void KernelContext<Real>::for_each_group(FunctionRef<Group&> f) {
  const OperandMap first = map_of(0);
  std::vector<bool> inner;
  for (std::size_t d = 0; d < op_.nest.dims.size(); ++d)
    inner.push_back(op_.nest.dims[d].coupled || first.strides[d] == 0);
  for_each_group(inner, f);
}

template <class Real>
void KernelContext<Real>::for_each_group(const std::vector<bool>& inner, FunctionRef<Group&> f) {
  GroupWalk<Real> walk(op_.nest, inner);
  auto inputs = walk.rows_of(walked_operands(false), index_.inputs.size(), false);
  auto outputs = walk.rows_of(walked_operands(true), index_.outputs.size(), true);
  walk.run(inputs, outputs, f);
}

template void KernelContext<double>::for_each_group(FunctionRef<IterationGroup<double>&>);
template void KernelContext<double>::for_each_group(const std::vector<bool>&,
                                                    FunctionRef<IterationGroup<double>&>);
template void KernelContext<float>::for_each_group(FunctionRef<IterationGroup<float>&>);
template void KernelContext<float>::for_each_group(const std::vector<bool>&,
                                                   FunctionRef<IterationGroup<float>&>);

} // namespace monet
