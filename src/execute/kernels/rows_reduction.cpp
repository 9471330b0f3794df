// Reductions and their gradients. A row is what is reduced to one element.
#include "base/shared/checked.hpp"
#include "execute/kernels/pointwise.hpp"
#include "workload/shared/op_types.hpp"

#include <cmath>

namespace monet {

namespace {

/// One number from a row: f(row).
template <class F>
constexpr KernelEntry reduction(OpType op_type, F) {
  return kernel("", op_type, []<class Real>(KernelContext<Real>& context) {
    context.for_each_group([](auto& group) { group.out(0)[0] = F{}(group.in(0)); });
  });
}

template <class Row, class F>
auto sum_of(Row row, F f) {
  std::remove_cvref_t<decltype(row[0])> sum = 0;
  for (const auto x : row)
    sum += f(x);
  return sum;
}

template <class Row>
auto sum_of(Row row) {
  return sum_of(row, [](auto x) { return x; });
}

/// log(sum(exp(x))), by way of the largest.
template <class Row>
auto log_sum_exp(Row row) {
  const auto shift = *std::ranges::max_element(row);
  return shift + std::log(sum_of(row, [=](auto x) { return std::exp(x - shift); }));
}

template <class Row>
auto product_of(Row row) {
  std::remove_cvref_t<decltype(row[0])> product = 1;
  for (const auto x : row)
    product *= x;
  return product;
}

/// Index of the largest (or smallest) element; of equal ones the first, or the last.
template <bool kLargest>
constexpr auto kArgument = []<class Real>(KernelContext<Real>& context) {
  const bool last = context.attributes().integer("select_last_index", 0) != 0;
  context.for_each_group([&](auto& group) {
    const std::span<const Real> x = group.in(0);
    std::size_t best = 0;
    for (std::size_t i = 1; i < x.size(); ++i) {
      const bool better = kLargest ? x[i] > x[best] : x[i] < x[best];
      if (better || (last && x[i] == x[best]))
        best = i;
    }
    group.out_integers(0)[0] = static_cast<std::int64_t>(best);
  });
};

/// The loop that is summed along. Where the axis is known only now, the nest couples all loops.
template <class Real>
std::vector<bool> summed_along(const KernelContext<Real>& context) {
  const std::vector<LoopDim>& dims = context.op().nest.dims;
  std::vector<bool> inner;
  for (const LoopDim& dim : dims)
    inner.push_back(dim.coupled);
  if (std::ranges::count(inner, true) < 2)
    return inner;
  const auto axis = saturated_integer(context.scalar(1, 0));
  const auto rank = static_cast<std::int64_t>(dims.size());
  inner.assign(dims.size(), false);
  inner.at(static_cast<std::size_t>(axis < 0 ? axis + rank : axis)) = true;
  return inner;
}

/// Sums along one axis, forwards or backwards, with or without the element itself.
constexpr auto kRunningSum = []<class Real>(KernelContext<Real>& context) {
  const bool reverse = context.attributes().integer("reverse", 0) != 0;
  const bool exclusive = context.attributes().integer("exclusive", 0) != 0;
  context.for_each_group(summed_along(context), [&](auto& group) {
    const std::span<const Real> x = group.in(0);
    const auto y = group.out(0).first(x.size());
    Real sum = 0;
    for (std::size_t k = 0; k < x.size(); ++k) {
      const std::size_t i = reverse ? x.size() - 1 - k : k;
      y[i] = exclusive ? sum : sum + x[i];
      sum += x[i];
    }
  });
};

// Gradients read dY, X and perhaps Y; dY and Y are the same along a row.

/// Elements equal to the result share dY evenly.
constexpr auto kExtremumGrad = []<class Real>(KernelContext<Real>& context) {
  context.for_each_group([](auto& group) {
    const std::span<const Real> x = group.in(1);
    const auto dy = group.in(0).first(x.size());
    const auto dx = group.out(0).first(x.size());
    const Real y = group.in(2)[0];
    const auto equal = static_cast<Real>(std::ranges::count(x, y));
    for (std::size_t i = 0; i < x.size(); ++i)
      dx[i] = x[i] == y ? dy[i] / equal : Real{0};
  });
};

/// dX = dY * product of the other elements, right also where elements are zero.
constexpr auto kReducedProductGrad = []<class Real>(KernelContext<Real>& context) {
  context.for_each_group([](auto& group) {
    const std::span<const Real> x = group.in(1);
    const auto dy = group.in(0).first(x.size());
    const auto dx = group.out(0).first(x.size());
    Real before = 1;
    for (std::size_t i = 0; i < x.size(); ++i) {
      dx[i] = dy[i] * before;
      before *= x[i];
    }
    Real after = 1;
    for (std::size_t i = x.size(); i-- > 0;) {
      dx[i] *= after;
      after *= x[i];
    }
  });
};

} // namespace

KernelTable reduction_kernels() {
  static constexpr KernelEntry kEntries[]{
      kernel("", ops::ArgMax, kArgument<true>),
      kernel("", ops::ArgMin, kArgument<false>),
      kernel("", ops::CumSum, kRunningSum),
      reduction(ops::ReduceL1,
                [](auto row) { return sum_of(row, [](auto x) { return std::abs(x); }); }),
      reduction(ops::ReduceL2,
                [](auto row) { return std::sqrt(sum_of(row, [](auto x) { return x * x; })); }),
      reduction(ops::ReduceLogSum, [](auto row) { return std::log(sum_of(row)); }),
      reduction(ops::ReduceLogSumExp, [](auto row) { return log_sum_exp(row); }),
      reduction(ops::ReduceMax, [](auto row) { return *std::ranges::max_element(row); }),
      reduction(
          ops::ReduceMean,
          [](auto row) { return sum_of(row) / static_cast<decltype(sum_of(row))>(row.size()); }),
      reduction(ops::ReduceMin, [](auto row) { return *std::ranges::min_element(row); }),
      reduction(ops::ReduceProd, [](auto row) { return product_of(row); }),
      reduction(ops::ReduceSum, [](auto row) { return sum_of(row); }),
      reduction(ops::ReduceSumSquare,
                [](auto row) { return sum_of(row, [](auto x) { return x * x; }); }),
      kernel(kMonetDomain, ops::ReduceExtremumGrad, kExtremumGrad),
      kernel(kMonetDomain, ops::ReduceProdGrad, kReducedProductGrad),
      own(ops::ReduceL1Grad, [](auto dy, auto x) { return x > 0   ? dy
                                                          : x < 0 ? -dy
                                                                  : 0; }),
      own(ops::ReduceL2Grad, [](auto dy, auto x, auto y) { return y == 0 ? 0 : dy * x / y; }),
      own(ops::ReduceLogSumExpGrad, [](auto dy, auto x, auto y) { return dy * std::exp(x - y); }),
      own(ops::ReduceSumSquareGrad, [](auto dy, auto x) { return dy * 2 * x; }),
  };
  return kEntries;
}

} // namespace monet
