// Walks over nests block by block and row by row, against a loop over every iteration: the same
// bits, for sums add up in the order of the loops.
#include "base/shared/rng.hpp"
#include "execute/walk/context.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace monet {
namespace MONET_TEST_FILE {

using Numbers = std::vector<float>;

/// An operator over random loops: two inputs, of which the second may hold integers, and an output.
struct RandomWalk {
  explicit RandomWalk(std::uint64_t seed) : random(seed) {
    op.name = "walk";
    const std::size_t loops = 1 + random.below(4);
    for (std::size_t d = 0; d < loops; ++d)
      op.nest.dims.push_back({"L" + std::to_string(d), size_of_loop(d + 1 == loops)});
    op.outputs = {add(AccessMode::write, false)};
    op.inputs = {add(AccessMode::read, false), add(AccessMode::read, random.chance(0.2))};
    for (std::size_t d = 0; d < loops; ++d)
      sizes.push_back(op.nest.dims[d].size);
  }

  std::int64_t size_of_loop(bool is_last) {
    return 1 + static_cast<std::int64_t>(random.below(is_last && random.chance(0.3) ? 700 : 6));
  }

  /// A tensor with an axis for some of the loops, in any order: padded, strided or behind an
  /// offset, now and then.
  TensorId add(AccessMode mode, bool integers) {
    Access access;
    Tensor tensor;
    tensor.name = "t" + std::to_string(op.nest.operands.size());
    tensor.type = integers ? ElementType::int64 : ElementType::fp32;
    for (std::size_t d = 0; d < op.nest.dims.size(); ++d) {
      if (random.chance(0.25))
        continue;
      const std::int64_t coefficient = random.chance(0.1) ? 2 : 1;
      const std::int64_t offset = random.chance(0.1) ? 1 : random.chance(0.1) ? -1 : 0;
      const std::size_t at =
          random.chance(0.7) ? access.axes.size() : random.below(access.axes.size() + 1);
      const auto place = static_cast<std::ptrdiff_t>(at);
      AxisExpr axis;
      axis.terms = {{static_cast<std::uint32_t>(d), coefficient}};
      axis.offset = offset;
      access.axes.insert(access.axes.begin() + place, axis);
      const std::int64_t reach = coefficient * (op.nest.dims[d].size - 1) + offset + 1;
      tensor.shape.insert(tensor.shape.begin() + place,
                          std::max<std::int64_t>(1, reach - (random.chance(0.1) ? 1 : 0)));
    }
    access.tensor = graph.add_tensor(std::move(tensor));
    access.mode = mode;
    op.nest.operands.push_back(access);
    return access.tensor;
  }

  TensorStore<float> filled() {
    TensorStore<float> store(graph);
    for (std::size_t i = 0; i < 3; ++i) {
      auto& numbers = store.allocate(TensorId(i));
      std::uint64_t counter = 0;
      for (float& number : numbers.real) // of outputs zeros
        number = i == 0 ? 0.0F : static_cast<float>(random_unit(i, counter++) - 0.5);
      for (std::int64_t& number : numbers.whole)
        number = static_cast<std::int64_t>(random_bits(i, counter++) % 9);
    }
    return store;
  }

  static float read(const TensorStore<float>& store, TensorId id, const OperandMap& map,
                    std::span<const std::int64_t> point) {
    const auto element = map.at(point);
    if (!element)
      return 0;
    const auto at = static_cast<std::size_t>(*element);
    return store[id].real.empty() ? static_cast<float>(store[id].whole[at]) : store[id].real[at];
  }

  RandomStream random;
  Graph graph;
  Operator op;
  std::vector<std::int64_t> sizes;
};

float function(float a, float b) {
  return a * 1.25F + b / 3.0F - a * b;
}

/// Whether some loops move nothing of the output.
bool is_summed(const RandomWalk& walk, const OperandMap& out, const std::vector<bool>& loops) {
  for (std::size_t d = 0; d < walk.sizes.size(); ++d) {
    if (loops[d] && walk.sizes[d] > 1 && out.strides[d] == 0)
      return true;
  }
  return false;
}

TEST(Walks, BlocksEqualEveryIteration) {
  int long_ones = 0, sums = 0, padded = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    RandomWalk walk(seed);
    TensorStore<float> store = walk.filled(), plain = walk.filled(), dynamic = walk.filled();
    KernelContext<float> context(store, walk.op, {}), again(dynamic, walk.op, {});
    const OperandMap out = context.map_of(0), a = context.map_of(1), b = context.map_of(2);
    const bool summed = is_summed(walk, out, std::vector<bool>(walk.sizes.size(), true));
    std::vector<std::int64_t> point(walk.sizes.size(), 0);
    Numbers& expected = plain[TensorId(0)].real;
    do {
      const float made = function(RandomWalk::read(plain, TensorId(1), a, point),
                                  RandomWalk::read(plain, TensorId(2), b, point));
      if (const auto element = out.at(point)) {
        float& target = expected[static_cast<std::size_t>(*element)];
        target = summed ? target + made : made;
      }
    } while (next_point(point, walk.sizes));
    context.map([](float x, float y) { return function(x, y); });
    again.for_each_iteration(
        [](std::span<const float> v, std::span<float> y) { y[0] = function(v[0], v[1]); });
    ASSERT_EQ(store[TensorId(0)].real, expected) << "seed " << seed;
    ASSERT_EQ(dynamic[TensorId(0)].real, expected) << "seed " << seed;
    long_ones += expected.size() > 2 * kIterationBlock ? 1 : 0;
    sums += summed ? 1 : 0;
    padded += a.bounds.empty() && b.bounds.empty() && out.bounds.empty() ? 0 : 1;
  }
  EXPECT_GT(long_ones, 100);
  EXPECT_GT(sums, 500);
  EXPECT_GT(padded, 300);
}

TEST(Walks, RowsEqualEveryIteration) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    RandomWalk walk(seed);
    std::vector<bool> inner, outer;
    for (std::size_t d = 0; d < walk.sizes.size(); ++d) {
      inner.push_back(walk.random.chance(0.5));
      outer.push_back(!inner.back());
    }
    TensorStore<float> store = walk.filled(), plain = walk.filled();
    KernelContext<float> context(store, walk.op, {});
    const OperandMap out = context.map_of(0), a = context.map_of(1), b = context.map_of(2);
    std::vector<std::int64_t> inner_sizes, outer_sizes;
    bool full = false;
    for (std::size_t d = 0; d < walk.sizes.size(); ++d) {
      inner_sizes.push_back(inner[d] ? walk.sizes[d] : 1);
      outer_sizes.push_back(inner[d] ? 1 : walk.sizes[d]);
      full = full || (inner[d] && walk.sizes[d] > 1 && out.strides[d] != 0);
    }
    const bool summed = is_summed(walk, out, outer);
    Numbers& expected = plain[TensorId(0)].real;
    std::vector<std::int64_t> at(walk.sizes.size(), 0);
    do { // rows one after another; of a row's elements the last one stays
      std::vector<std::int64_t> place(walk.sizes.size(), 0);
      do {
        std::vector<std::int64_t> point = at;
        for (std::size_t d = 0; d < point.size(); ++d)
          point[d] += place[d];
        const float made = function(RandomWalk::read(plain, TensorId(1), a, point),
                                    RandomWalk::read(plain, TensorId(2), b, point)) +
                           0.0F;
        if (const auto element = out.at(point)) {
          float& target = expected[static_cast<std::size_t>(*element)];
          target = summed ? target + made : made;
        }
      } while (full && next_point(place, inner_sizes));
    } while (next_point(at, outer_sizes));
    context.for_each_group(inner, [&](auto& group) {
      for (std::size_t i = 0; i < group.out(0).size(); ++i)
        group.out(0)[i] = function(group.in(0)[i], group.in(1)[i]);
      const auto address = group.address(0);
      for (std::size_t i = 0; i < group.size(); ++i) {
        const float number =
            address[i] < 0 ? 0 : plain[TensorId(1)].real[static_cast<std::size_t>(address[i])];
        ASSERT_EQ(group.in(0)[i], number) << "seed " << seed;
      }
    });
    ASSERT_EQ(store[TensorId(0)].real, expected) << "seed " << seed;
  }
}

} // namespace MONET_TEST_FILE
} // namespace monet
