// An array that computes in memory: SRAM cells hold the weights, activations are applied bit by bit
// to its rows, and products are added up along its columns, as charges (analog) or in trees of
// adders (digital). The model is ZigZag 3.8's, of a 28 nm technology at 0.9 V;
// docs/explanation/in-memory-computing.md has its equations.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace monet {

enum class ImcKind { analog, digital };
std::string_view name_of(ImcKind kind);

/// One figure by the parts of an array: areas, delays or energies. 0 for a part that it lacks.
struct ImcParts {
  double precharge = 0; ///< of local bitlines, where several weights share a multiplier
  double cells = 0;
  double dacs = 0;
  double adcs = 0;
  double multipliers = 0;
  double bitlines = 0;     ///< additions of charges
  double adder_trees = 0;  ///< along the columns
  double place_values = 0; ///< adders of the bits of a weight or of an activation
  double accumulators = 0; ///< over the bits that come one after the other

  double total() const;
  /// Every part with the name that ZigZag has for it.
  std::array<std::pair<std::string_view, double>, 9> named() const;
  ImcParts& operator+=(const ImcParts& other);
  friend ImcParts operator*(ImcParts parts, double factor);
};

struct ImcArray {
  ImcKind kind = ImcKind::analog;
  std::int64_t activation_bits = 8;
  std::int64_t weight_bits = 8;
  std::int64_t serial_bits = 1; ///< of an activation, applied in one cycle
  std::int64_t adc_bits = 0;    ///< resolution, of an analog array
  std::size_t wordline = 0;     ///< array dim along which an input is broadcast
  std::size_t bitline = 1;      ///< array dim along which products are added up
  std::int64_t columns = 1;     ///< of weights: the size of `wordline`
  std::int64_t rows = 1;        ///< the size of `bitline`
  std::int64_t macros = 1;      ///< the product of the other sizes
  std::size_t cells = 0;        ///< index of the memory that holds the weights
  std::int64_t cell_bits = 8;   ///< of one element: its weights
  double cell_area_mm2 = 0;     ///< of one element

  /// Cycles in which every element does one multiplication.
  std::int64_t cycles_per_wave() const { return activation_bits / serial_bits; }
  /// Weights that take turns in one element.
  std::int64_t group_depth() const { return cell_bits / weight_bits; }
};

ImcParts imc_area_mm2(const ImcArray& array);
/// The path that decides the clock: its parts follow one another.
ImcParts imc_clock_ns(const ImcArray& array);
/// One cycle with every element in use; writing weights is left out.
ImcParts imc_peak_energy_pj(const ImcArray& array);

/// Of the array alone, fully used.
struct ImcPeak {
  double tops = 0; ///< a multiplication and its addition are two operations
  double tops_per_w = 0;
  double tops_per_mm2 = 0;
};
ImcPeak imc_peak(const ImcArray& array);

/// What a layer uses of an array.
struct ImcWork {
  std::int64_t rows = 1;    ///< that take an input
  std::int64_t columns = 1; ///< whose results count
  double waves = 0;         ///< multiplications of every element in use, over all macros
  double weight_reads = 0;  ///< in elements with several weights: how often one is chosen
};

ImcParts imc_energy_pj(const ImcArray& array, const ImcWork& work);
/// Of it, the part that takes ImcWork::weight_reads and nothing else.
double imc_precharge_pj(const ImcArray& array, double weight_reads);
/// No mapping takes less for a multiply-accumulate.
double min_imc_energy_pj(const ImcArray& array);

} // namespace monet
