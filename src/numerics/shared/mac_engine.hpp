// Chooses and runs the inner loop that emulates a unit on given operands. Stages with custom loop
// nests use it directly.
#pragma once

#include "numerics/shared/panel.hpp"
#include "numerics/shared/plain_unit.hpp"

#include "monet/numerics/mac.hpp"

#include <cstdint>
#include <optional>
#include <span>

namespace monet {

/// Bounds on an operand's numbers, as the multiplier reads them.
struct OperandFacts {
  double largest = 0;       ///< largest finite magnitude
  double smallest = 0;      ///< smallest magnitude above 0; 0 if all are 0
  int lowest_bit = 0;       ///< all numbers are multiples of 2^this
  int significand_bits = 0; ///< maximum of all numbers
  bool finite = true;
};
OperandFacts facts_of(std::span<const float> numbers,
                      Instructions instructions = Instructions::best);
OperandFacts facts_of(std::span<const double> numbers);
/// Facts that hold for all parts of an operand together.
OperandFacts merged(std::span<const OperandFacts> facts);

/// Rounding of the operand converter.
Rounding converter_rounding(const Mac& mac);
/// Applies decoded_operand() to all numbers in place; returns facts about the results.
OperandFacts read_operands(std::span<float> numbers, const Mac& mac, int jobs = 1,
                           Instructions instructions = Instructions::best);

/// Operand properties that decide, with the unit, which inner loop is exact.
struct ProductRange {
  OperandFacts left;
  OperandFacts right;
  std::int64_t steps = 1; ///< products per output
  std::int64_t chunk = 1; ///< products that are summed exactly
  int min_scale = 0;      ///< minimum exponent of chunk scales
  int largest_scale = 0;
  bool powers_of_two = true; ///< whether all scales are
};

/// Emulates a unit on operands of one range, in vectors of single or double precision: the first
/// that holds all intermediate results exactly, or neither.
class MacEngine {
public:
  MacEngine(const Mac& mac, const ProductRange& range,
            Instructions instructions = Instructions::best);

  bool is_single() const { return single_.has_value(); }
  bool is_double() const { return !single_ && double_.has_value(); }
  /// Whether outputs need keys for random bits.
  bool is_random() const;
  void panel(const lanes::Panel<float>& panel) const { kernels_->panel_single(panel, *single_); }
  void panel(const lanes::Panel<double>& panel) const { kernels_->panel_double(panel, *double_); }
  void pairs(const lanes::Pairs<float>& pairs) const { kernels_->pairs_single(pairs, *single_); }
  void pairs(const lanes::Pairs<double>& pairs) const { kernels_->pairs_double(pairs, *double_); }

private:
  const lanes::Kernels* kernels_;
  std::optional<lanes::Arithmetic<float>> single_;
  std::optional<lanes::Arithmetic<double>> double_;
};

/// Inner loops of an instruction set; throws InternalError if the machine does not support it.
const lanes::Kernels& kernels_of(Instructions instructions);

/// A format's numbers in the form that the loops use.
template <class Real>
lanes::Grid<Real> grid_of(const NumberFormat& format, const Rounding& rounding);
extern template lanes::Grid<float> grid_of<float>(const NumberFormat&, const Rounding&);
extern template lanes::Grid<double> grid_of<double>(const NumberFormat&, const Rounding&);

/// Parameters for symmetric, saturating blocks of 32 elements, scaled by the exponent of the
/// largest. The caller sets the arrays to round.
lanes::BlockRun block_run(const NumberFormat& element);

/// Computes the low and high halves of the keys of outputs [first, first + count), as
/// rounding_bits() uses them.
void fill_keys(std::uint64_t seed, std::uint64_t first, std::span<std::uint32_t> low,
               std::span<std::uint32_t> high);

} // namespace monet
