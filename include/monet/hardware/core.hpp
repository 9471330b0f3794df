// One core: an array of multipliers or lanes, and its memories from the innermost outwards. Format
// and fields are those of ZigZag 3.8; our additions are optional.
// Example:
//   Bits weight_buffer(const Core& core) {
//     const Memory* memory = core.top(MemoryOperand::I2);
//     return memory ? memory->size * instances(core, *memory) : Bits{};
//   }
#pragma once

#include "monet/base/errors.hpp"
#include "monet/base/ids.hpp"
#include "monet/base/interval.hpp"
#include "monet/base/units.hpp"
#include "monet/hardware/mac_design.hpp"
#include "monet/numerics/blocks.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// Units of a device and the shapes of the tiles that they compute.
struct TileWaves {
  struct TileShape {
    double rows = 0;
    double columns = 0;
    double share = 1; ///< maximum share of the peak for a tile of this shape
  };
  static constexpr std::size_t kMaxTileShapes = 12;
  double units = 1;
  std::array<TileShape, kMaxTileShapes> tiles{};
  std::size_t tile_count = 0; ///< 0: no tiles, no waves
  double fill = 0;            ///< start and end of a tile, as a number of reduction steps
};

/// Size of a product: `batch` products of rows x sums by sums x columns, each at least 1.
struct ProductSize {
  double rows = 1;
  double columns = 1;
  double sums = 1;
  double batch = 1;
};

/// Number of multiplications that the units perform for a product, including idle ones, with the
/// best tile shape. If one wave is not full, the reduction is also split. Without tiles, the
/// multiplications of the product itself.
double worked_multiplications(const TileWaves& waves, const ProductSize& product);

/// Organisation of a DRAM into banks, each with one open row at a time. Consecutive rows of a
/// transfer are in alternating banks, so that the next rows are opened while one is read or
/// written.
struct DramRows {
  std::int64_t banks = 1;
  std::int64_t row_bits = 1; ///< bits of one row over all devices and channels of the port
  std::int64_t t_row = 0;    ///< cycles to precharge a bank and activate another row

  friend bool operator==(const DramRows&, const DramRows&) = default;
};

/// Number of rows that hold a box of a contiguous row-major tensor whose element 0 is at the
/// beginning of a row. The box is a number of contiguous runs; each row counts once, even if it
/// holds several runs. 0 for an empty box.
std::int64_t rows_of_box(const Box& box, std::span<const std::int64_t> shape,
                         std::int64_t element_bits, std::int64_t row_bits);

/// Additional cycles of a transfer beyond the `stream_cycles` > 0 in which its bits cross the port,
/// if they lie in equal parts in `rows` > 0 rows. The first row costs t_row. With c cycles of bits
/// per row, every `banks` rows then need max(banks x c, t_row + c) cycles, since a bank opens its
/// next row once the previous one has been transferred. Not modelled: rows open at the start, other
/// transfers in the same banks, refresh, read-write turnaround.
std::int64_t row_overhead(const DramRows& dram, std::int64_t rows, std::int64_t stream_cycles);

struct ImcArray;    // monet/hardware/imc_array.hpp
struct CoreProgram; // hardware/shared/core_program.hpp

/// Operands of memories; by convention I1 = activations, I2 = weights, O = outputs.
enum class MemoryOperand { I1, I2, O };
inline constexpr int kMemoryOperands = 3;
std::string_view name_of(MemoryOperand operand);

/// Direction of data as seen from a memory: to or from the memory above (towards DRAM), or the
/// memory or array below.
enum class Direction {
  fh, ///< written from the memory above
  tl, ///< read towards the memory (or the array) below
  fl, ///< written from below (outputs and partial sums)
  th, ///< read towards the memory above
};
inline constexpr int kDirections = 4;

/// Kind of a memory port.
enum class PortType { read, write, read_write };

/// An operand and direction that a port serves.
struct PortUse {
  MemoryOperand operand;
  Direction direction;
  friend bool operator==(const PortUse&, const PortUse&) = default;
};

/// A port of a memory.
struct MemoryPort {
  std::string name;
  PortType type = PortType::read_write;
  std::int64_t bandwidth_min = 0; ///< bits per cycle: granularity of accesses
  std::int64_t bandwidth_max = 0; ///< bits per cycle: a full word, the unit of access energy
  std::vector<PortUse> allocation;
};

/// Details of a memory priced by our model: the parameters of the query and its results.
struct ModelledMemory {
  std::string kind; ///< "sram", "registers", or a DRAM kind
  double node_nm = 0;
  std::int64_t word_bits = 0;
  int ports = 1;
  std::int64_t macros = 1;       ///< SRAM: arrays that are read together
  double wiring_pj = 0;          ///< part of the read energy for wires between macros
  double access_ns = 0;          ///< SRAM only
  double monolithic_read_pj = 0; ///< without splitting: upper bounds
  double monolithic_write_pj = 0;
  double monolithic_area_mm2 = 0;
  double pj_per_bit = 0; ///< DRAM only
};

/// A memory of a core.
struct Memory {
  std::string name;
  Bits size;
  double read_energy_pj = 0; ///< energy per access of bandwidth_max bits
  double write_energy_pj = 0;
  double area_mm2 = 0;
  double leakage_pj_per_cycle = 0;
  std::int64_t latency_cycles = 1;
  std::vector<MemoryOperand> operands;
  std::vector<MemoryPort> ports;
  /// Whether one instance broadcasts or reduces over each array dimension. The number of instances
  /// is the product of the other dimensions' sizes.
  std::vector<bool> serves;
  bool automatic_cost = false;       ///< `auto_cost_extraction`: figures from our memory model
  bool non_volatile = false;         ///< flash: holds frozen parameters, not written during a step
  std::string dram_kind;             ///< `dram`: "lpddr5"; empty for an on-chip memory
  std::int64_t dram_channels = 0;    ///< `dram_channels`; 0 = the number that the ports need
  std::optional<DramRows> dram_rows; ///< rows of an off-chip memory, if opening them takes time
  std::optional<ModelledMemory> modelled; ///< details of the figures, if they are from our model
};

/// A dimension of a core's array.
struct ArrayDim {
  std::string name; ///< "D1"
  std::int64_t size = 1;
  /// Whether one accumulator sums the products along this dimension in a cycle. Only reduction
  /// loops that stay inside the blocks of scaled operands are unrolled over it.
  bool sums = false;
};

/// A group of formats that an array multiplies in the same way. A format with blocks stands for
/// blocks of the same number of rows and columns along any axes; a format without blocks stands for
/// plain numbers.
struct ArrayMode {
  std::vector<TensorFormat> formats; ///< formats of both operands, which may differ
  std::int64_t products = 1;         ///< products per multiplier and cycle, which it sums
  double energy_pj = 0;              ///< energy per product
  bool automatic_cost = false;       ///< energy_pj is from our arithmetic model
  SourceLoc where;
};

/// Layer dimensions unrolled over one array dimension, for example D1: [K 32].
struct Unrolling {
  std::string dim; ///< layer dimension
  std::int64_t factor = 1;
};

/// Purpose of a core, if the file does not list its operator types.
enum class CoreKind { array, vector, pooling, offchip };
inline constexpr int kCoreKinds = 4;
std::string_view name_of(CoreKind kind);

/// A core with its array, memories and dataflow.
struct Core {
  std::string name;
  CoreKind kind = CoreKind::array;
  std::vector<Memory> memories;      ///< innermost first
  double mac_energy_pj = 0;          ///< energy per MAC, or per lane operation of a vector core
  double array_area_mm2 = 0;         ///< area per multiplier or lane
  bool automatic_array_cost = false; ///< both figures are from our arithmetic model
  std::string array_format;          ///< `format` of products or lanes, for that model
  std::string accumulate_format;     ///< `accumulate`; empty = the model's choice
  std::optional<MacDesign> mac;      ///< `mac`: multiply-accumulate unit
  std::optional<ArithmeticCost> mac_parts; ///< cost of that unit, if priced by our model
  std::vector<ArrayMode> modes;            ///< empty: any operands, in the same way
  /// The core in each of its modes. The products of a multiplier are a further dimension of the
  /// array, served by every memory. Set by price(); these cores have no modes.
  std::shared_ptr<const std::vector<Core>> in_modes;
  /// Properties of an array that computes in memory; otherwise null. `mac_energy_pj` is then the
  /// minimum per MAC, and `array_area_mm2` includes the memory of the weights.
  std::shared_ptr<const ImcArray> imc;
  /// Instruction or kernel costs of processors and GPUs; otherwise null.
  std::shared_ptr<const CoreProgram> program;
  double technology_nm = 0; ///< 0 = unknown
  std::vector<ArrayDim> array;
  std::vector<std::vector<Unrolling>> dataflow; ///< unrollings per array dim; empty = free
  SourceLoc dataflow_where;                     ///< position in the file, if given
  std::vector<std::string> operator_types; ///< if not empty, only these operators run on the core
  bool runs_vector_operators = false; ///< an array core whose lanes also run element-wise operators
  double cycles_per_transcendental = 4;
  double cycles_per_divide = 4; ///< cycles of a division or a square root
  std::string origin;

  std::int64_t lanes() const; ///< product of the array's sizes
  /// Indices into `memories` of the levels that hold the operand, innermost first.
  std::vector<std::size_t> levels(MemoryOperand operand) const;
  /// Outermost memory of the operand, or null.
  const Memory* top(MemoryOperand operand) const;
  double area_mm2() const;
};

/// Port that serves an operand in a direction, or null.
const MemoryPort* port_of(const Memory& memory, MemoryOperand operand, Direction direction);
/// Number of instances of a memory in its core: product of the sizes of the array dims that it does
/// not serve.
std::int64_t instances(const Core& core, const Memory& memory);

} // namespace monet
