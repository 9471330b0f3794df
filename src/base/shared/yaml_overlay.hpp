// Overlays of YAML documents: variants replace keys of a base document. Also writes YAML text.
#pragma once

#include "monet/base/yaml.hpp"

#include <string>
#include <string_view>

namespace monet {

/// Returns `base` with the keys of `over`, both maps. Two maps under one key are merged
/// recursively. The map of `over` replaces the other one if its value of a key (format, schedule,
/// scheme, type) decides which other keys it has.
YamlNode overlaid(const YamlNode& base, const YamlNode& over);

/// Canonical text: equal for documents with equal contents, whatever their order of keys, spaces
/// and comments.
std::string canonical_text(const YamlNode& node);

/// Double-quoted scalar on one line, for any well-formed UTF-8 text.
std::string yaml_quoted(std::string_view text);

} // namespace monet
