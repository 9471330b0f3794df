// What is supported, as a table for people: docs/reference/operators.md is this text.
#pragma once

#include <string>

namespace monet {

/// Markdown: every operator of ONNX and other foreign domains that can be read, whether it is a
/// view, whether a training step can go backwards through it, how it is fused, and whether it can
/// be executed.
std::string operator_table();

} // namespace monet
