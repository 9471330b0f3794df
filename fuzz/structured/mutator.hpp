// Mutations that keep an input readable: each changes something that its format means.
#pragma once

#include "structured/random.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace monet::fuzz {

enum class Format { bytes, onnx, yaml, json };

/// Nothing where the bytes are no model.
std::optional<std::string> mutate_onnx(std::string_view bytes, Random& random);
std::string mutate_yaml(std::string_view text, Random& random);
std::string mutate_json(std::string_view text, Random& random);

/// `a` with parts of `b`. Nothing where the bytes are no models.
std::optional<std::string> cross_onnx(std::string_view a, std::string_view b, Random& random);
/// Lines of `b` among those of `a`.
std::string cross_text(std::string_view a, std::string_view b, Random& random);

} // namespace monet::fuzz
