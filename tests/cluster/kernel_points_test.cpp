// Kernel tables with points of attention, of passes of their own and of rows that are not aligned:
// by hand, and the H100's held out.
#include "monet/base/errors.hpp"
#include "monet/cluster/kernel_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace monet {
namespace {

KernelTable table_with(const std::string& more) {
  return parse_kernel_table("name: hand\npeak_tflops: {bf16: 1, fp32: 0.5}\nmemory_bytes: 1e9\n"
                            "memory_bandwidth_gb_per_s: 100\nkernel_launch_ns: 100\n" +
                                more,
                            "hand.yaml",
                            [](const std::string&, const SourceLoc& where) -> FileText {
                              throw InputError(where, "no files");
                            });
}

// 1,000 flops a nanosecond. Two products of 8 x 128 x 128 x 64 are 2 x 16,777 ns; causal ones half,
// backward ones five for two.
TEST(AttentionKernels, WithoutPointsTakeAsLongAsTheirProducts) {
  const KernelTable table = table_with("matmul: {}\n");
  const double product = 2.0 * 8 * 128 * 128 * 64 / 1000;
  AttentionShape shape{.heads = 8, .queries = 128, .keys = 128, .size = 64};
  EXPECT_DOUBLE_EQ(table.attention_ns(shape, KernelType::bf16), 100 + 2 * product);
  EXPECT_DOUBLE_EQ(table.attention_ns(shape, KernelType::fp32), 100 + 4 * product);
  shape.backward = true;
  EXPECT_DOUBLE_EQ(table.attention_ns(shape, KernelType::bf16), 100 + 5 * product);
  shape.causal = true;
  EXPECT_DOUBLE_EQ(table.attention_ns(shape, KernelType::bf16), 100 + 2.5 * product);
  // One query: keys and values of 64 numbers, read at 100 bytes a nanosecond, take longer.
  const AttentionShape one{.heads = 8, .queries = 1, .keys = 4096, .size = 64};
  EXPECT_DOUBLE_EQ(table.attention_ns(one, KernelType::bf16), 100 + 2.0 * 4097 * 8 * 64 * 2 / 100);
  // An exponential a score, as long as 64 operations: half as much as one product of 64 numbers.
  const KernelTable slow = table_with("matmul: {}\nattention: {exponential_flops: 64}\n");
  const AttentionShape plain{.heads = 8, .queries = 128, .keys = 128, .size = 64};
  EXPECT_DOUBLE_EQ(slow.attention_ns(plain, KernelType::bf16), 100 + 2.5 * product);
  // A library that reaches a quarter of the peak.
  const KernelTable quarter = table_with("matmul: {}\nattention: {share: 0.25}\n");
  EXPECT_DOUBLE_EQ(quarter.attention_ns(plain, KernelType::bf16), 100 + 8 * product);
  EXPECT_THROW(table.attention_ns(shape, KernelType::fp64), InfeasibleError);
  EXPECT_THROW(table.attention_ns({.heads = 0}, KernelType::bf16), InternalError);
}

TEST(AttentionKernels, EqualTheirPointsAndTakeThoseOfTheirDirection) {
  const KernelTable table = table_with(R"(
matmul: {}
attention:
  overhead_ns: 10
  points:
    - [8, 128, 64, yes, forward, bf16, 50110]
    - [8, 128, 64, no, forward, bf16, 90110]
    - [8, 128, 64, yes, backward, bf16, 200110]
)");
  AttentionShape shape{.heads = 8, .queries = 128, .keys = 128, .size = 64, .causal = true};
  EXPECT_NEAR(table.attention_ns(shape, KernelType::bf16), 50'100, 1e-6);
  KernelTable slow = table; // a library that reaches a thousandth of the peak
  slow.attention_share = 1e-3;
  EXPECT_NEAR(slow.attention_ns(shape, KernelType::bf16), 100 + 1e3 * 8 * 128 * 128 * 64 * 2 / 1e3,
              1e-6);
  shape.heads = 16; // one point: twice the work at its rate
  EXPECT_NEAR(table.attention_ns(shape, KernelType::bf16), 100'100, 1e-6);
  shape.heads = 8;
  shape.causal = false;
  EXPECT_NEAR(table.attention_ns(shape, KernelType::bf16), 90'100, 1e-6);
  shape.backward = true; // all scores at the rate of half of them, for want of others
  EXPECT_NEAR(table.attention_ns(shape, KernelType::bf16), 400'100, 1e-6);
}

TEST(MemoryKernels, TakePointsOfTheirOwnOrOfWhatStandsIn) {
  const KernelTable table = table_with(R"(
matmul: {}
vector:
  points:
    - [elementwise, 1, 1000, bf16, 220]
    - [layernorm, 8, 1000, bf16, 740]
    - [layernorm_backward, 8, 1000, bf16, 1060]
    - [update, 1, 1000, fp32, 660]
)");
  // 6,000 bytes in 120 ns, 32,000 in 640, 48,000 in 960, 28,000 in 560: all at 50 a nanosecond.
  EXPECT_NEAR(table.vector_ns(VectorKernel::elementwise, 10, 100, KernelType::bf16), 220, 1e-9);
  EXPECT_NEAR(table.vector_ns(VectorKernel::layernorm_backward, 8, 1000, KernelType::bf16), 1060,
              1e-9);
  EXPECT_NEAR(table.vector_ns(VectorKernel::layernorm_weights, 8, 1000, KernelType::bf16), 740,
              1e-9);
  EXPECT_NEAR(table.vector_bytes_ns(VectorKernel::update, 1, 1, 28'000), 660, 1e-9);
  EXPECT_NEAR(table.vector_bytes_ns(VectorKernel::gelu_backward, 1, 1, 6000), 220, 1e-9);
  EXPECT_NEAR(table.vector_bytes_ns(VectorKernel::column_sum, 8, 1000, 6000), 220, 1e-9);
}

TEST(Products, OfRowsThatAreNotAlignedTakePointsOfSuch) {
  EXPECT_EQ(alignment_of(50304, 768, KernelType::bf16), 16);
  EXPECT_EQ(alignment_of(50257, 768, KernelType::bf16), 2);
  EXPECT_EQ(alignment_of(4100, 8, KernelType::bf16), 8);
  EXPECT_EQ(alignment_of(50257, 768, KernelType::fp32), 4);
  const KernelTable table = table_with(
      "matmul: {points: [[512, 512, 512, 1, bf16, 268536], [512, 511, 512, 1, bf16, 2680000]]}\n");
  const auto slowdown = [&](std::int64_t n) {
    return (table.matmul_ns(512, n, 512, 1, KernelType::bf16) - 100) /
           table.ideal_matmul_ns(512, n, 512, 1, KernelType::bf16);
  };
  EXPECT_NEAR(slowdown(504), 1, 0.01);
  EXPECT_NEAR(slowdown(513), 10, 0.3);
}

struct HeldOut {
  double mean = 0, median = 0, worst = 0;
};

HeldOut errors_of(std::vector<double> errors) {
  HeldOut out;
  std::sort(errors.begin(), errors.end());
  for (const double error : errors)
    out.mean += error / static_cast<double>(errors.size());
  out.median = errors[errors.size() / 2];
  out.worst = errors.back();
  return out;
}

template <class Points, class Time>
HeldOut held_out(const KernelTable& table, Points KernelTable::*points, const Time& time_of) {
  std::vector<double> errors;
  for (std::size_t i = 0; i < (table.*points).size(); ++i) {
    const auto& point = (table.*points)[i];
    const auto alike = [&](const auto& other) {
      return other.log_alignment == point.log_alignment;
    };
    if (point.type != KernelType::bf16 ||
        std::count_if((table.*points).begin(), (table.*points).end(), alike) < 3)
      continue;
    KernelTable others = table;
    (others.*points).erase((others.*points).begin() + static_cast<std::ptrdiff_t>(i));
    errors.push_back(std::abs(time_of(others, point) / time_of(table, point) - 1));
  }
  return errors_of(errors);
}

std::int64_t size(double log) {
  return std::llround(std::exp(log));
}

// What docs/explanation/kernel-tables.md promises.
TEST(KernelTableOfTheH100, PredictsHeldOutPoints) {
  const KernelTable h100 = read_kernel_table(MONET_SOURCE_DIR "/data/cluster/h100.yaml");
  EXPECT_TRUE(h100.measured);
  const HeldOut products = held_out(
      h100, &KernelTable::matmul_points, [](const KernelTable& table, const MatmulPoint& point) {
        return table.matmul_ns(size(point.log_m), size(point.log_n), size(point.log_k),
                               size(point.log_batch), point.type);
      });
  const HeldOut attention =
      held_out(h100, &KernelTable::attention_points,
               [](const KernelTable& table, const AttentionPoint& point) {
                 const std::int64_t sequence = size(point.log_sequence);
                 return table.attention_ns({size(point.log_heads), sequence, sequence,
                                            size(point.log_size), point.causal, point.backward},
                                           point.type);
               });
  std::printf("held-out products: %.1f %% in the mean, median %.1f, %.0f at worst\n",
              100 * products.mean, 100 * products.median, 100 * products.worst);
  std::printf("held-out attention: %.1f %% in the mean, median %.1f, %.0f at worst\n",
              100 * attention.mean, 100 * attention.median, 100 * attention.worst);
  EXPECT_LT(products.mean, 0.10);
  EXPECT_LT(products.median, 0.05);
  EXPECT_LT(attention.mean, 0.15);
}

TEST(KernelTableOfTheH100, PredictsHeldOutMemoryKernels) {
  const KernelTable h100 = read_kernel_table(MONET_SOURCE_DIR "/data/cluster/h100.yaml");
  for (std::size_t k = 0; k < kVectorKernels; ++k) {
    const auto kernel = static_cast<VectorKernel>(k);
    std::vector<double> errors;
    for (std::size_t i = 0; i < h100.vector_points.size(); ++i) {
      const VectorPoint& point = h100.vector_points[i];
      if (point.kernel != kernel)
        continue;
      KernelTable others = h100;
      others.vector_points.erase(others.vector_points.begin() + static_cast<std::ptrdiff_t>(i));
      const bool by_bytes = is_by_elements(kernel);
      const double bytes =
          by_bytes ? std::exp(point.log_columns)
                   : 2 * tensors_of(kernel) * std::exp(point.log_rows + point.log_columns);
      const auto time_of = [&](const KernelTable& table) {
        return table.vector_bytes_ns(kernel, by_bytes ? 1 : size(point.log_rows),
                                     by_bytes ? 1 : size(point.log_columns), bytes);
      };
      errors.push_back(std::abs(time_of(others) / time_of(h100) - 1));
    }
    ASSERT_GE(errors.size(), 6U) << name_of(kernel);
    const HeldOut out = errors_of(errors);
    std::printf("held-out %s: %.1f %% in the mean, median %.1f, %.0f at worst of %zu\n",
                std::string(name_of(kernel)).c_str(), 100 * out.mean, 100 * out.median,
                100 * out.worst, errors.size());
    EXPECT_LT(out.median, 0.25) << name_of(kernel);
  }
}

} // namespace
} // namespace monet
