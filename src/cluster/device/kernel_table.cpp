// Times of kernels from a table's points.
#include "monet/cluster/kernel_table.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace monet {

namespace {

constexpr std::array<std::string_view, kKernelTypes> kTypeNames{"fp64", "fp32", "tf32", "bf16",
                                                                "fp16", "fp8",  "int8"};
constexpr std::array<std::int64_t, kKernelTypes> kTypeBytes{8, 4, 4, 2, 2, 1, 1};
constexpr std::array<std::string_view, kVectorKernels> kVectorNames{"elementwise", "gelu",
                                                                    "layernorm", "softmax"};

struct Product {
  double m = 1;
  double n = 1;
  double k = 1;
  double batch = 1;
};

double square(double value) {
  return value * value;
}

/// A mean of the points' values, weighted by the inverse fourth power of their distance (Shepard
/// 1968); a point itself where it is asked for.
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

/// Steps of k that the device takes one after another, times a tile's area: waves of tiles. Where
/// tiles do not fill the device once, k is cut, too.
double wave_area(const MatrixUnits& units, const MatrixUnits::TileShape& tile,
                 const Product& product) {
  constexpr double kMostCuts = 16;
  const double tiles =
      std::ceil(product.m / tile.rows) * std::ceil(product.n / tile.columns) * product.batch;
  double best = std::ceil(tiles / units.units) * (product.k + units.fill);
  for (double cuts = 2; cuts <= kMostCuts && tiles * cuts <= units.units && cuts <= product.k;
       cuts *= 2)
    best = std::min(best, std::ceil(tiles * cuts / units.units) * (product.k / cuts + units.fill));
  return best * tile.rows * tile.columns / tile.share;
}

/// Operations of the product as the units do them.
double worked_flops(const MatrixUnits& units, const Product& product) {
  if (units.tile_count == 0)
    return 2 * product.m * product.n * product.k * product.batch;
  double least = 0;
  for (std::size_t i = 0; i < units.tile_count; ++i) {
    const double area = wave_area(units, units.tiles[i], product);
    least = i == 0 ? area : std::min(least, area);
  }
  return 2 * least * units.units;
}

double mean_slowdown(const std::vector<MatmulPoint>& points, const Product& product,
                     std::optional<KernelType> type) {
  const double log_m = std::log(product.m);
  const double log_n = std::log(product.n);
  const double log_k = std::log(product.k);
  const double log_batch = std::log(product.batch);
  NearestMean mean;
  for (const MatmulPoint& point : points) {
    if (type && point.type != *type)
      continue;
    const double straight = square(log_m - point.log_m) + square(log_n - point.log_n);
    const double turned = square(log_m - point.log_n) + square(log_n - point.log_m);
    mean.add(std::min(straight, turned) + square(log_k - point.log_k) +
                 square(log_batch - point.log_batch),
             point.log_slowdown);
  }
  return mean.is_empty() ? 0 : std::exp(mean.value());
}

} // namespace

std::string_view name_of(KernelType type) {
  return kTypeNames[static_cast<std::size_t>(type)];
}

std::int64_t bytes_of(KernelType type) {
  return kTypeBytes[static_cast<std::size_t>(type)];
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
  return kVectorNames[static_cast<std::size_t>(kernel)];
}

double KernelTable::ideal_matmul_ns(std::int64_t m, std::int64_t n, std::int64_t k,
                                    std::int64_t batch, KernelType type) const {
  internal_check(m >= 1 && n >= 1 && k >= 1 && batch >= 1, "a product of matrices has no elements");
  if (!has(type))
    throw InfeasibleError(
        fmt::format("device '{}' has no rate for products in {}", name, name_of(type)));
  const Product product{static_cast<double>(m), static_cast<double>(n), static_cast<double>(k),
                        static_cast<double>(batch)};
  constexpr double kFlopsPerNanosecond = 1e3; // of a TFLOP/s
  const double compute = worked_flops(matrix_units, product) /
                         (peak_tflops[static_cast<std::size_t>(type)] * kFlopsPerNanosecond);
  const double elements = product.m * product.k + product.k * product.n + product.m * product.n;
  const double traffic = elements * product.batch * static_cast<double>(bytes_of(type)) /
                         (memory_bandwidth_gb_per_s * matrix_units.memory_share);
  return std::max(compute, traffic);
}

double KernelTable::matmul_ns(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch,
                              KernelType type) const {
  const double ideal = ideal_matmul_ns(m, n, k, batch, type);
  const Product product{static_cast<double>(m), static_cast<double>(n), static_cast<double>(k),
                        static_cast<double>(batch)};
  double slowdown = mean_slowdown(matmul_points, product, type);
  if (slowdown == 0) // no point of this type: those of others
    slowdown = mean_slowdown(matmul_points, product, std::nullopt);
  return kernel_launch_ns + ideal * (slowdown == 0 ? 1 : slowdown);
}

double KernelTable::memory_bound_ns(double bytes) const {
  internal_check(bytes >= 0, "a kernel moves fewer than no bytes");
  return kernel_launch_ns + bytes / (memory_bandwidth_gb_per_s * memory_share);
}

double KernelTable::vector_bytes_ns(VectorKernel kernel, std::int64_t rows, std::int64_t columns,
                                    double bytes) const {
  internal_check(rows >= 1 && columns >= 1 && bytes >= 0, "a kernel has no elements");
  const bool by_elements = kernel == VectorKernel::gelu;
  const double log_elements =
      std::log(static_cast<double>(rows)) + std::log(static_cast<double>(columns));
  const double log_rows = by_elements ? 0 : std::log(static_cast<double>(rows));
  NearestMean mean;
  for (const VectorPoint& point : vector_points) {
    if (point.kernel == kernel)
      mean.add(square(log_rows - point.log_rows) +
                   square(log_elements - log_rows - point.log_columns),
               point.log_share);
  }
  if (mean.is_empty())
    return memory_bound_ns(bytes);
  return kernel_launch_ns + bytes / (memory_bandwidth_gb_per_s * std::exp(mean.value()));
}

double KernelTable::vector_ns(VectorKernel kernel, std::int64_t rows, std::int64_t columns,
                              KernelType type) const {
  const double elements = static_cast<double>(rows) * static_cast<double>(columns);
  return vector_bytes_ns(kernel, rows, columns, 2 * elements * static_cast<double>(bytes_of(type)));
}

} // namespace monet
