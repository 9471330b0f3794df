// Walks over a loop nest by blocks of its innermost loop.
#include "base/shared/checked.hpp"
#include "execute/walk/context.hpp"

#include "monet/base/stop.hpp"

#include <algorithm>

namespace monet {

namespace {

/// Iterations [first, first + count) of the last loop.
struct RunPart {
  std::int64_t first = 0;
  std::size_t count = 0;
};

/// An operand of a walk. Without bounds, all of its elements are known to be inside.
template <class Real>
class BlockSlot {
public:
  BlockSlot(WalkedOperand<Real>&& operand, const LoopNest& nest)
      : place(operand.place), map(std::move(operand.map)), count_(operand.count),
        summed_(operand.accumulates), block_(kIterationBlock) {
    for (std::size_t d = 0; d < nest.dims.size(); ++d)
      summed_ = summed_ || (nest.dims[d].size > 1 && map.strides[d] == 0);
    real_ = operand.integral ? nullptr : operand.numbers->real.data();
    whole_ = operand.numbers->whole.data();
  }

  /// Point of the loops at which a run of the last loop starts.
  void begin_run(std::span<const std::int64_t> point) {
    stride_ = map.strides.empty() ? 0 : map.strides.back();
    if (map.bounds.empty())
      begin_ = map.offset + weighted_sum(map.strides, point);
  }

  /// The values of a part of a run, one after another.
  const Real* load(const RunPart& part, std::span<const std::int64_t> point) {
    if (is_plain())
      return real_ + begin_ + part.first;
    Real* const values = block_.data();
    if (real_ != nullptr && map.bounds.empty() && stride_ == 0) {
      std::fill_n(values, part.count, real_[begin_]);
      return values;
    }
    for_each_element(part, point, [&](std::size_t i, std::int64_t element) {
      values[i] = element < 0        ? Real{0}
                  : real_ == nullptr ? static_cast<Real>(whole_[element])
                                     : real_[element];
    });
    return values;
  }

  /// Where results of a part are written before store().
  Real* target(const RunPart& part) {
    return is_plain() && !summed_ ? real_ + begin_ + part.first : block_.data();
  }

  /// Puts results where they belong, unless target() was there.
  void store(const RunPart& part, std::span<const std::int64_t> point) {
    if (is_plain() && !summed_)
      return;
    for_each_element(part, point, [&](std::size_t i, std::int64_t element) {
      if (element < 0)
        return;
      if (real_ == nullptr) {
        whole_[element] = saturated_integer(block_[i]);
      } else {
        Real& result = real_[element];
        result = summed_ ? result + block_[i] : block_[i];
      }
    });
  }

  std::size_t place; ///< among the operator's inputs or outputs
  OperandMap map;

private:
  bool is_plain() const { return real_ != nullptr && map.bounds.empty() && stride_ == 1; }

  /// f(i, element of iteration i), -1 outside of the tensor.
  template <class F>
  void for_each_element(const RunPart& part, std::span<const std::int64_t> point, F f) const {
    if (map.bounds.empty()) {
      std::int64_t element = begin_ + part.first * stride_;
      for (std::size_t i = 0; i < part.count; ++i, element += stride_)
        f(i, element);
      return;
    }
    Integers place_of(point.begin(), point.end());
    for (std::size_t i = 0; i < part.count; ++i) {
      if (!place_of.empty())
        place_of.back() = part.first + static_cast<std::int64_t>(i);
      f(i, map.element(place_of, count_));
    }
  }

  Real* real_ = nullptr; ///< null: the tensor holds integers
  std::int64_t* whole_ = nullptr;
  std::int64_t count_;
  bool summed_;
  std::int64_t begin_ = 0;  ///< element at the start of the last loop
  std::int64_t stride_ = 0; ///< along the last loop
  std::vector<Real> block_; ///< values that do not lie in the tensor one after another
};

/// Joins neighbouring loops that are one to every operand; the order of iterations stays.
void join_loops(Integers& sizes, std::span<OperandMap* const> maps) {
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
}

template <class Real>
std::vector<BlockSlot<Real>> slots_of(std::vector<WalkedOperand<Real>>&& operands,
                                      const LoopNest& nest) {
  std::vector<BlockSlot<Real>> slots;
  for (WalkedOperand<Real>& operand : operands)
    slots.emplace_back(std::move(operand), nest);
  return slots;
}

} // namespace

template <class Real>
void KernelContext<Real>::for_each_block(FunctionRef<const IterationBlock<Real>&> f,
                                         std::size_t inputs, std::size_t outputs) {
  Integers sizes;
  for (const LoopDim& dim : op_.nest.dims)
    sizes.push_back(dim.size);
  if (std::ranges::find(sizes, 0) != sizes.end())
    return;
  std::vector<BlockSlot<Real>> in = slots_of(walked_operands(false), op_.nest);
  std::vector<BlockSlot<Real>> out = slots_of(walked_operands(true), op_.nest);
  std::vector<OperandMap*> maps;
  for (auto* slots : {&in, &out}) {
    for (BlockSlot<Real>& slot : *slots)
      maps.push_back(&slot.map);
  }
  join_loops(sizes, maps);
  const std::vector<Real> zeros(kIterationBlock, Real{0});
  std::vector<const Real*> from(std::max(index_.inputs.size(), inputs), zeros.data());
  std::vector<std::vector<Real>> dropped(std::max(index_.outputs.size(), outputs));
  std::vector<Real*> to;
  for (std::vector<Real>& block : dropped)
    to.push_back((block.resize(kIterationBlock), block.data()));
  Integers point(sizes.size(), 0);
  const std::int64_t run = sizes.empty() ? 1 : sizes.back();
  if (!sizes.empty())
    sizes.back() = 1; // the last loop is walked below
  do {
    for (auto* slots : {&in, &out}) {
      for (BlockSlot<Real>& slot : *slots)
        slot.begin_run(point);
    }
    for (std::int64_t first = 0; first < run; first += kIterationBlock) {
      check_stop();
      const RunPart part{
          first, static_cast<std::size_t>(std::min<std::int64_t>(kIterationBlock, run - first))};
      for (BlockSlot<Real>& slot : in)
        from[slot.place] = slot.load(part, point);
      for (BlockSlot<Real>& slot : out)
        to[slot.place] = slot.target(part);
      f({from, to, part.count});
      for (BlockSlot<Real>& slot : out)
        slot.store(part, point);
    }
  } while (next_point(point, sizes));
}

template void KernelContext<double>::for_each_block(FunctionRef<const IterationBlock<double>&>,
                                                    std::size_t, std::size_t);
template void KernelContext<float>::for_each_block(FunctionRef<const IterationBlock<float>&>,
                                                   std::size_t, std::size_t);

} // namespace monet
