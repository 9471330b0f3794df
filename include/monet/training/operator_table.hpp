// What is supported, as a table for people: docs/operators.md is this text.
#pragma once

#include <string>

namespace monet {

/// Markdown: every operator of ONNX and other foreign domains that can be read, whether it is a
/// view, and whether a training step can go backwards through it.
std::string operator_table();

} // namespace monet
