// A device known by measured kernels instead of by its parts. docs/cluster.md has the files, how
// times are interpolated, and how far held-out points are missed.
#pragma once

#include "monet/cluster/cluster.hpp"
#include "monet/workload/element_type.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// Element types that matrix units have rates for.
enum class KernelType : std::uint8_t { fp64, fp32, tf32, bf16, fp16, fp8, int8 };
inline constexpr std::size_t kKernelTypes = 7;
std::string_view name_of(KernelType type);
std::int64_t bytes_of(KernelType type);
/// Nothing for types that no kernel has, such as int64.
std::optional<KernelType> kernel_type_of(const ElementType& type);

/// Kernels that are bound by memory, whose points are by rows and columns; `elementwise` stands for
/// all that have none, and is bound by `memory_share`.
enum class VectorKernel : std::uint8_t { elementwise, gelu, layernorm, softmax };
inline constexpr std::size_t kVectorKernels = 4;
std::string_view name_of(VectorKernel kernel);

/// How the matrix units are used: a product is cut into tiles, `units` of which run at once, and
/// the last wave takes as long as the others.
struct MatrixUnits {
  struct TileShape {
    double rows = 0;
    double columns = 0;
    double share = 1; ///< of the peak that a tile of this shape reaches at best
  };
  static constexpr std::size_t kMaxTileShapes = 12;
  double units = 1;
  std::array<TileShape, kMaxTileShapes> tiles{};
  std::size_t tile_count = 0; ///< 0: not cut, no waves
  double fill = 0;            ///< steps of k that a tile takes to begin and to end
  double memory_share = 1;    ///< of the bandwidth that reading operands reaches
};

/// One measured product, as what it takes over what an ideal device would.
struct MatmulPoint {
  double log_m = 0;
  double log_n = 0;
  double log_k = 0;
  double log_batch = 0;
  double log_slowdown = 0; ///< natural logarithm; 0 = as the ideal
  KernelType type = KernelType::fp16;
};

/// One measured kernel that is bound by memory.
struct VectorPoint {
  double log_rows = 0;
  double log_columns = 0;
  double log_share = 0; ///< of the memory bandwidth
  VectorKernel kernel = VectorKernel::elementwise;
};

struct KernelTable {
  std::string name;
  std::string origin;
  bool measured = false; ///< false: from data sheets, efficiency borrowed from another device
  std::array<double, kKernelTypes> peak_tflops{};
  double memory_bandwidth_gb_per_s = 0;
  double memory_share = 1; ///< of it that a kernel without points reaches
  double memory_bytes = 0;
  double workspace_bytes = 0;    ///< that libraries and the driver keep
  double kernel_launch_ns = 0;   ///< from a kernel's start to its first work, and to its end
  double host_ns_per_kernel = 0; ///< the host's time to launch one
  HostLink host_link;
  MatrixUnits matrix_units;
  std::vector<MatmulPoint> matmul_points;
  std::vector<VectorPoint> vector_points;

  bool has(KernelType type) const { return peak_tflops[static_cast<std::size_t>(type)] > 0; }

  // Times of one kernel on the device, in nanoseconds, with its launch but without the host's time.
  // None allocates.

  /// `batch` products of [m, k] and [k, n]: the ideal time times the slowdown of the points nearest
  /// by shape (inverse fourth power of the distance of logarithms; m and n may change places).
  /// Equal to the points at the points. InfeasibleError for a type without a rate; InternalError
  /// for sizes below 1.
  double matmul_ns(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch,
                   KernelType type) const;
  /// Anything else that moves so many bytes.
  double memory_bound_ns(double bytes) const;
  /// Reads and writes rows x columns elements once.
  double vector_ns(VectorKernel kernel, std::int64_t rows, std::int64_t columns,
                   KernelType type) const;
  /// The same where other bytes are moved, as in a backward pass.
  double vector_bytes_ns(VectorKernel kernel, std::int64_t rows, std::int64_t columns,
                         double bytes) const;
  /// What the host takes to launch so many kernels.
  double host_ns(std::int64_t kernels) const {
    return host_ns_per_kernel * static_cast<double>(kernels);
  }
  /// Whatever bounds it, at the full rate: no launch, no slowdown. For points and lower bounds.
  double ideal_matmul_ns(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch,
                         KernelType type) const;
};

/// A kernel table's file. One InputError with every problem found.
KernelTable read_kernel_table(const std::string& path);
/// The same from text; files of points and tables to borrow from come through `open`.
KernelTable parse_kernel_table(std::string_view text, const std::string& origin,
                               const FileOpener& open);

} // namespace monet
