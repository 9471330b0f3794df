// A device described by measured kernels instead of by its parts. docs/explanation/kernel-tables.md
// explains how times are interpolated and lists the errors at held-out points;
// docs/reference/cluster-file.md has the keys.
// Example:
//   double a100_matmul_ns(std::int64_t size) {
//     const KernelTable a100 = read_kernel_table("data/cluster/a100.yaml");
//     return a100.matmul_ns(size, size, size, 1, KernelType::bf16);
//   }
#pragma once

#include "monet/cluster/cluster.hpp"
#include "monet/hardware/chip.hpp"
#include "monet/hardware/core.hpp"
#include "monet/workload/element_type.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// Element types for which matrix units have rates.
enum class KernelType : std::uint8_t { fp64, fp32, tf32, bf16, fp16, fp8, int8 };
inline constexpr std::size_t kKernelTypes = 7;
std::string_view name_of(KernelType type);
std::int64_t bytes_of(KernelType type);
/// Kernel type of an element type; nullopt for types without kernels, such as int64.
std::optional<KernelType> kernel_type_of(const ElementType& type);

/// Memory-bound kernels. Points of element-wise kernels are indexed by elements, those of others by
/// rows and columns. `elementwise` stands in for every kernel without points.
enum class VectorKernel : std::uint8_t {
  elementwise, ///< sum of two tensors
  gelu,
  layernorm,
  softmax,
  gelu_backward,
  layernorm_backward, ///< gradient of the data
  layernorm_weights,  ///< gradients of scale and shift
  softmax_backward,
  column_sum, ///< sum over all rows: the gradient of a bias
  update,     ///< Adam, with weights and states of the gradients' type
};
inline constexpr std::size_t kVectorKernels = 10;
std::string_view name_of(VectorKernel kernel);
/// Number of tensors of rows x columns that the kernel reads and writes.
double tensors_of(VectorKernel kernel);
/// Kernel whose points are used if `kernel` has none: its forward pass, or `elementwise`.
VectorKernel stand_in(VectorKernel kernel);
/// Whether the time depends on the number of elements only, not on rows and columns.
bool is_by_elements(VectorKernel kernel);

/// Properties of the matrix units, which work in waves of tiles.
struct MatrixUnits : TileWaves {
  double memory_share = 1; ///< share of the bandwidth that reading operands reaches
  /// Required alignment of the operands' rows in memory, in bytes; 0: none. Products with unaligned
  /// rows run on the vector units, at the rate of fp32.
  std::int64_t row_bytes = 0;
  double sustained = 1; ///< share of the measured rate that long runs sustain under the power limit
};

/// Alignment in bytes of rows of n or k elements, at most 16. Matrix units read at least 16 bytes
/// at a time, and kernels for less aligned rows are slow.
double alignment_of(std::int64_t n, std::int64_t k, KernelType type);

/// One measured matrix product, as its slowdown over an ideal device. Sizes are natural logarithms.
struct MatmulPoint {
  double log_m = 0;
  double log_n = 0;
  double log_k = 0;
  double log_batch = 0;
  double log_alignment = 0; ///< alignment of rows in bytes, at most 16
  double log_slowdown = 0;  ///< 0 = as fast as the ideal device
  KernelType type = KernelType::fp16;
};

/// One measured memory-bound kernel. Its figures are natural logarithms.
struct VectorPoint {
  double log_rows = 0;    ///< 0 if only elements count
  double log_columns = 0; ///< bytes moved if only elements count
  double log_share = 0;   ///< share of the memory bandwidth
  VectorKernel kernel = VectorKernel::elementwise;
};

/// Attention as one kernel that does not store scores. `heads` is the number of heads of all
/// samples; each has `queries` queries and `keys` keys of `size` numbers. The backward pass
/// computes the scores again.
struct AttentionShape {
  std::int64_t heads = 1;
  std::int64_t queries = 1;
  std::int64_t keys = 1;
  std::int64_t size = 1;
  bool causal = false; ///< only half of the scores are computed
  bool backward = false;
};

/// One measured attention kernel, as its slowdown over an ideal device. Figures are natural
/// logarithms.
struct AttentionPoint {
  double log_heads = 0;
  double log_sequence = 0; ///< mean of the logarithms of queries and keys
  double log_size = 0;
  double log_alignment = 0; ///< alignment of a head's numbers, as of a product's rows
  double log_slowdown = 0;
  bool causal = false;
  bool backward = false;
  KernelType type = KernelType::fp16;
};

/// A device given by its rates, its bandwidths and measured kernels.
struct KernelTable {
  std::string name;
  std::string origin;
  bool measured = false; ///< false: from data sheets, with efficiencies of another device
  std::array<double, kKernelTypes> peak_tflops{};
  double memory_bandwidth_gb_per_s = 0;
  double memory_share = 1; ///< share of the bandwidth that a kernel without points reaches
  double memory_bytes = 0;
  double workspace_bytes = 0;    ///< reserved by libraries and the driver
  double kernel_launch_ns = 0;   ///< device time before the first and after the last work
  double host_ns_per_kernel = 0; ///< host time to launch one kernel
  HostLink host_link;
  MatrixUnits matrix_units;
  /// Operations of the matrix units in the time of one exponential.
  double exponential_flops = 0;
  double attention_share = 1; ///< maximum share of the peak that attention reaches
  std::vector<MatmulPoint> matmul_points;
  std::vector<VectorPoint> vector_points;
  std::vector<AttentionPoint> attention_points;

  bool has(KernelType type) const { return peak_tflops[static_cast<std::size_t>(type)] > 0; }

  // The functions below return the time of one kernel on the device, in nanoseconds, with its
  // launch but without the host's time. They do not allocate.

  /// Time of `batch` products of [m, k] and [k, n]: the ideal time multiplied by a slowdown
  /// interpolated from the points. A point's weight is the inverse fourth power of its distance in
  /// logarithms of shape; m and n may be exchanged. Exact at the points. Throws InfeasibleError for
  /// a type without a rate, InternalError for sizes below 1.
  double matmul_ns(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch,
                   KernelType type) const;
  /// Time of the same products as in matmul_ns(), but in a long run whose clock frequency is
  /// reduced by the power limit.
  double sustained_matmul_ns(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch,
                             KernelType type) const;
  /// Time of attention as one kernel: the ideal time multiplied by the slowdown of the nearest
  /// points of the same pass, preferably those of the same causality. Without points, the time of
  /// its products with scores that stay out of memory. The rate is at most `attention_share` of the
  /// peak.
  double attention_ns(const AttentionShape& shape, KernelType type) const;
  /// Time of a memory-bound kernel without points that moves `bytes` bytes.
  double memory_bound_ns(double bytes) const;
  /// Time of a vector kernel on rows x columns elements, with the number of reads and writes of the
  /// measured kernel.
  double vector_ns(VectorKernel kernel, std::int64_t rows, std::int64_t columns,
                   KernelType type) const;
  /// Time of a vector kernel on rows x columns elements that moves another number of bytes.
  double vector_bytes_ns(VectorKernel kernel, std::int64_t rows, std::int64_t columns,
                         double bytes) const;
  /// Host time to launch `kernels` kernels, in nanoseconds.
  double host_ns(std::int64_t kernels) const {
    return host_ns_per_kernel * static_cast<double>(kernels);
  }
  /// Lower bound on the time of a product: the larger of compute time, at `share` of the peak, and
  /// memory time. Includes no launch and no slowdown. Used for points and lower bounds.
  double ideal_matmul_ns(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch,
                         KernelType type, double share = 1) const;
  /// Lower bound on the time of attention: the larger of two times. One is for operations and
  /// exponentials at the peak, the other for reading operands and writing results once.
  double ideal_attention_ns(const AttentionShape& shape, KernelType type) const;
};

/// Reads a kernel table's file. Throws one InputError with every problem found.
KernelTable read_kernel_table(const std::string& path);
/// Parses the text of a kernel table's file; files of points and tables that it borrows from are
/// read through `open`. Errors as read_kernel_table().
KernelTable parse_kernel_table(std::string_view text, const std::string& origin,
                               const FileOpener& open);

struct YamlNode;

/// A device: either a kernel table or a chip, never both.
struct ClusterDevice {
  std::optional<KernelTable> table;
  std::optional<Chip> chip; ///< `frequency_hz` is positive

  /// Memory in bytes: the table's, or that of the chip's off-chip memory; 0 for a chip without one.
  double memory_bytes() const;
};

/// Reads the device. Throws InputError with every problem of the file. A chip without a frequency
/// in its file or the cluster's is an error at the position that names the chip.
ClusterDevice read_cluster_device(const DeviceFile& file);

/// Parameters of a kernel table that an experiment may override, concerning its host and its
/// libraries.
struct TableFigure {
  std::string_view key;
  double least = 0, most = 0;
  double KernelTable::*field;
};
inline constexpr TableFigure kTableFigures[]{
    {"host_ns_per_kernel", 0, 1e9, &KernelTable::host_ns_per_kernel},
    {"attention_share", 1e-6, 1, &KernelTable::attention_share},
};
/// A parameter of a kernel table with its value from an experiment.
struct GivenFigure {
  TableFigure figure;
  double value = 0;
  SourceLoc where;
};
/// Reads the value of a parameter. A value that is not a number or out of range adds a problem and
/// yields nullopt.
std::optional<GivenFigure> read_figure(const TableFigure& figure, const YamlNode& node,
                                       ProblemList& problems);
/// Overrides a parameter of the kernel table. Throws InputError if the device is a chip.
void set_figure(ClusterDevice& device, const GivenFigure& given);

} // namespace monet
