// Operands of the products of a step by role: weights, activations and errors (gradients of
// activations). Includes the scales of their blocks and the copies for blocks along other axes.
#pragma once

#include "monet/training_graph/liveness.hpp"
#include "monet/training_graph/training.hpp"

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace monet {

/// Role of a product's operand; errors are gradients of activations.
enum class OperandRole { weights, activations, errors };
/// Number of roles.
inline constexpr std::size_t kOperandRoles = 3;
std::string_view name_of(OperandRole role);

/// An operand of products: one source tensor with all forms of it that products read.
struct ProductOperand {
  TensorId source;             ///< origin of the forms, before casts and quantisation
  std::vector<TensorId> forms; ///< in the order of their ids; several are copies
  Bits elements;               ///< of all forms, without scales
  Bits scales;                 ///< of blocks, including padding of blocks at edges
};

/// Operands of one role, with their sizes.
struct RoleOperands {
  std::vector<ProductOperand> operands; ///< in the order of their sources
  Bits elements;
  Bits scales;
  Bits largest;                ///< maximum size of one operand with all its forms
  Bits read;                   ///< by all products together, each reading an operand once
  Bits peak_live;              ///< while the operator with the maximum runs
  std::int64_t copies() const; ///< number of forms beyond the first of each operand
  Bits size() const { return elements + scales; }
};

/// Memory that a step needs for them: all weights, all activations, and errors of one layer at a
/// time.
Bits footprint(const std::array<RoleOperands, kOperandRoles>& roles);

/// Finds the operands of a step whose views are folded; products of updates do not count. A weight
/// and its full-precision copy are one source.
std::array<RoleOperands, kOperandRoles> operand_roles(const TrainingGraph& folded,
                                                      const Liveness& liveness);

} // namespace monet
