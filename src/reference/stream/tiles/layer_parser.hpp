// What the parsers of layers share.
#pragma once

#include "reference/stream/tiles/network.hpp"

namespace monet::stream {

std::string lower_case(std::string text); ///< of ASCII letters
/// Shape of an input; empty for one left out.
Shape input_shape(const ParseContext& context, std::size_t input);
Shape output_shape(const ParseContext& context);
void note(const ParseContext& context, std::string name, std::string what);

/// `rank` names from the left: the mapping's when there are so many, else B, H, D, K.
std::vector<std::string> elementwise_names(const ParseContext& context, std::size_t rank);
/// Bits from the attributes weight_size, act_size and output_size. Weights that another layer makes
/// are activations.
void set_precisions(const ParseContext& context, ParsedLayer& layer);

/// Of two predecessors `input`, 0 or 1, makes I and the other one W. One alone makes I; what nobody
/// makes is constant.
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
