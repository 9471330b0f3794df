// The equation of an Einsum, read: "...ij,jk->...ik".
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// One letter per axis. Ellipses are replaced by letters that the equation leaves free, aligned at
/// their last axis, so that operands of fewer axes have the later ones.
struct EinsumEquation {
  std::vector<std::string> operands;
  std::string result; ///< each letter once
};

/// Reads an equation for operands with `ranks` axes. Without "->" the result has the axes of the
/// ellipsis and then every letter that occurs once, in alphabetical order (uppercase first).
/// Returns what is wrong, or an empty string.
std::string parse_einsum(std::string_view text, std::span<const std::size_t> ranks,
                         EinsumEquation& equation);

/// Size of every letter, indexed by the character; 0 for letters that do not occur. Axes of size 1
/// are broadcast. Returns what is wrong, or an empty string.
std::string einsum_sizes(const EinsumEquation& equation,
                         std::span<const std::vector<std::int64_t>> shapes,
                         std::vector<std::int64_t>& sizes);

} // namespace monet
