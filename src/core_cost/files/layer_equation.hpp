// The small language of ZigZag's workloads: equations such as
// "O[b][k][oy][ox]+=W[k][c][fy][fx]*I[b][c][iy][ix]" and relations such as "ix=2*ox+1*fx". Also the
// order in which ZigZag processes layers.
#pragma once

#include "monet/base/errors.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace monet::core_cost_detail {

struct EquationOperand {
  std::string name;
  std::vector<std::string> indices;
};

/// Relation: lhs = first_coefficient * first + second_coefficient * second.
struct Relation {
  std::string lhs;
  std::string first;
  std::string second;
  std::int64_t first_coefficient = 1;
  std::int64_t second_coefficient = 1;
  SourceLoc where;
  std::int64_t extent = 0; ///< of the operand's axis, without padding
};

/// Upper-case form; loop dims are equal whether written in the equation (ox) or in `loop_dims`
/// (OX).
std::string upper(std::string_view text);

/// Output and two inputs of an equation; empty if the text is not such an equation.
std::vector<EquationOperand> scan_equation(std::string_view text);

std::optional<Relation> scan_relation(std::string_view text);

/// Layers in ZigZag's order, generation by generation: first layers without parents, then layers
/// whose last parent was just processed, in the order in which they become ready. `parents` by
/// layer.
std::vector<std::size_t> by_generation(const std::vector<std::vector<std::size_t>>& parents);

} // namespace monet::core_cost_detail
