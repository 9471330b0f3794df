// Parsed equation of an Einsum: "...ij,jk->...ik".
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// Equation with one letter per axis. Unused letters replace ellipses, aligned at their last axis,
/// so that operands with fewer axes have the later letters.
struct EinsumEquation {
  std::vector<std::string> operands;
  std::string result; ///< each letter once
};

/// Parses an equation for operands with `ranks` axes. Without "->" the result has the ellipsis'
/// axes, then every letter that occurs once, in alphabetical order (uppercase first). Returns the
/// problem, or an empty string.
std::string parse_einsum(std::string_view text, std::span<const std::size_t> ranks,
                         EinsumEquation& equation);

/// Computes the size of every letter, indexed by character; 0 for letters that do not occur. Axes
/// of size 1 broadcast. Returns the problem, or an empty string.
std::string einsum_sizes(const EinsumEquation& equation,
                         std::span<const std::vector<std::int64_t>> shapes,
                         std::vector<std::int64_t>& sizes);

} // namespace monet
