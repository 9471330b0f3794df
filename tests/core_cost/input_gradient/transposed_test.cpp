// Rewriting scatters, against the products that they stand for.
#include "core_cost/cores.hpp"
#include "core_cost/input_gradient/transposed.hpp"

#include "monet/workload/loop_nest.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <functional>
#include <numeric>
#include <set>
#include <vector>

namespace monet::core_cost_detail {
namespace {

using test::axis;
using Index = std::vector<std::int64_t>;
using Product = std::vector<Index>; ///< indices into dX, dY, W

/// One axis of a convolution whose dX is asked for.
struct Axis {
  std::int64_t positions = 1, taps = 1, stride = 1, dilation = 1, offset = 0, extent = 1;
};

/// dX[b, g, x...] += dY[b, g, k, o...] * W[g, k, f...], loops B G K, then (O, F) per axis.
CoreProblem scatter(const std::vector<Axis>& axes, std::int64_t channels = 1,
                    std::int64_t groups = 1) {
  CoreProblem problem;
  problem.dims = {{"B", 2}, {"G", groups}, {"K", channels}};
  ProblemOperand x{AccessMode::accumulate,
                   MemoryOperand::O,
                   {axis({{0, 1}}), axis({{1, 1}})},
                   {2, groups},
                   8,
                   16};
  ProblemOperand y{AccessMode::read,
                   MemoryOperand::I1,
                   {axis({{0, 1}}), axis({{1, 1}}), axis({{2, 1}})},
                   {2, groups, channels},
                   8,
                   8};
  ProblemOperand w{AccessMode::read,
                   MemoryOperand::I2,
                   {axis({{1, 1}}), axis({{2, 1}})},
                   {groups, channels},
                   8,
                   8};
  for (const Axis& a : axes) {
    const auto o = static_cast<std::uint32_t>(problem.dims.size());
    problem.dims.push_back({"O" + std::to_string(o), a.positions});
    problem.dims.push_back({"F" + std::to_string(o), a.taps});
    x.axes.push_back(axis({{o, a.stride}, {o + 1, a.dilation}}, a.offset));
    x.extents.push_back(a.extent);
    y.axes.push_back(axis({{o, 1}}));
    y.extents.push_back(a.positions);
    w.axes.push_back(axis({{o + 1, 1}}));
    w.extents.push_back(a.taps);
  }
  problem.operands = {x, y, w};
  return problem;
}

std::int64_t iterations(const CoreProblem& problem) {
  std::int64_t product = 1;
  for (const LoopDim& dim : problem.dims)
    product *= dim.size;
  return product;
}

/// Every product inside the operands' extents, by brute force.
void for_each_product(const CoreProblem& problem, const std::function<void(Product)>& visit) {
  for (std::int64_t i = 0; i < iterations(problem); ++i) {
    Index at;
    std::int64_t rest = i;
    for (const LoopDim& dim : problem.dims) {
      at.push_back(rest % dim.size);
      rest /= dim.size;
    }
    Product product;
    bool inside = true;
    for (const ProblemOperand& operand : problem.operands) {
      Index& index = product.emplace_back();
      for (std::size_t a = 0; a < operand.axes.size(); ++a) {
        std::int64_t value = operand.axes[a].offset;
        for (const AffineTerm& term : operand.axes[a].terms)
          value += term.coefficient * at[term.dim];
        inside = inside && value >= 0 && value < operand.extents[a];
        index.push_back(value);
      }
    }
    if (inside)
      visit(product);
  }
}

using Products = std::multiset<Product>;

Products products_of(const CoreProblem& problem) {
  Products products;
  for_each_product(problem, [&](Product p) { products.insert(std::move(p)); });
  return products;
}

/// The products of the zero-inserted form that are not with a zero, as indices of the original.
Products without_zeros(const CoreProblem& problem, const Transposed& t) {
  const CoreProblem gather = zero_inserted(problem, t);
  Products products;
  for_each_product(gather, [&](Product p) {
    for (const TransposedAxis& a : t.axes) {
      const AxisExpr& read = gather.operands[t.gradient].axes[a.gradient_axis];
      std::int64_t& y = p[t.gradient][a.gradient_axis];
      y += a.begin - a.offset - read.offset; // where the region begins in the expanded dY
      if (y % a.stride != 0)
        return;
      y /= a.stride;
      p[t.output][a.output_axis] += a.begin;
    }
    products.insert(std::move(p));
  });
  return products;
}

Products recomposed(const CoreProblem& problem, const Transposed& t) {
  Products products;
  for (const SubConvolution& sub : decompose(problem, t)) {
    for_each_product(sub.problem, [&](Product p) {
      for (std::size_t i = 0; i < t.axes.size(); ++i) {
        const TransposedAxis& a = t.axes[i];
        std::int64_t& x = p[t.output][a.output_axis];
        std::int64_t& w = p[t.weight][a.weight_axis];
        x = sub.axes[i].first_output + a.stride * x;
        w = sub.axes[i].first_tap + sub.axes[i].tap_step * w;
        p[t.gradient][a.gradient_axis] += sub.axes[i].first_gradient;
      }
      products.insert(std::move(p));
    });
  }
  return products;
}

/// An axis on which some product stays inside dX.
Axis any_axis(std::int64_t most = 5) {
  const auto number = [](std::int64_t low, std::int64_t high) {
    return *rc::gen::resize(100, rc::gen::inRange<std::int64_t>(low, high + 1));
  };
  Axis a{number(2, most), number(1, std::min<std::int64_t>(most, 4)), number(1, 4), number(1, 4)};
  if (a.stride == 1)
    a.taps = std::max<std::int64_t>(2, a.taps);
  const std::int64_t span = a.stride * (a.positions - 1) + a.dilation * (a.taps - 1);
  a.offset = number(-std::min<std::int64_t>(4, span), 2);
  a.extent = std::max<std::int64_t>(0, a.offset) + number(1, span + 4);
  return a;
}

RC_GTEST_PROP(Transposed, AllFormsExecuteTheSameProducts, ()) {
  std::vector<Axis> axes(*rc::gen::inRange<std::size_t>(1, 3));
  for (Axis& a : axes)
    a = any_axis();
  const CoreProblem problem =
      scatter(axes, *rc::gen::inRange<std::int64_t>(1, 3), *rc::gen::inRange<std::int64_t>(1, 3));
  const auto t = find_transposed(problem);
  RC_ASSERT(t.has_value());
  const Products wanted = products_of(problem);
  RC_ASSERT(without_zeros(problem, *t) == wanted);
  RC_ASSERT(recomposed(problem, *t) == wanted);
}

RC_GTEST_PROP(Transposed, ThreeAxesDecomposeAlike, ()) {
  std::vector<Axis> axes(3);
  for (Axis& a : axes)
    a = any_axis(3);
  const CoreProblem problem = scatter(axes);
  const auto t = find_transposed(problem);
  RC_ASSERT(t.has_value());
  RC_ASSERT(recomposed(problem, *t) == products_of(problem));
}

// Zero insertion: every element of dX times every tap. Decomposed: every tap times the elements of
// dX of its class.
RC_GTEST_PROP(Transposed, MacsFollowTheClosedForm, ()) {
  const Axis a = any_axis();
  const CoreProblem problem = scatter({a});
  const auto t = find_transposed(problem);
  RC_ASSERT(t.has_value());
  const TransposedAxis& found = t->axes[0];
  RC_ASSERT(iterations(zero_inserted(problem, *t)) == 2 * (found.end - found.begin) * a.taps);
  std::int64_t wanted = 0;
  for (std::int64_t f = 0; f < a.taps; ++f) {
    for (std::int64_t x = found.begin; x < found.end; ++x)
      wanted += (x - a.offset - a.dilation * f) % a.stride == 0 ? 2 : 0;
  }
  std::int64_t executed = 0;
  for (const SubConvolution& sub : decompose(problem, *t))
    executed += iterations(sub.problem);
  RC_ASSERT(executed <= wanted);
  RC_ASSERT(executed >= static_cast<std::int64_t>(products_of(problem).size()));
}

// 3x3, stride 2, padding 1, dY 4x4, dX 8x8 of which 7 + 1 are reached: classes of 2x2, 2x1, 1x2 and
// 1x1 taps, 16 elements each.
TEST(Transposed, StrideTwoHasFourClasses) {
  const Axis a{4, 3, 2, 1, -1, 8};
  const CoreProblem problem = scatter({a, a});
  const auto t = find_transposed(problem);
  ASSERT_TRUE(t.has_value());
  EXPECT_TRUE(t->strided);
  const auto subs = decompose(problem, *t);
  ASSERT_EQ(subs.size(), 4U);
  std::int64_t macs = 0;
  for (const SubConvolution& sub : subs) {
    EXPECT_EQ(sub.problem.operands[0].mode, AccessMode::write);
    EXPECT_EQ(sub.problem.operands[0].extents, (std::vector<std::int64_t>{2, 1, 4, 4}));
    macs += iterations(sub.problem);
  }
  EXPECT_EQ(macs, 2 * 16 * 9);
  EXPECT_EQ(iterations(problem), 2 * 16 * 9);
  EXPECT_EQ(iterations(zero_inserted(problem, *t)), 2 * 64 * 9);
  EXPECT_EQ(subs[0].problem.dims[4].size, 1); // dX 0, 2, 4, 6: the middle tap
  EXPECT_EQ(subs[3].problem.dims[4].size, 2); // dX 1, 3, 5, 7: the outer ones
}

// A stride beyond the kernel leaves classes without a tap: nothing is done for them.
TEST(Transposed, ClassesWithoutTapsAreLeftOut) {
  const CoreProblem problem = scatter({{5, 1, 3, 1, 0, 15}});
  const auto t = find_transposed(problem);
  ASSERT_TRUE(t.has_value());
  const auto subs = decompose(problem, *t);
  ASSERT_EQ(subs.size(), 1U);
  EXPECT_EQ(iterations(subs[0].problem), iterations(problem));
}

TEST(Transposed, WithoutStrideBothFormsAreTheSameGather) {
  const CoreProblem problem = scatter({{6, 3, 1, 2, -2, 6}});
  const auto t = find_transposed(problem);
  ASSERT_TRUE(t.has_value());
  EXPECT_FALSE(t->strided);
  const auto subs = decompose(problem, *t);
  ASSERT_EQ(subs.size(), 1U);
  EXPECT_EQ(subs[0].problem, zero_inserted(problem, *t));
}

TEST(Transposed, OthersAreLeftAsTheyAre) {
  EXPECT_FALSE(find_transposed(test::product(4, 4, 4)));
  const test::ConvSizes sizes{.ox = 4, .oy = 4, .fx = 3, .fy = 3, .ix = 6, .iy = 6};
  EXPECT_FALSE(find_transposed(test::convolution(sizes, test::ConvProduct::forward)));
  EXPECT_FALSE(find_transposed(test::convolution(sizes, test::ConvProduct::weight_gradient)));
  EXPECT_TRUE(find_transposed(test::convolution(sizes, test::ConvProduct::input_gradient)));
  CoreProblem diagonal = scatter({{4, 3, 2, 1, 0, 9}});
  diagonal.operands[1].axes[2] = axis({{3, 1}}); // the position loop on two axes of dY
  EXPECT_FALSE(find_transposed(diagonal));
  CoreProblem three = scatter({{4, 3, 2, 1, 0, 9}});
  three.operands[0].axes[2].terms.insert(three.operands[0].axes[2].terms.begin(), {2, 1});
  EXPECT_FALSE(find_transposed(three));
}

TEST(Transposed, TooManyClassesAreNotDecomposed) {
  const CoreProblem problem = scatter({{2, 5000, 5000, 1, 0, 10000}});
  const auto t = find_transposed(problem);
  ASSERT_TRUE(t.has_value());
  EXPECT_TRUE(decompose(problem, *t).empty());
}

} // namespace
} // namespace monet::core_cost_detail
