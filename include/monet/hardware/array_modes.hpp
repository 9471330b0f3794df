// Which of its modes an array works in: that of the formats of a product's operands.
#pragma once

#include "monet/hardware/core.hpp"
#include "monet/workload/graph.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace monet {

/// The formats in which an operator's products are multiplied, each once: those of the tensors, or
/// what a unit converts operands to (Operator::multiplied_in). Empty for operators without
/// products.
std::vector<TensorFormat> multiplied_formats(const Graph& graph, const Operator& op);

/// Loops of an operator's products along which blocks of an operand follow one another, as bits by
/// their number: products in different blocks have different scales, which no multiplier adds up.
std::uint32_t loops_across_blocks(const Graph& graph, const Operator& op);

/// The mode takes all of them.
bool takes(const ArrayMode& mode, std::span<const TensorFormat> operands);
/// The core takes them in one of its modes, or has none.
bool takes(const Core& core, std::span<const TensorFormat> operands);
/// The core in the first of its modes that takes the operands; itself where it has no modes, or
/// where there are no operands. InfeasibleError naming the formats and the core's modes.
const Core& in_mode_for(const Core& core, std::span<const TensorFormat> operands);
/// The same for an operator, which the error names.
const Core& in_mode_for(const Core& core, const Graph& graph, const Operator& op);

/// "mxfp8_e4m3 and mxfp4_e2m1".
std::string formats_text(std::span<const TensorFormat> formats);
/// "[mxint8], [mxfp8_e4m3, mxfp8_e5m2]".
std::string modes_text(std::span<const ArrayMode> modes);

/// The core as it works in one of its modes. A mode of one product adds no dimension.
Core in_mode(const Core& core, const ArrayMode& mode);
/// Products of the array in a cycle in its fastest mode: products_per_cycle() where it has none.
double max_products(const Core& core);
/// Cycles that a multiplier takes for a product: several where the bits of an operand come one
/// after the other, as in arrays that compute in memory.
std::int64_t cycles_per_product(const Core& core);
/// Products of an array in a cycle, or lane operations: lanes() over cycles_per_product(). A core
/// with more of them is the stronger one.
double products_per_cycle(const Core& core);
/// pJ that the array takes in a cycle in the mode that takes most.
double max_energy_pj(const Core& core);

} // namespace monet
