// Which inner loop emulates a unit on given operands, and how: shared with stages that walk loop
// nests of their own.
#pragma once

#include "numerics/shared/panel.hpp"
#include "numerics/shared/plain_unit.hpp"

#include "monet/numerics/mac.hpp"

#include <cstdint>
#include <optional>
#include <span>

namespace monet {

/// What is known of an operand's numbers, as the multiplier reads them.
struct OperandFacts {
  double largest = 0;       ///< magnitude of finite numbers
  double smallest = 0;      ///< magnitude above 0; 0: there is none
  int lowest_bit = 0;       ///< all numbers are multiples of 2^this
  int significand_bits = 0; ///< most, of any number
  bool finite = true;
};
OperandFacts facts_of(std::span<const float> numbers,
                      Instructions instructions = Instructions::best);
OperandFacts facts_of(std::span<const double> numbers);
/// Of all parts of an operand together.
OperandFacts merged(std::span<const OperandFacts> facts);

/// How the converter of operands rounds.
Rounding converter_rounding(const Mac& mac);
/// decoded_operand() of all numbers, in place, and what is then known of them.
OperandFacts read_operands(std::span<float> numbers, const Mac& mac, int jobs = 1,
                           Instructions instructions = Instructions::best);

/// What the operands of a product add to what is known of the unit.
struct ProductRange {
  OperandFacts left;
  OperandFacts right;
  std::int64_t steps = 1; ///< products of an output
  std::int64_t chunk = 1; ///< products that are added up exactly
  int min_scale = 0;      ///< exponents of the scales of chunks
  int largest_scale = 0;
  bool powers_of_two = true; ///< the scales
};

/// Emulates one unit on operands of one range in vectors of single or double precision, whichever
/// first holds all that the unit computes; or not at all.
class MacEngine {
public:
  MacEngine(const Mac& mac, const ProductRange& range,
            Instructions instructions = Instructions::best);

  bool is_single() const { return single_.has_value(); }
  bool is_double() const { return !single_ && double_.has_value(); }
  /// Outputs need keys for random bits.
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

/// The inner loops of these instructions; InternalError where the machine has none of them.
const lanes::Kernels& kernels_of(Instructions instructions);

/// A format's numbers as the loops take them.
template <class Real>
lanes::Grid<Real> grid_of(const NumberFormat& format, const Rounding& rounding);
extern template lanes::Grid<float> grid_of<float>(const NumberFormat&, const Rounding&);
extern template lanes::Grid<double> grid_of<double>(const NumberFormat&, const Rounding&);

/// Blocks of 32 of these elements, cut and symmetric, by the exponent of the largest: what is
/// rounded is still to be said.
lanes::BlockRun block_run(const NumberFormat& element);

/// The two halves of the keys of outputs [first, first + count), as rounding_bits() has them.
void fill_keys(std::uint64_t seed, std::uint64_t first, std::span<std::uint32_t> low,
               std::span<std::uint32_t> high);

} // namespace monet
