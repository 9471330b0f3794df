// Which floating initialisers are buffers, that is: kept, but never trained. ONNX does not say.
#pragma once

#include "workload/onnx/model.hpp"

namespace monet::onnx_file {

/// A use of a value: input `input` of a node.
struct Use {
  const Node* node = nullptr;
  std::size_t input = 0;
};

/// Why an initialiser can be no parameter, told by its name ("inv_freq", "causal_mask"); empty = it
/// can. Names that parameters have as well ("mask") count where no number speaks against it.
std::string buffer_by_name(std::string_view name, const Value& value);

/// The same told by its numbers: infinities, triangles of ones, sines, sequences, fixed filters and
/// so on, which no training leaves behind. `uses`: everything that reads it.
std::string buffer_by_numbers(const Value& value, const std::vector<Use>& uses);

/// A name that an exporter or optimiser gave ("/attn/Constant_output_0", "onnx::Div_37",
/// "const_fold_opt__12"), not a module: a scalar of that name is a constant.
bool is_constant_name(std::string_view name);

/// A scalar that is called after its number ("half"), or a small one called epsilon.
bool is_named_number(std::string_view name, double value);

} // namespace monet::onnx_file
