// The small language of ZigZag's workloads: equations such as
// "O[b][k][oy][ox]+=W[k][c][fy][fx]*I[b][c][iy][ix]" and relations such as "ix=2*ox+1*fx". The
// order in which ZigZag takes the layers.
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

/// lhs = first_coefficient * first + second_coefficient * second
struct Relation {
  std::string lhs;
  std::string first;
  std::string second;
  std::int64_t first_coefficient = 1;
  std::int64_t second_coefficient = 1;
  SourceLoc where;
  std::int64_t extent = 0; ///< of the operand's axis, without padding
};

/// Loop dims are the same whether written in the equation (ox) or in `loop_dims` (OX).
std::string upper(std::string_view text);

/// Output and two inputs; empty when the text is no such equation.
std::vector<EquationOperand> scan_equation(std::string_view text);

std::optional<Relation> scan_relation(std::string_view text);

/// `parents` by layer, all listed before it. Generation by generation: first those without parents,
/// then those whose last parent was just taken, in the order in which they become free.
std::vector<std::size_t> by_generation(const std::vector<std::vector<std::size_t>>& parents);

} // namespace monet::core_cost_detail
