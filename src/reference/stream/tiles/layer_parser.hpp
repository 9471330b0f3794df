// Functions shared by the parsers of layers, and the parsers themselves.
#pragma once

#include "reference/stream/tiles/network.hpp"

namespace monet::stream {

std::string lower_case(std::string text); ///< converts ASCII letters
/// Shape of an input; empty if the input is omitted.
Shape input_shape(const ParseContext& context, std::size_t input);
Shape output_shape(const ParseContext& context);
void note(const ParseContext& context, std::string name, std::string what);

/// Names of `rank` axes: those of the mapping entry if it has exactly `rank` names, otherwise B, H,
/// D, K and generated names.
std::vector<std::string> elementwise_names(const ParseContext& context, std::size_t rank);
/// Sets the precisions from the attributes weight_size, act_size and output_size. Weights made by
/// another layer count as activations.
void set_precisions(const ParseContext& context, ParsedLayer& layer);

/// Sets the sources of I and W. With two predecessors, number `input` (0 or 1) makes I and the
/// other W; a single one makes I. Operands without a predecessor are constant.
void set_sources(const ParseContext& context, ParsedLayer& layer, std::size_t input);

ParsedLayer parse_conv(const ParseContext& context);
ParsedLayer parse_pool(const ParseContext& context);
ParsedLayer parse_product(const ParseContext& context); ///< Gemm, MatMul
ParsedLayer parse_einsum(const ParseContext& context);
ParsedLayer parse_one_input(const ParseContext& context);  ///< Relu and the like, Div, Pow
ParsedLayer parse_two_inputs(const ParseContext& context); ///< Add, Mul
ParsedLayer parse_reduction(const ParseContext& context);
std::vector<ParsedLayer> parse_softmax(const ParseContext& context);

} // namespace monet::stream
