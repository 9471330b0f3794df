// Cuts of single rows and of sums of rows, for programs with binary columns.
#pragma once

#include "optimise/milp/milp_model.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace monet {

/// Rows with the data that rounding needs.
struct RoundingRows {
  std::vector<LinearRow> rows;
  std::vector<char> whole;          ///< per row: whether coefficients and sides are integers
  std::vector<double> lower, upper; ///< per column: 0 and 1, or fixed
  std::vector<double> x;            ///< point to cut off
  std::vector<double> activity;     ///< per row: its value at x
};

/// Finds the most violated rounding cut (Marchand, Wolsey 2001) of the sum of rows with
/// `multipliers` or of its negative, with violations divided by the cut's norm. Returns false if no
/// violation is at least `least`. The cut is valid for every integer point of rows and bounds.
/// Rounding is continuous in the coefficients if the side's fraction is not near 0 or 1, and the
/// side is moved by more than the possible error.
bool rounding_cut(const RoundingRows& rows, std::span<const double> multipliers, double least,
                  LinearRow& cut, double& broken);

/// Finds a cover cut of a row: not all columns (or complements) of a cover are one, since their
/// terms exceed the row's side. The coefficient of another column is the number of largest cover
/// terms that its term outweighs (Balas 1975). `up`: whether the row's upper side is used. Returns
/// as rounding_cut().
bool cover_cut(const RoundingRows& rows, std::uint32_t row, bool up, double least, LinearRow& cut);

} // namespace monet
