// Variants: a document's keys with those of another in their place. Text as YAML writes it.
#pragma once

#include "monet/base/yaml.hpp"

#include <string>
#include <string_view>

namespace monet {

/// `base` with the keys of `over`, both maps. Where both have a key with a map, the maps are joined
/// in the same way, unless over's says by a key (format, schedule, scheme, type) which other keys
/// it has: then it takes the other's place.
YamlNode overlaid(const YamlNode& base, const YamlNode& over);

/// The same text for documents of the same content: order of keys, spaces and comments do not
/// count.
std::string canonical_text(const YamlNode& node);

/// A double-quoted scalar on one line, whatever well-formed UTF-8 the text is.
std::string yaml_quoted(std::string_view text);

} // namespace monet
