// Words that readers know. Made from what they themselves read, so that no list grows stale.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace monet::fuzz {

struct OperatorName {
  std::string domain, op_type;
};
/// Of the operator registry.
const std::vector<OperatorName>& operator_names();
/// Attributes of those operators, as libonnx declares them.
const std::vector<std::string>& attribute_names();
/// Keys and names in the readers of text: the quoted words of their sources, listed by the build.
const std::vector<std::string_view>& text_words();

/// Everything as a dictionary of libFuzzer.
std::string dictionary();

} // namespace monet::fuzz
