// What products multiply, by role, with scales and copies: figures of the microscaling papers.
#include "training_graph/read_options.hpp"
#include "training_graph/shared/operand_roles.hpp"
#include "training_graph/tiny_network.hpp"

#include <gtest/gtest.h>

#include <string>

namespace monet {
namespace {

/// x [64, 64] -> MatMul -> MatMul -> MatMul [64, 64]: the second one has both gradients.
std::array<RoleOperands, kOperandRoles> roles_in(const std::string& type, const std::string& more) {
  TinyNetwork n;
  TensorId x = n.input("x", {64, 64});
  for (const char* weight : {"w0", "w1", "w2"})
    x = n.op("MatMul", {x, n.parameter(weight, {64, 64})}, {64, 64});
  n.output(x);
  const TrainingGraph step = fold_views(
      make_training_graph(n.graph, read_options("{optimizer: sgd, precision: {weights: " + type +
                                                ", master_weights: fp32, activations: " + type +
                                                ", gradients: " + type + more + "}}")));
  return operand_roles(step, find_liveness(step));
}

const RoleOperands& of(const std::array<RoleOperands, kOperandRoles>& roles, OperandRole role) {
  return roles[static_cast<std::size_t>(role)];
}

struct Ratio {
  std::string type;
  double element_bits;
  double percent; ///< published: square blocks of 8 x 8 against two copies in vectors of 32
};

// 8 + 8/64 bits against 2 (8 + 8/32), and so on.
TEST(OperandRoles, SquaresTakeHalfOfTwoCopies) {
  for (const Ratio& ratio : {Ratio{"mxfp8_e4m3", 8, -50.8}, Ratio{"mxfp6_e2m3", 6, -51.0},
                             Ratio{"mxfp4_e2m1", 4, -51.5}}) {
    const auto vectors = roles_in(ratio.type, "");
    const auto squares = roles_in(ratio.type, ", blocks: {shape: 8x8}");
    constexpr double kElements = 64 * 64;
    // of the layer in the middle: both products of each operand are there
    for (const OperandRole role :
         {OperandRole::weights, OperandRole::activations, OperandRole::errors}) {
      ASSERT_EQ(of(vectors, role).operands.size(), 3U) << name_of(role);
      const ProductOperand& two = of(vectors, role).operands[1];
      const ProductOperand& one = of(squares, role).operands[1];
      EXPECT_EQ(two.forms.size(), 2U) << name_of(role);
      EXPECT_EQ(one.forms.size(), 1U) << name_of(role);
      const auto bits = [](const ProductOperand& operand) {
        return static_cast<double>((operand.elements + operand.scales).value);
      };
      EXPECT_EQ(bits(two), kElements * 2 * (ratio.element_bits + 8.0 / 32));
      EXPECT_EQ(bits(one), kElements * (ratio.element_bits + 8.0 / 64));
      EXPECT_NEAR(100 * (bits(one) / bits(two) - 1), ratio.percent, 0.05);
    }
  }
}

TEST(OperandRoles, CountCopiesReadsAndScales) {
  const auto roles = roles_in("mxfp8_e4m3", "");
  constexpr std::int64_t kOne = 64 * 64 * 8 + 64 * 64 / 32 * 8; // bits of a tensor
  // The first layer's input has no gradient: its weight and its error are read in one form.
  EXPECT_EQ(of(roles, OperandRole::weights).copies(), 2);
  EXPECT_EQ(of(roles, OperandRole::activations).copies(), 3);
  EXPECT_EQ(of(roles, OperandRole::errors).copies(), 2);
  EXPECT_EQ(of(roles, OperandRole::weights).size().value, 5 * kOne);
  EXPECT_EQ(of(roles, OperandRole::activations).size().value, 6 * kOne);
  EXPECT_EQ(of(roles, OperandRole::errors).size().value, 5 * kOne);
  EXPECT_EQ(of(roles, OperandRole::errors).largest.value, 2 * kOne);
  EXPECT_EQ(of(roles, OperandRole::weights).scales.value, 5 * 64 * 64 / 32 * 8);
  // three products forwards, two dX and three dW
  EXPECT_EQ(of(roles, OperandRole::weights).read.value, 5 * kOne);
  EXPECT_EQ(of(roles, OperandRole::activations).read.value, 6 * kOne);
  EXPECT_EQ(of(roles, OperandRole::errors).read.value, 5 * kOne);
  EXPECT_EQ(footprint(roles).value, (5 + 6 + 2) * kOne);
  std::int64_t live = 0;
  for (const RoleOperands& role : roles) {
    EXPECT_LE(role.peak_live, role.size());
    live += role.peak_live.value;
  }
  EXPECT_GT(live, 0);
}

TEST(OperandRoles, FullPrecisionHasNeitherScalesNorCopies) {
  const auto roles = roles_in("fp32", "");
  for (const RoleOperands& role : roles) {
    EXPECT_EQ(role.scales.value, 0);
    EXPECT_EQ(role.copies(), 0);
    EXPECT_EQ(role.size().value, 3 * 64 * 64 * 32);
  }
}

} // namespace
} // namespace monet
