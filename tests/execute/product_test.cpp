// The fast product against a loop over every iteration, on random nests with padding, strides,
// reductions and batch loops.
#include "execute/walk/operand.hpp"
#include "execute/walk/product.hpp"

#include "monet/base/rng.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

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

std::vector<double> one_by_one(const Case& c) {
  std::array<OperandMap, 3> maps;
  Shape sizes;
  for (const LoopDim& dim : c.nest.dims)
    sizes.push_back(dim.size);
  for (std::size_t k = 0; k < 3; ++k) {
    const auto& shape = c.graph.tensor(c.nest.operands[k].tensor).shape;
    maps[k] = map_operand(c.nest, c.nest.operands[k], shape, strides_of(shape));
  }
  std::vector<double> out = c.numbers[0];
  Shape point(sizes.size(), 0);
  do {
    const auto o = maps[0].at(point), a = maps[1].at(point), b = maps[2].at(point);
    if (o && a && b)
      out[static_cast<std::size_t>(*o)] +=
          c.numbers[1][static_cast<std::size_t>(*a)] * c.numbers[2][static_cast<std::size_t>(*b)];
  } while (next_point(point, sizes));
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

} // namespace
} // namespace monet
