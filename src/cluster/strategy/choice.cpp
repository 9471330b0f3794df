#include "cluster/strategy/choice.hpp"

#include "monet/base/yaml.hpp"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>

namespace monet {

std::optional<std::size_t> choice_of(const YamlNode& node, std::span<const std::string_view> names,
                                     ProblemList& problems) {
  const auto word = as_string(node, problems);
  if (!word)
    return std::nullopt;
  const auto found = std::ranges::find(names, *word);
  if (found != names.end())
    return static_cast<std::size_t>(found - names.begin());
  problems.add(node.where, fmt::format("'{}' is none of {}", word->substr(0, 20),
                                       fmt::join(names.begin(), names.end(), ", ")));
  return std::nullopt;
}

} // namespace monet
