// Estimates the times of kernels from the measured points of a kernel table. Called by the cost
// models (cost/kernels.cpp, cost/blocks.cpp).
#include "monet/cluster/kernel_table.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace monet {

namespace {

constexpr std::array<std::string_view, kKernelTypes> kTypeNames{"fp64", "fp32", "tf32", "bf16",
                                                                "fp16", "fp8",  "int8"};
constexpr std::array<std::int64_t, kKernelTypes> kTypeBytes{8, 4, 4, 2, 2, 1, 1};

struct VectorRule {
  std::string_view name;
  double tensors;
  VectorKernel stand_in;
};
constexpr std::array<VectorRule, kVectorKernels> kVectorRules{{
    {"elementwise", 3, VectorKernel::elementwise},
    {"gelu", 2, VectorKernel::elementwise},
    {"layernorm", 2, VectorKernel::elementwise},
    {"softmax", 2, VectorKernel::elementwise},
    {"gelu_backward", 3, VectorKernel::gelu},
    {"layernorm_backward", 3, VectorKernel::layernorm},
    {"layernorm_weights", 2, VectorKernel::layernorm},
    {"softmax_backward", 3, VectorKernel::softmax},
    {"column_sum", 1, VectorKernel::elementwise},
    {"update", 7, VectorKernel::elementwise},
}};

const VectorRule& rule_of(VectorKernel kernel) {
  return kVectorRules[static_cast<std::size_t>(kernel)];
}

constexpr double kFlopsPerNanosecond = 1e3; // 1 TFLOP/s

double square(double value) {
  return value * value;
}

/// The mean of the points' values, weighted by the inverse fourth power of their distance (Shepard
/// 1968). At a point, the mean is the value of that point.
class NearestMean {
public:
  void add(double squared_distance, double value) {
    constexpr double kSame = 1e-18;
    if (squared_distance < kSame) {
      exact_ = value;
      is_exact_ = true;
      return;
    }
    const double weight = 1 / square(squared_distance);
    sum_ += weight * value;
    weights_ += weight;
  }
  bool is_empty() const { return !is_exact_ && weights_ == 0; }
  double value() const { return is_exact_ ? exact_ : sum_ / weights_; }

private:
  double exact_ = 0;
  bool is_exact_ = false;
  double sum_ = 0;
  double weights_ = 0;
};

/// Floating-point operations that the matrix units execute for a product, idle ones included.
double worked_flops(const MatrixUnits& units, const ProductSize& product) {
  return 2 * worked_multiplications(units, product);
}

/// Weight of the difference between logarithms of alignments in the distance between two points.
constexpr double kAlignmentWeight = 4;

double mean_slowdown(const std::vector<MatmulPoint>& points, const ProductSize& product,
                     double alignment, std::optional<KernelType> type) {
  const double log_alignment = std::log(alignment);
  const double log_m = std::log(product.rows);
  const double log_n = std::log(product.columns);
  const double log_k = std::log(product.sums);
  const double log_batch = std::log(product.batch);
  NearestMean mean;
  for (const MatmulPoint& point : points) {
    if (type && point.type != *type)
      continue;
    const double straight = square(log_m - point.log_m) + square(log_n - point.log_n);
    const double turned = square(log_m - point.log_n) + square(log_n - point.log_m);
    mean.add(std::min(straight, turned) + square(log_k - point.log_k) +
                 square(log_batch - point.log_batch) +
                 square(kAlignmentWeight * (log_alignment - point.log_alignment)),
             point.log_slowdown);
  }
  return mean.is_empty() ? 0 : std::exp(mean.value());
}

double slowdown_of(const KernelTable& table, const ProductSize& product, KernelType type) {
  const double alignment = alignment_of(static_cast<std::int64_t>(product.columns),
                                        static_cast<std::int64_t>(product.sums), type);
  double slowdown = mean_slowdown(table.matmul_points, product, alignment, type);
  if (slowdown == 0) // no point of this type: use points of other types
    slowdown = mean_slowdown(table.matmul_points, product, alignment, std::nullopt);
  return slowdown == 0 ? 1 : slowdown;
}

// Products of attention: scores and result; in the backward pass, recomputed scores and four
// gradients.
constexpr double kForwardProducts = 2;
constexpr double kBackwardProducts = 5;

double scores_share(const AttentionShape& shape) {
  return shape.causal ? 0.5 : 1;
}

double attention_flops(const AttentionShape& shape, double exponential_flops) {
  const double products = shape.backward ? kBackwardProducts : kForwardProducts;
  const double scores = scores_share(shape) * static_cast<double>(shape.heads) *
                        static_cast<double>(shape.queries) * static_cast<double>(shape.keys);
  return scores * (products * 2 * static_cast<double>(shape.size) + exponential_flops);
}

/// Bytes of queries, keys, values and the result; in the backward pass, also of their gradients.
double attention_traffic(const AttentionShape& shape, std::int64_t element_bytes) {
  const auto rows = static_cast<double>(shape.queries + shape.keys);
  return (shape.backward ? 4 : 2) * rows * static_cast<double>(shape.heads) *
         static_cast<double>(shape.size) * static_cast<double>(element_bytes);
}

NearestMean attention_slowdown(const std::vector<AttentionPoint>& points,
                               const AttentionShape& shape, KernelType type, bool like) {
  const double log_alignment = std::log(alignment_of(shape.size, shape.size, type));
  const double log_heads = std::log(static_cast<double>(shape.heads));
  const double log_sequence =
      (std::log(static_cast<double>(shape.queries)) + std::log(static_cast<double>(shape.keys))) /
      2;
  const double log_size = std::log(static_cast<double>(shape.size));
  NearestMean mean;
  for (const AttentionPoint& point : points) {
    if (point.backward != shape.backward || (like && point.causal != shape.causal))
      continue;
    mean.add(square(log_heads - point.log_heads) + square(log_sequence - point.log_sequence) +
                 square(log_size - point.log_size) +
                 square(kAlignmentWeight * (log_alignment - point.log_alignment)),
             point.log_slowdown);
  }
  return mean;
}

} // namespace

std::string_view name_of(KernelType type) {
  return kTypeNames[static_cast<std::size_t>(type)];
}

std::int64_t bytes_of(KernelType type) {
  return kTypeBytes[static_cast<std::size_t>(type)];
}

double alignment_of(std::int64_t n, std::int64_t k, KernelType type) {
  constexpr std::int64_t kWidest = 16;
  return static_cast<double>(std::gcd(kWidest, std::gcd(n, k) * bytes_of(type)));
}

std::optional<KernelType> kernel_type_of(const ElementType& type) {
  if (type == ElementType::fp8_e4m3 || type == ElementType::fp8_e5m2)
    return KernelType::fp8;
  switch (type.kind()) {
  case ElementType::Kind::fp64:
    return KernelType::fp64;
  case ElementType::Kind::fp32:
    return KernelType::fp32;
  case ElementType::Kind::tf32:
    return KernelType::tf32;
  case ElementType::Kind::bf16:
    return KernelType::bf16;
  case ElementType::Kind::fp16:
    return KernelType::fp16;
  case ElementType::Kind::int8:
  case ElementType::Kind::qint8:
    return KernelType::int8;
  default:
    return std::nullopt;
  }
}

std::string_view name_of(VectorKernel kernel) {
  return rule_of(kernel).name;
}

double tensors_of(VectorKernel kernel) {
  return rule_of(kernel).tensors;
}

VectorKernel stand_in(VectorKernel kernel) {
  return rule_of(kernel).stand_in;
}

bool is_by_elements(VectorKernel kernel) {
  return kernel == VectorKernel::elementwise || kernel == VectorKernel::gelu ||
         kernel == VectorKernel::gelu_backward || kernel == VectorKernel::update;
}

double KernelTable::ideal_matmul_ns(std::int64_t m, std::int64_t n, std::int64_t k,
                                    std::int64_t batch, KernelType type, double share) const {
  internal_check(m >= 1 && n >= 1 && k >= 1 && batch >= 1, "a product of matrices has no elements");
  if (!has(type))
    throw InfeasibleError(
        fmt::format("device '{}' has no rate for products in {}", name, name_of(type)));
  const ProductSize product{static_cast<double>(m), static_cast<double>(n), static_cast<double>(k),
                            static_cast<double>(batch)};
  const double compute =
      worked_flops(matrix_units, product) /
      (peak_tflops[static_cast<std::size_t>(type)] * kFlopsPerNanosecond * share);
  const double elements =
      product.rows * product.sums + product.sums * product.columns + product.rows * product.columns;
  const double traffic = elements * product.batch * static_cast<double>(bytes_of(type)) /
                         (memory_bandwidth_gb_per_s * matrix_units.memory_share);
  return std::max(compute, traffic);
}

double KernelTable::matmul_ns(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch,
                              KernelType type) const {
  const double ideal = ideal_matmul_ns(m, n, k, batch, type);
  const ProductSize product{static_cast<double>(m), static_cast<double>(n), static_cast<double>(k),
                            static_cast<double>(batch)};
  return kernel_launch_ns + ideal * slowdown_of(*this, product, type);
}

double KernelTable::ideal_attention_ns(const AttentionShape& shape, KernelType type) const {
  internal_check(shape.heads >= 1 && shape.queries >= 1 && shape.keys >= 1 && shape.size >= 1,
                 "attention has no elements");
  if (!has(type))
    throw InfeasibleError(
        fmt::format("device '{}' has no rate for products in {}", name, name_of(type)));
  return std::max(attention_flops(shape, exponential_flops) /
                      (peak_tflops[static_cast<std::size_t>(type)] * kFlopsPerNanosecond),
                  attention_traffic(shape, bytes_of(type)) /
                      (memory_bandwidth_gb_per_s * memory_share));
}

double KernelTable::attention_ns(const AttentionShape& shape, KernelType type) const {
  const double ideal = ideal_attention_ns(shape, type);
  const double at_share = attention_flops(shape, 0) / (attention_share * kFlopsPerNanosecond *
                                                       peak_tflops[static_cast<std::size_t>(type)]);
  for (const bool like : {true, false}) { // points with the same masking, then all points
    const NearestMean mean = attention_slowdown(attention_points, shape, type, like);
    if (!mean.is_empty())
      return kernel_launch_ns + std::max(ideal * std::exp(mean.value()), at_share);
  }
  // Forward products: [queries, size] x [size, keys] and [queries, keys] x [keys, size]. Products
  // of the backward pass have the same shapes.
  double compute = 0;
  for (const bool scores : {true, false}) {
    const std::int64_t n = scores ? shape.keys : shape.size;
    const std::int64_t k = scores ? shape.size : shape.keys;
    const ProductSize product{static_cast<double>(shape.queries), static_cast<double>(n),
                              static_cast<double>(k), static_cast<double>(shape.heads)};
    compute += worked_flops(matrix_units, product) * slowdown_of(*this, product, type) /
               (peak_tflops[static_cast<std::size_t>(type)] * kFlopsPerNanosecond);
  }
  compute *= (shape.backward ? kBackwardProducts / kForwardProducts : 1) * scores_share(shape);
  return kernel_launch_ns + std::max({compute, ideal, at_share});
}

double KernelTable::sustained_matmul_ns(std::int64_t m, std::int64_t n, std::int64_t k,
                                        std::int64_t batch, KernelType type) const {
  const double work = matmul_ns(m, n, k, batch, type) - kernel_launch_ns;
  return kernel_launch_ns + work * ideal_matmul_ns(m, n, k, batch, type, matrix_units.sustained) /
                                ideal_matmul_ns(m, n, k, batch, type);
}

double KernelTable::memory_bound_ns(double bytes) const {
  internal_check(bytes >= 0, "a kernel moves fewer than no bytes");
  return kernel_launch_ns + bytes / (memory_bandwidth_gb_per_s * memory_share);
}

double KernelTable::vector_bytes_ns(VectorKernel kernel, std::int64_t rows, std::int64_t columns,
                                    double bytes) const {
  internal_check(rows >= 1 && columns >= 1 && bytes >= 0, "a kernel has no elements");
  const bool by_elements = is_by_elements(kernel);
  const double log_rows = by_elements ? 0 : std::log(static_cast<double>(rows));
  const double log_columns =
      by_elements ? std::log(std::max(bytes, 1.0)) : std::log(static_cast<double>(columns));
  NearestMean mean;
  for (const VectorPoint& point : vector_points) {
    if (point.kernel == kernel)
      mean.add(square(log_rows - point.log_rows) + square(log_columns - point.log_columns),
               point.log_share);
  }
  if (!mean.is_empty())
    return kernel_launch_ns + bytes / (memory_bandwidth_gb_per_s * std::exp(mean.value()));
  return kernel == VectorKernel::elementwise
             ? memory_bound_ns(bytes)
             : vector_bytes_ns(stand_in(kernel), rows, columns, bytes);
}

double KernelTable::vector_ns(VectorKernel kernel, std::int64_t rows, std::int64_t columns,
                              KernelType type) const {
  const double elements = static_cast<double>(rows) * static_cast<double>(columns);
  return vector_bytes_ns(kernel, rows, columns,
                         tensors_of(kernel) * elements * static_cast<double>(bytes_of(type)));
}

} // namespace monet
