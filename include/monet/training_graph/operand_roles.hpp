// What the products of a step multiply, by role: weights, activations and errors (gradients of
// activations), with the scales of their blocks and the copies that blocks along other axes take.
#pragma once

#include "monet/training_graph/liveness.hpp"
#include "monet/training_graph/training.hpp"

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace monet {

enum class OperandRole { weights, activations, errors };
inline constexpr std::size_t kOperandRoles = 3;
std::string_view name_of(OperandRole role);

/// The same numbers in every form in which products read them.
struct ProductOperand {
  TensorId source;             ///< what the forms were made of by casts and quantisation
  std::vector<TensorId> forms; ///< in the order of their ids; more than one are copies
  Bits elements;               ///< of all forms, without scales
  Bits scales;                 ///< shared by blocks, and what fills up blocks at edges
};

struct RoleOperands {
  std::vector<ProductOperand> operands; ///< in the order of their sources
  Bits elements;
  Bits scales;
  Bits largest;                ///< of one operand, all its forms
  Bits read;                   ///< by all products together, every operand of one once
  Bits peak_live;              ///< while the operator runs at which most is live
  std::int64_t copies() const; ///< forms beyond the first of each operand
  Bits size() const { return elements + scales; }
};

/// What a step keeps of them: all weights, all activations, and errors one layer after the other.
Bits footprint(const std::array<RoleOperands, kOperandRoles>& roles);

/// Of a step with its views folded; products of updates do not count. A weight and its copy in full
/// precision are one source.
std::array<RoleOperands, kOperandRoles> operand_roles(const TrainingGraph& folded,
                                                      const Liveness& liveness);

} // namespace monet
