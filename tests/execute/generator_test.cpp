// Figures computed with an independent implementation of FNV-1a and splitmix64.
#include "monet/execute/generator.hpp"

#include <gtest/gtest.h>

namespace monet {
namespace {

TEST(NumberGenerator, EqualsAnIndependentImplementation) {
  const NumberGenerator empty("", 0); // key = the FNV-1a offset basis
  EXPECT_EQ(empty.raw(0), 14087677454934409008U);
  EXPECT_EQ(empty.raw(1), 1156539639830188822U);
  const NumberGenerator named("conv1.weight", 7);
  EXPECT_EQ(named.raw(0), 13915842516955948429U);
  EXPECT_EQ(named.raw(41), 12981170097131011576U);
}

TEST(NumberGenerator, StaysInItsRanges) {
  const NumberGenerator numbers("x", 3);
  double sum = 0.0;
  for (std::uint64_t i = 0; i < 10000; ++i) {
    EXPECT_GE(numbers.uniform(i), -1.0);
    EXPECT_LT(numbers.uniform(i), 1.0);
    EXPECT_DOUBLE_EQ(numbers.uniform(i), 2.0 * numbers.fraction(i) - 1.0);
    EXPECT_GE(numbers.index(i, 7), 0);
    EXPECT_LT(numbers.index(i, 7), 7);
    sum += numbers.uniform(i);
  }
  EXPECT_NEAR(sum / 10000, 0.0, 0.03);
}

} // namespace
} // namespace monet
