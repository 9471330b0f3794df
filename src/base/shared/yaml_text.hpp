// Text for YAML files that we write.
#pragma once

#include <string>
#include <string_view>

namespace monet {

/// A double-quoted scalar on one line, whatever well-formed UTF-8 the text is.
std::string yaml_quoted(std::string_view text);

} // namespace monet
