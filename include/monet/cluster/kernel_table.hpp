// A device known by measured kernels instead of by its parts.
// docs/explanation/kernel-tables.md explains how times are interpolated, and has the errors of
// held-out points; docs/reference/cluster-file.md has the keys.
#pragma once

#include "monet/cluster/cluster.hpp"
#include "monet/hardware/tile_waves.hpp"
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

/// Kernels that are bound by memory. Points of element-wise ones are by elements, of others by rows
/// and columns; `elementwise` stands for all that have none of their own.
enum class VectorKernel : std::uint8_t {
  elementwise, ///< a sum of two
  gelu,
  layernorm,
  softmax,
  gelu_backward,
  layernorm_backward, ///< the gradient of the data
  layernorm_weights,  ///< of what they are scaled by
  softmax_backward,
  column_sum, ///< over all rows: a bias's gradient
  update,     ///< Adam's, of weights and states of the gradients' type
};
inline constexpr std::size_t kVectorKernels = 10;
std::string_view name_of(VectorKernel kernel);
/// Tensors of rows x columns that a point's kernel reads and writes.
double tensors_of(VectorKernel kernel);
/// What has points where the kernel has none: its forward pass, or `elementwise`.
VectorKernel stand_in(VectorKernel kernel);
/// Only elements count.
bool is_by_elements(VectorKernel kernel);

/// How the matrix units are used: in waves of tiles.
struct MatrixUnits : TileWaves {
  double memory_share = 1; ///< of the bandwidth that reading operands reaches
  /// Rows of operands in memory begin at multiples of so many bytes, or the product runs on the
  /// vector units, at the rate of fp32. 0: no such rule.
  std::int64_t row_bytes = 0;
  double sustained = 1; ///< of the points' rate, what long runs keep under the power limit
};

/// Bytes that all rows of n or k elements begin at multiples of, up to 16: matrix units read no
/// fewer at a time, and kernels for other rows are slow.
double alignment_of(std::int64_t n, std::int64_t k, KernelType type);

/// One measured product, as what it takes over what an ideal device would.
struct MatmulPoint {
  double log_m = 0;
  double log_n = 0;
  double log_k = 0;
  double log_batch = 0;
  double log_alignment = 0; ///< bytes that rows begin at multiples of: 16 and more count as 16
  double log_slowdown = 0;  ///< natural logarithm; 0 = as the ideal
  KernelType type = KernelType::fp16;
};

/// One measured kernel that is bound by memory.
struct VectorPoint {
  double log_rows = 0;    ///< 0 where only elements count
  double log_columns = 0; ///< there: of the bytes that are moved
  double log_share = 0;   ///< of the memory bandwidth
  VectorKernel kernel = VectorKernel::elementwise;
};

/// Attention as one kernel that keeps no scores: `heads` of all samples, each with so many queries
/// and keys of `size` numbers. Its backward pass makes the scores again.
struct AttentionShape {
  std::int64_t heads = 1;
  std::int64_t queries = 1;
  std::int64_t keys = 1;
  std::int64_t size = 1;
  bool causal = false; ///< half of the scores
  bool backward = false;
};

/// One measured attention, as what it takes over what an ideal device would.
struct AttentionPoint {
  double log_heads = 0;
  double log_sequence = 0; ///< half the logarithms of queries and keys
  double log_size = 0;
  double log_alignment = 0; ///< of a head's numbers, as of a product's rows
  double log_slowdown = 0;
  bool causal = false;
  bool backward = false;
  KernelType type = KernelType::fp16;
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
  /// Operations that the matrix units do while the device takes one exponential.
  double exponential_flops = 0;
  double attention_share = 1; ///< of the peak that attention without points reaches at most
  std::vector<MatmulPoint> matmul_points;
  std::vector<VectorPoint> vector_points;
  std::vector<AttentionPoint> attention_points;

  bool has(KernelType type) const { return peak_tflops[static_cast<std::size_t>(type)] > 0; }

  // Times of one kernel on the device, in nanoseconds, with its launch but without the host's time.
  // None allocates.

  /// `batch` products of [m, k] and [k, n]: the ideal time times the slowdown of the points nearest
  /// by shape (inverse fourth power of the distance of logarithms; m and n may change places).
  /// Equal to the points at the points. InfeasibleError for a type without a rate; InternalError
  /// for sizes below 1.
  double matmul_ns(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch,
                   KernelType type) const;
  /// The same in a long run, whose clocks follow the power that is drawn.
  double sustained_matmul_ns(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch,
                             KernelType type) const;
  /// Attention as one kernel: the ideal time times the slowdown of the nearest points of its
  /// direction, those with as many scores first. Without any, as long as its products take whose
  /// scores are not in memory, at no more than its share of the peak.
  double attention_ns(const AttentionShape& shape, KernelType type) const;
  /// Anything else that moves so many bytes.
  double memory_bound_ns(double bytes) const;
  /// Reads and writes as often as the kernel of the points does, rows x columns elements.
  double vector_ns(VectorKernel kernel, std::int64_t rows, std::int64_t columns,
                   KernelType type) const;
  /// The same where other bytes are moved.
  double vector_bytes_ns(VectorKernel kernel, std::int64_t rows, std::int64_t columns,
                         double bytes) const;
  /// What the host takes to launch so many kernels.
  double host_ns(std::int64_t kernels) const {
    return host_ns_per_kernel * static_cast<double>(kernels);
  }
  /// Whatever bounds it, at a share of the peak: no launch, no slowdown. For points and lower
  /// bounds.
  double ideal_matmul_ns(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch,
                         KernelType type, double share = 1) const;
  /// The same of attention: operations and exponentials at the peak, or operands and results once
  /// from memory.
  double ideal_attention_ns(const AttentionShape& shape, KernelType type) const;
};

/// A kernel table's file. One InputError with every problem found.
KernelTable read_kernel_table(const std::string& path);
/// The same from text; files of points and tables to borrow from come through `open`.
KernelTable parse_kernel_table(std::string_view text, const std::string& origin,
                               const FileOpener& open);

} // namespace monet
