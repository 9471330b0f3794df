// Table of supported operators for readers; docs/reference/operators.md is this text.
#pragma once

#include <string>

namespace monet {

/// Markdown table of every readable operator of ONNX and other foreign domains. It states whether
/// an operator is a view, whether it has a gradient in training steps, how it is fused, and whether
/// it can be executed.
std::string operator_table();

} // namespace monet
