// An array that computes in memory: SRAM cells hold the weights, and activations are applied bit by
// bit to its rows. Products are summed along its columns, as charges (analog) or by adder trees
// (digital). The model is that of ZigZag 3.8 for a 28 nm technology at 0.9 V;
// docs/explanation/in-memory-computing.md has the equations.
// Example:
//   double peak_tops_per_w(std::int64_t rows, std::int64_t columns) {
//     ImcArray array;
//     array.kind = ImcKind::digital;
//     array.rows = rows;
//     array.columns = columns;
//     return imc_peak(array).tops_per_w;
//   }
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace monet {

/// Kind of summation along the columns.
enum class ImcKind { analog, digital };
std::string_view name_of(ImcKind kind);

/// A figure (area, delay or energy) by part of an array; 0 for a missing part.
struct ImcParts {
  double precharge = 0; ///< precharge of local bitlines, if several weights share a multiplier
  double cells = 0;
  double dacs = 0;
  double adcs = 0;
  double multipliers = 0;
  double bitlines = 0;     ///< summation of charges
  double adder_trees = 0;  ///< along the columns
  double place_values = 0; ///< adders over the bits of a weight or an activation
  double accumulators = 0; ///< over serially applied bits

  double total() const;
  /// All parts with ZigZag's names.
  std::array<std::pair<std::string_view, double>, 9> named() const;
  ImcParts& operator+=(const ImcParts& other);
  friend ImcParts operator*(ImcParts parts, double factor);
};

/// Geometry and precision of an array that computes in memory.
struct ImcArray {
  ImcKind kind = ImcKind::analog;
  std::int64_t activation_bits = 8;
  std::int64_t weight_bits = 8;
  std::int64_t serial_bits = 1; ///< bits of an activation applied per cycle
  std::int64_t adc_bits = 0;    ///< resolution of the ADCs of an analog array
  std::size_t wordline = 0;     ///< array dim along which an input is broadcast
  std::size_t bitline = 1;      ///< array dim along which products are summed
  std::int64_t columns = 1;     ///< number of weights: the size of `wordline`
  std::int64_t rows = 1;        ///< size of `bitline`
  std::int64_t macros = 1;      ///< product of the other sizes
  std::size_t cells = 0;        ///< index of the memory that holds the weights
  std::int64_t cell_bits = 8;   ///< weight bits of one element
  double cell_area_mm2 = 0;     ///< area of one element

  /// Cycles of one multiplication in every element.
  std::int64_t cycles_per_wave() const { return activation_bits / serial_bits; }
  /// Number of weights that share one element in turn.
  std::int64_t group_depth() const { return cell_bits / weight_bits; }
};

/// Area of the array by part, in mm2.
ImcParts imc_area_mm2(const ImcArray& array);
/// Delay of the critical path by part, in ns; its parts are in series.
ImcParts imc_clock_ns(const ImcArray& array);
/// Energy of one cycle with every element in use, by part, in pJ; excludes writing weights.
ImcParts imc_peak_energy_pj(const ImcArray& array);

/// Peak figures of the array alone, fully used.
struct ImcPeak {
  double tops = 0; ///< a multiply-accumulate counts as two operations
  double tops_per_w = 0;
  double tops_per_mm2 = 0;
};
ImcPeak imc_peak(const ImcArray& array);

/// Use of an array by a layer.
struct ImcWork {
  std::int64_t rows = 1;    ///< rows that receive an input
  std::int64_t columns = 1; ///< columns with results that are used
  double waves = 0;         ///< multiplications of each used element, over all macros
  double weight_reads = 0;  ///< selections of a weight, in elements with several weights
};

/// Energy of a layer's work by part, in pJ.
ImcParts imc_energy_pj(const ImcArray& array, const ImcWork& work);
/// Energy of ImcWork::weight_reads, the precharge part of imc_energy_pj(), in pJ.
double imc_precharge_pj(const ImcArray& array, double weight_reads);
/// Lower bound on the energy of a multiply-accumulate over all mappings, in pJ.
double min_imc_energy_pj(const ImcArray& array);

} // namespace monet
