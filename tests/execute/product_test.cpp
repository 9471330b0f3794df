// The fast product against a loop over every iteration, on random nests with padding, strides,
// reductions and batch loops.
#include "base/shared/rng.hpp"
#include "execute/walk/operand.hpp"
#include "execute/walk/product.hpp"
#include "execute/walk/product_plan.hpp"
#include "numerics/shared/exact_sum.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

namespace monet {
namespace {

using Shape = std::vector<std::int64_t>;

struct Rng {
  std::uint64_t seed;
  std::uint64_t counter = 0;
  std::size_t below(std::size_t n) { return random_bits(seed, counter++) % n; }
};

struct Case {
  Graph graph;
  LoopNest nest;
  std::array<std::vector<double>, 3> numbers;
};

/// Every axis is a random expression of one or two loops; the tensor may be smaller than what the
/// expression reaches (padding on both sides).
Case random_case(Rng& rng) {
  Case made;
  const std::size_t loops = 1 + rng.below(5);
  for (std::size_t d = 0; d < loops; ++d)
    made.nest.dims.push_back(
        {"L" + std::to_string(d), 1 + static_cast<std::int64_t>(rng.below(7))});
  for (std::size_t k = 0; k < 3; ++k) {
    Access access;
    Shape shape;
    const std::size_t rank = rng.below(4);
    for (std::size_t i = 0; i < rank; ++i) {
      AxisExpr axis;
      const std::size_t first = rng.below(loops);
      axis.terms.push_back({static_cast<std::uint32_t>(first), 1});
      if (first + 1 < loops && rng.below(3) == 0) {
        axis.terms[0].coefficient = 1 + static_cast<std::int64_t>(rng.below(2));
        axis.terms.push_back({static_cast<std::uint32_t>(first + 1), 1});
      }
      std::int64_t reach = 0;
      for (const AffineTerm& term : axis.terms)
        reach += term.coefficient * (made.nest.dims[term.dim].size - 1);
      axis.offset = rng.below(3) == 0 ? -1 : 0;
      shape.push_back(std::max<std::int64_t>(1, reach + (rng.below(3) == 0 ? 0 : 1)));
      access.axes.push_back(axis);
    }
    Tensor tensor;
    tensor.name = std::string(1, static_cast<char>('a' + k));
    tensor.shape = shape;
    access.tensor = made.graph.add_tensor(tensor);
    access.mode = k == 0 ? AccessMode::accumulate : AccessMode::read;
    made.nest.operands.push_back(access);
    std::int64_t count = 1;
    for (const std::int64_t n : shape)
      count *= n;
    for (std::int64_t i = 0; i < count; ++i)
      made.numbers[k].push_back(k == 0 ? 0.0 : static_cast<double>(rng.below(17)) - 8.0);
  }
  return made;
}

/// f(element of the result, factors) at every iteration that none of the three pads.
void for_each_product(const Case& c, const std::function<void(std::size_t, double, double)>& f) {
  std::array<OperandMap, 3> maps;
  Shape sizes;
  for (const LoopDim& dim : c.nest.dims)
    sizes.push_back(dim.size);
  for (std::size_t k = 0; k < 3; ++k) {
    const auto& shape = c.graph.tensor(c.nest.operands[k].tensor).shape;
    maps[k] = map_operand(c.nest, c.nest.operands[k], shape, strides_of(shape));
  }
  Shape point(sizes.size(), 0);
  do {
    const auto o = maps[0].at(point), a = maps[1].at(point), b = maps[2].at(point);
    if (o && a && b)
      f(static_cast<std::size_t>(*o), c.numbers[1][static_cast<std::size_t>(*a)],
        c.numbers[2][static_cast<std::size_t>(*b)]);
  } while (next_point(point, sizes));
}

std::vector<double> one_by_one(const Case& c) {
  std::vector<double> out = c.numbers[0];
  for_each_product(c, [&](std::size_t o, double a, double b) { out[o] += a * b; });
  return out;
}

TEST(Product, EqualsTheSumOverEveryIteration) {
  Rng rng{11};
  std::size_t nonzero = 0;
  for (int i = 0; i < 5000; ++i) {
    Case c = random_case(rng);
    const std::vector<double> expected = one_by_one(c);
    multiply_accumulate<double>(c.graph, c.nest, c.numbers[0], c.numbers[1], c.numbers[2]);
    ASSERT_EQ(c.numbers[0], expected) << "case " << i; // small integers: exact in any order
    nonzero += std::any_of(expected.begin(), expected.end(), [](double v) { return v != 0; });
  }
  EXPECT_GT(nonzero, 3000U);
}

/// The unit at every iteration: outer loops, rows and reduced ones as the plan has them.
std::vector<float> unit_by_unit(const Case& c, const Mac& unit) {
  const ProductPlan plan = plan_product(c.graph, c.nest);
  std::vector<std::size_t> order = plan.outer;
  for (const auto& loop : {plan.row, plan.reduced, plan.vector}) {
    if (loop)
      order.push_back(*loop);
  }
  for (std::size_t d = 0; d < c.nest.dims.size(); ++d) { // loops of one iteration
    if (std::find(order.begin(), order.end(), d) == order.end())
      order.push_back(d);
  }
  Shape sizes;
  for (const std::size_t d : order)
    sizes.push_back(c.nest.dims[d].size);
  std::array<OperandMap, 3> maps;
  for (std::size_t k = 0; k < 3; ++k) {
    const auto& shape = c.graph.tensor(c.nest.operands[k].tensor).shape;
    maps[k] = map_operand(c.nest, c.nest.operands[k], shape, strides_of(shape));
  }
  std::vector<double> out = c.numbers[0];
  std::vector<ExactSum> chunks(out.size());
  Shape at(order.size(), 0);
  Shape point(order.size(), 0);
  const std::size_t reduced = plan.outer.size() + (plan.row ? 1 : 0);
  do {
    for (std::size_t i = 0; i < order.size(); ++i)
      point[order[i]] = at[i];
    const auto o = maps[0].at(point), a = maps[1].at(point), b = maps[2].at(point);
    if (!o || !a || !b)
      continue;
    const auto index = static_cast<std::size_t>(*o);
    const double p = mac_product(unit, c.numbers[1][static_cast<std::size_t>(*a)],
                                 c.numbers[2][static_cast<std::size_t>(*b)]);
    if (unit.lanes == 1) {
      out[index] = mac_sum(unit, out[index], p);
      continue;
    }
    chunks[index].add(p);
    const std::int64_t k = plan.reduced ? at[reduced] : 0;
    if ((k + 1) % unit.lanes == 0 || k + 1 == plan.reduced_size) {
      chunks[index].add(out[index]);
      out[index] = round_to(*unit.sum, chunks[index].odd());
      chunks[index] = ExactSum();
    }
  } while (next_point(at, sizes));
  return {out.begin(), out.end()};
}

Mac unit_of(const char* product, const char* sum) {
  Mac unit;
  unit.product = *parse_number_format(product);
  unit.sum = parse_number_format(sum);
  return unit;
}

TEST(EmulatedProduct, EqualsTheUnitAtEveryIterationOnAnyThreads) {
  Rng rng{12};
  const std::array units{unit_of("e5m2", "e6m5"), unit_of("q4.4", "q4.4"), unit_of("e4m3", "bf16"),
                         unit_of("e5m2", "e3m2")};
  std::size_t nonzero = 0;
  for (int i = 0; i < 3000; ++i) {
    const Case c = random_case(rng);
    const Mac& unit = units[static_cast<std::size_t>(i) % units.size()];
    const std::vector<float> expected = unit_by_unit(c, unit);
    const std::vector<float> left(c.numbers[1].begin(), c.numbers[1].end());
    const std::vector<float> right(c.numbers[2].begin(), c.numbers[2].end());
    for (const int jobs : {1, 3}) {
      std::vector<float> found(c.numbers[0].begin(), c.numbers[0].end());
      emulate_product(c.graph, c.nest, found, left, right, {unit, jobs});
      ASSERT_EQ(found.size(), expected.size());
      for (std::size_t k = 0; k < found.size(); ++k)
        ASSERT_TRUE(found[k] == expected[k] || (std::isnan(found[k]) && std::isnan(expected[k])))
            << "case " << i << " " << jobs << ": " << found[k] << " for " << expected[k];
    }
    nonzero += std::any_of(expected.begin(), expected.end(), [](float v) { return v != 0; });
  }
  EXPECT_GT(nonzero, 1500U);
}

TEST(EmulatedProduct, TakesInfiniteOperandsOfVariantsWithoutNaN) {
  constexpr std::array kSums{"q8.8", "e6m5", "fp32", "q4.4", "e9m20"};
  Rng rng{15};
  std::size_t infinite = 0;
  for (int i = 0; i < 1500; ++i) {
    Mac unit = unit_of("e5m2", kSums[static_cast<std::size_t>(i) % kSums.size()]);
    unit.multiplier = static_cast<Multiplier>(5 + i % 3);
    Case c = random_case(rng);
    for (std::size_t k = 1; k < 3; ++k)
      c.numbers[k][rng.below(c.numbers[k].size())] *= -std::numeric_limits<double>::infinity();
    for (double& x : c.numbers[1])
      x = std::isnan(x) ? 0 : x;
    for (double& x : c.numbers[2])
      x = std::isnan(x) ? 0 : x;
    const std::vector<float> expected = unit_by_unit(c, unit);
    std::vector<float> found(c.numbers[0].begin(), c.numbers[0].end());
    emulate_product(c.graph, c.nest, found, {c.numbers[1].begin(), c.numbers[1].end()},
                    {c.numbers[2].begin(), c.numbers[2].end()}, {unit, 2});
    for (std::size_t k = 0; k < found.size(); ++k) { // infinity times 0 is 0
      ASSERT_TRUE(found[k] == expected[k] || (std::isnan(found[k]) && std::isnan(expected[k])))
          << "case " << i << ": " << found[k] << " for " << expected[k];
      infinite += std::isinf(found[k]) ? 1 : 0;
    }
  }
  EXPECT_GT(infinite, 100U);
}

/// Chunks in the plan's reduced loop, also where both factors have the vector loop.
TEST(EmulatedProduct, AddsChunksExactly) {
  Rng rng{17};
  for (int i = 0; i < 1500; ++i) {
    Mac unit = unit_of("e5m2", i % 2 == 0 ? "e4m2" : "e9m2");
    unit.multiplier = Multiplier::exact;
    unit.lanes = 1 + i % 4;
    const Case c = random_case(rng);
    std::vector<float> found(c.numbers[0].begin(), c.numbers[0].end());
    emulate_product(c.graph, c.nest, found, {c.numbers[1].begin(), c.numbers[1].end()},
                    {c.numbers[2].begin(), c.numbers[2].end()}, {unit, 2});
    ASSERT_EQ(found, unit_by_unit(c, unit)) << "case " << i;
  }
}

/// Whole numbers times 2^-40, 1 or 2^40: whole numbers of 128 bits, in units of 2^-40, hold any
/// sum.
TEST(EmulatedProduct, HoldsSumsOfAnyWidth) {
  __extension__ using Wide = __int128;
  Rng rng{18};
  Mac unit;
  unit.multiplier = Multiplier::exact;
  for (int i = 0; i < 1000; ++i) {
    Case c = random_case(rng);
    for (double& x : c.numbers[1])
      x = std::ldexp(x, 40 * (static_cast<int>(rng.below(3)) - 1));
    std::vector<float> found(c.numbers[0].begin(), c.numbers[0].end());
    emulate_product(c.graph, c.nest, found, {c.numbers[1].begin(), c.numbers[1].end()},
                    {c.numbers[2].begin(), c.numbers[2].end()}, {unit, 2});
    std::vector<Wide> sums(found.size(), 0);
    for_each_product(c, [&](std::size_t o, double a, double b) {
      const double scaled = std::ldexp(a, 40);
      const int exponent = scaled == 0 ? 0 : std::max(std::ilogb(scaled) - 50, 0);
      sums[o] += static_cast<Wide>(std::ldexp(scaled, -exponent)) * (Wide{1} << exponent) *
                 static_cast<Wide>(b);
    });
    for (std::size_t k = 0; k < found.size(); ++k)
      ASSERT_EQ(found[k], std::ldexp(static_cast<float>(sums[k]), -40)) << i;
  }
}

TEST(EmulatedProduct, ConvertsOperandsAsIfTheTensorsWereRounded) {
  Rng rng{16};
  Mac unit = unit_of("e5m2", "e6m5");
  const NumberFormat format = floating_format(5, 2);
  for (int i = 0; i < 400; ++i) {
    Case c = random_case(rng);
    unit.multiplier = static_cast<Multiplier>(i % 8);
    std::array<std::vector<float>, 2> plain, rounded;
    for (std::size_t k = 0; k < 2; ++k) {
      for (const double x : c.numbers[k + 1]) {
        plain[k].push_back(static_cast<float>(std::sin(x) * std::exp2(x)));
        rounded[k].push_back(
            static_cast<float>(round_to(format, static_cast<double>(plain[k].back()))));
      }
    }
    const auto run = [&](const std::array<std::vector<float>, 2>& operands) {
      std::vector<float> found(c.numbers[0].begin(), c.numbers[0].end());
      emulate_product(c.graph, c.nest, found, operands[0], operands[1], {unit, 2});
      return found;
    };
    unit.operands.reset();
    const std::vector<float> expected = run(rounded);
    unit.operands = format;
    ASSERT_EQ(run(plain), expected) << i;
  }
}

TEST(Product, IsTheSameOnAnyThreads) {
  Rng rng{13};
  for (int i = 0; i < 1000; ++i) {
    Case c = random_case(rng);
    for (std::size_t k = 1; k < 3; ++k) {
      for (double& x : c.numbers[k])
        x = std::sin(x + 0.1 * static_cast<double>(rng.below(100)));
    }
    std::vector<double> one = c.numbers[0];
    std::vector<double> three = c.numbers[0];
    multiply_accumulate<double>(c.graph, c.nest, one, c.numbers[1], c.numbers[2], 1);
    multiply_accumulate<double>(c.graph, c.nest, three, c.numbers[1], c.numbers[2], 3);
    ASSERT_EQ(one, three) << "case " << i;
  }
}

TEST(EmulatedProduct, DrawsRandomBitsByOutputAndStep) {
  Rng rng{14};
  Mac unit = unit_of("e5m2", "e4m2");
  unit.rounding.mode = RoundTo::stochastic;
  std::size_t different = 0;
  for (int i = 0; i < 200; ++i) {
    const Case c = random_case(rng);
    const std::vector<float> left(c.numbers[1].begin(), c.numbers[1].end());
    const std::vector<float> right(c.numbers[2].begin(), c.numbers[2].end());
    const auto run = [&](std::uint64_t seed, int jobs) {
      unit.rounding.seed = seed;
      std::vector<float> found(c.numbers[0].begin(), c.numbers[0].end());
      emulate_product(c.graph, c.nest, found, left, right, {unit, jobs});
      return found;
    };
    ASSERT_EQ(run(1, 1), run(1, 3)) << i;
    different += run(1, 1) != run(2, 1) ? 1 : 0;
  }
  EXPECT_GT(different, 30U);
}

} // namespace
} // namespace monet
