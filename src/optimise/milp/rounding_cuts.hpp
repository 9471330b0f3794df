// Cuts from rows and from sums of rows, for programs of binary columns.
#pragma once

#include "optimise/milp/milp_model.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace monet {

/// Rows with what rounding needs to know of them.
struct RoundingRows {
  std::vector<LinearRow> rows;
  std::vector<char> whole;          ///< per row: integer coefficients and sides
  std::vector<double> lower, upper; ///< of columns, 0 and 1 or fixed
  std::vector<double> x;            ///< the point to cut off
  std::vector<double> activity;     ///< of rows there
};

/// The cut (Marchand, Wolsey 2001) of the sum of rows with `multipliers`, or of its negative, that
/// is broken most, divided by its norm: false where none is by `least`. Holds for every integer
/// point of rows and bounds: rounding is continuous in the coefficients where the fraction of the
/// right side is not near 0 or 1, and the side is moved by more than what errors there can be.
bool rounding_cut(const RoundingRows& rows, std::span<const double> multipliers, double least,
                  LinearRow& cut, double& broken);

/// The cut that says that not all of a cover of a row are one: columns (or what they lack to one)
/// whose terms add up to more than the row's side. Other columns count as many as they outweigh of
/// the cover's largest (Balas 1975). `up`: of the row's upper side. As rounding_cut otherwise.
bool cover_cut(const RoundingRows& rows, std::uint32_t row, bool up, double least, LinearRow& cut);

} // namespace monet
