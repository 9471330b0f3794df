// Hints of error messages: existing files near a missing one, known keys near an unknown one.
#pragma once

#include "monet/base/yaml.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace monet {

/// Position of the candidate nearest to `name`, within an edit distance of a third of its length.
std::optional<std::size_t> nearest_name(std::string_view name,
                                        std::span<const std::string> candidates);

/// Hint with the existing file whose name is nearest to that of `path`, in its folder or, for a
/// name without a folder, in the folders of `data` below the working folder; "" if no name is near.
std::string missing_file_hint(const std::string& path);

/// Reports, at the place that names it, a file that does not exist.
void require_file(const std::string& path, const SourceLoc& where, ProblemList& problems);

/// Path that the scalar `node` of the file `file` names, relative to the file's folder. A file that
/// does not exist is reported at the node.
std::string named_file(const YamlNode& node, const std::string& file, ProblemList& problems);

/// Hint such as "did you mean 'learning_rate'?" for an unknown key: a known key that is its synonym
/// in the field, that continues it after '_', or that is near. Otherwise "".
std::string key_hint(std::string_view key, std::span<const std::string> known);

} // namespace monet
