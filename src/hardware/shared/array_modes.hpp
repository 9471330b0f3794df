// Modes of an array: selection by the formats of a product's operands, and rates and energy per
// mode.
#pragma once

#include "monet/hardware/core.hpp"
#include "monet/workload/graph.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace monet {

/// Formats in which an operator's products are multiplied, without duplicates: those of the
/// tensors, or those to which a unit converts operands (Operator::multiplied_in). Empty for
/// operators without products.
std::vector<TensorFormat> multiplied_formats(const Graph& graph, const Operator& op);

/// Loops of an operator's products that go across blocks of an operand, as a bit mask. Products in
/// different blocks have different scales, so a multiplier cannot sum them.
std::uint32_t loops_across_blocks(const Graph& graph, const Operator& op);

/// Whether the mode supports all of the operand formats.
bool takes(const ArrayMode& mode, std::span<const TensorFormat> operands);
/// Whether one of the core's modes supports all of the operand formats; true without modes.
bool takes(const Core& core, std::span<const TensorFormat> operands);
/// The core in its first mode that supports the operands; the core itself without modes or without
/// operands. Throws InfeasibleError naming the formats and the core's modes.
const Core& in_mode_for(const Core& core, std::span<const TensorFormat> operands);
/// The core in its first mode that supports an operator, which the error names.
const Core& in_mode_for(const Core& core, const Graph& graph, const Operator& op);

/// List of formats: "mxfp8_e4m3 and mxfp4_e2m1".
std::string formats_text(std::span<const TensorFormat> formats);
/// List of modes: "[mxint8], [mxfp8_e4m3, mxfp8_e5m2]".
std::string modes_text(std::span<const ArrayMode> modes);

/// The core in one of its modes. A mode with one product per multiplier adds no array dimension.
Core in_mode(const Core& core, const ArrayMode& mode);
/// Products per cycle of the array in its fastest mode; products_per_cycle() without modes.
double max_products(const Core& core);
/// Cycles per product of a multiplier; more than 1 if the bits of an operand are applied serially,
/// as in arrays that compute in memory.
std::int64_t cycles_per_product(const Core& core);
/// Products or lane operations of an array per cycle: lanes() divided by cycles_per_product(). It
/// ranks cores by speed.
double products_per_cycle(const Core& core);
/// Maximum energy of the array per cycle over its modes, in pJ.
double max_energy_pj(const Core& core);

} // namespace monet
