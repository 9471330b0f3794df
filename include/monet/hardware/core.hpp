// One core: an array of multipliers or lanes, and its memories from the innermost outwards. The
// format and the meaning of every field are those of ZigZag 3.8; what we add is optional.
#pragma once

#include "monet/base/errors.hpp"
#include "monet/base/ids.hpp"
#include "monet/base/units.hpp"
#include "monet/hardware/dram_rows.hpp"
#include "monet/hardware/mac_design.hpp"
#include "monet/numerics/blocks.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

struct ImcArray;    // monet/hardware/imc_array.hpp
struct CoreProgram; // monet/hardware/core_program.hpp

/// Operands of the memories: by convention I1 = activations, I2 = weights, O = outputs.
enum class MemoryOperand { I1, I2, O };
inline constexpr int kMemoryOperands = 3;
std::string_view name_of(MemoryOperand operand);

/// Direction of data seen from a memory. "High" is the memory above it (towards DRAM).
enum class Direction {
  fh, ///< written from the memory above
  tl, ///< read towards the memory (or the array) below
  fl, ///< written from below (outputs and partial sums)
  th, ///< read towards the memory above
};
inline constexpr int kDirections = 4;

enum class PortType { read, write, read_write };

struct PortUse {
  MemoryOperand operand;
  Direction direction;
  friend bool operator==(const PortUse&, const PortUse&) = default;
};

struct MemoryPort {
  std::string name;
  PortType type = PortType::read_write;
  std::int64_t bandwidth_min = 0; ///< bits per cycle: the granularity of an access
  std::int64_t bandwidth_max =
      0; ///< bits per cycle: a full word, what read/write energy is charged for
  std::vector<PortUse> allocation;
};

/// How our model made the figures of a memory: its answer, and what it was asked.
struct ModelledMemory {
  std::string kind; ///< "sram", "registers", or a kind of DRAM
  double node_nm = 0;
  std::int64_t word_bits = 0;
  int ports = 1;
  std::int64_t macros = 1;       ///< SRAM: arrays side by side, read together
  double wiring_pj = 0;          ///< part of the read energy: wires between them
  double access_ns = 0;          ///< SRAM only
  double monolithic_read_pj = 0; ///< as one array: upper bounds
  double monolithic_write_pj = 0;
  double monolithic_area_mm2 = 0;
  double pj_per_bit = 0; ///< DRAM only
};

struct Memory {
  std::string name;
  Bits size;
  double read_energy_pj = 0; ///< per access of bandwidth_max bits
  double write_energy_pj = 0;
  double area_mm2 = 0;
  double leakage_pj_per_cycle = 0;
  std::int64_t latency_cycles = 1;
  std::vector<MemoryOperand> operands;
  std::vector<MemoryPort> ports;
  /// Array dimensions over which ONE instance broadcasts or reduces; instances = product of the
  /// others' sizes.
  std::vector<bool> serves;
  bool automatic_cost = false;    ///< `auto_cost_extraction`: figures come from our memory model
  bool non_volatile = false;      ///< flash: holds frozen parameters, is not written during a step
  std::string dram_kind;          ///< `dram`: "lpddr5"; empty on a chip
  std::int64_t dram_channels = 0; ///< `dram_channels`; 0 = as many as the ports need
  std::optional<DramRows> dram_rows;      ///< of an off-chip memory, if opening rows takes time
  std::optional<ModelledMemory> modelled; ///< where the figures came from, if from our model
};

struct ArrayDim {
  std::string name; ///< "D1"
  std::int64_t size = 1;
  /// Products that one accumulator adds up in a cycle: unrolls loops that are summed over, and
  /// those alone that stay inside the blocks of scaled operands.
  bool sums = false;
};

/// Formats that an array multiplies in one way. A format with blocks stands for blocks of as many
/// rows and columns along any axes, one without for plain numbers.
struct ArrayMode {
  std::vector<TensorFormat> formats; ///< of both operands, which may differ
  std::int64_t products = 1;         ///< of one multiplier in a cycle, which it adds up
  double energy_pj = 0;              ///< per product
  bool automatic_cost = false;       ///< that figure comes from our arithmetic model
  SourceLoc where;
};

/// Layer dimensions unrolled on one array dimension, for example D1: [K 32].
struct Unrolling {
  std::string dim; ///< layer dimension
  std::int64_t factor = 1;
};

/// What a core is for, when nobody says which operators it takes.
enum class CoreKind { array, vector, pooling, offchip };
inline constexpr int kCoreKinds = 4;
std::string_view name_of(CoreKind kind);

struct Core {
  std::string name;
  CoreKind kind = CoreKind::array;
  std::vector<Memory> memories;            ///< bottom-up
  double mac_energy_pj = 0;                ///< per MAC, or per lane operation of a vector core
  double array_area_mm2 = 0;               ///< per multiplier or lane
  bool automatic_array_cost = false;       ///< both figures come from our arithmetic model
  std::string array_format;                ///< `format` of products or lanes, for that model
  std::string accumulate_format;           ///< `accumulate`; empty = the model's choice
  std::optional<MacDesign> mac;            ///< `mac`: its multiply-accumulate unit
  std::optional<ArithmeticCost> mac_parts; ///< of that, where our model priced it
  std::vector<ArrayMode> modes;            ///< empty: any operands, in the same way
  /// The core as it works in each of its modes: with the products of a multiplier as a further
  /// dimension of the array, served by every memory. Made by price(); they have no modes.
  std::shared_ptr<const std::vector<Core>> in_modes;
  /// Of an array that computes in memory; else null. `mac_energy_pj` is then the least that a MAC
  /// takes, and `array_area_mm2` holds the memory with the weights.
  std::shared_ptr<const ImcArray> imc;
  /// Of processors and GPUs, what their instructions or kernels take; else null.
  std::shared_ptr<const CoreProgram> program;
  double technology_nm = 0; ///< 0 = not given
  std::vector<ArrayDim> array;
  std::vector<std::vector<Unrolling>> dataflow; ///< per array dim; empty = free
  SourceLoc dataflow_where;                     ///< where a file gives it
  std::vector<std::string> operator_types;      ///< only these, when given
  bool runs_vector_operators = false; ///< an array core whose lanes also do element-wise work
  double cycles_per_transcendental = 4;
  double cycles_per_divide = 4; ///< also square roots
  std::string origin;

  std::int64_t lanes() const; ///< product of the array's sizes
  /// Indices into `memories` of the levels that hold the operand, bottom-up.
  std::vector<std::size_t> levels(MemoryOperand operand) const;
  /// The outermost memory of the operand, or null.
  const Memory* top(MemoryOperand operand) const;
  double area_mm2() const;
};

/// The port that serves an operand in a direction, or null.
const MemoryPort* port_of(const Memory& memory, MemoryOperand operand, Direction direction);
/// Instances of the memory in its core: product of the sizes of the array dims it does not serve.
std::int64_t instances(const Core& core, const Memory& memory);

} // namespace monet
