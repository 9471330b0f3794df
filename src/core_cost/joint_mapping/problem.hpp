// Pair of products as the search uses it: integers only, so closed forms and simulations agree
// exactly.
#pragma once

#include "monet/core_cost/backward.hpp"

#include <array>
#include <cstdint>

namespace monet::joint_mapping {

/// 128-bit sums of times, since 2^-28 of a cycle times 2^54 cycles exceeds 64 bits.
__extension__ typedef __int128 Wide;

inline constexpr int kDims = 3;            ///< as GemmDim: m, k, n
inline constexpr std::int64_t kFine = 256; ///< traffic unit: 1/256 bit (for raw feature maps)

constexpr std::size_t at(int i) {
  return static_cast<std::size_t>(i);
}
constexpr std::size_t at(BackwardOperand operand) {
  return static_cast<std::size_t>(operand);
}

inline constexpr int kDx = 0; ///< products
inline constexpr int kDw = 1;
inline constexpr int kResult = 2; ///< operands of a product: left factor, right factor, result

/// Operand `place` of a product.
constexpr BackwardOperand operand_of(int product, int place) {
  constexpr BackwardOperand kOperands[2][3] = {
      {BackwardOperand::dy, BackwardOperand::w, BackwardOperand::dx},
      {BackwardOperand::x, BackwardOperand::dy, BackwardOperand::dw}};
  return kOperands[product][place];
}
constexpr int absent_dim(BackwardOperand operand) {
  switch (operand) {
  case BackwardOperand::dy:
    return 1;
  case BackwardOperand::w:
  case BackwardOperand::dw:
    return 0;
  default:
    return 2;
  }
}

/// Elements of an operand with these extents by dimension.
template <class Number>
constexpr Number elements_of(BackwardOperand operand, const std::array<Number, kDims>& extents) {
  Number product = 1;
  for (int d = 0; d < kDims; ++d)
    product *= d == absent_dim(operand) ? Number{1} : extents[at(d)];
  return product;
}

struct PairProblem {
  std::array<std::int64_t, kDims> size{1, 1, 1};
  bool has_dx = true;
  std::int64_t room = 0;                       ///< bits of the memory available to a step
  std::array<std::int64_t, 5> held{};          ///< bits of an element on the chip, by operand
  std::array<std::int64_t, 5> moved{};         ///< of a factor or a finished result, 1/256 bit
  std::array<std::int64_t, 5> moved_partial{}; ///< of a sum that is not complete, 1/256 bit
  /// Whether dW is applied on the chip, which replaces its write; costs are per element of dW.
  bool update = false;
  std::int64_t update_held = 0;
  std::int64_t update_read = 0; ///< 1/256 bit
  std::int64_t update_write = 0;
  /// Unit of time: 1 / cycle_units of a cycle; moving 1/256 bit takes move_units.
  std::int64_t cycle_units = 1;
  std::int64_t move_units = 1;
  bool hide_writes = true;
  TileTiming timing = TileTiming::systolic_os;
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::int64_t fill = 0; ///< cycles of filling and draining the array
  std::function<std::int64_t(std::int64_t, std::int64_t, std::int64_t)> tile_cycles;

  std::int64_t elements(BackwardOperand operand) const { return elements_of(operand, size); }
  /// Cycles of the array for a tile of a product.
  std::int64_t cycles(int product, const std::array<std::int64_t, kDims>& tile) const;
};

/// Dimensions of a product on rows, on columns, and streamed.
std::array<int, 3> array_roles(int product, TileTiming timing);
/// Cycles that filling and draining add to what streams.
constexpr std::int64_t fill_and_drain(std::int64_t rows, std::int64_t columns) {
  return 2 * rows + columns - 2;
}

/// Builds the problem and makes the checks that backward_cost() documents.
PairProblem make_problem(const GemmPair& pair, const NpuMachine& machine,
                         const BackwardOptions& options, bool update);

/// backward_cost() of a problem that make_problem() made of the pair, which may have been changed.
BackwardCost pair_cost(const PairProblem& problem, const GemmPair& pair, Technique technique,
                       const BackwardOptions& options);

/// Cycles of a time and of bits, rounded up.
std::int64_t cycles_of(Wide time, std::int64_t units);
std::int64_t transfer_cycles(Wide bits, const NpuMachine& machine);

} // namespace monet::joint_mapping
