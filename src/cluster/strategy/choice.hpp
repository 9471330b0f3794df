// Words of experiment files that stand for kinds.
#pragma once

#include "monet/base/errors.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace monet {

struct YamlNode;

/// Which of `names` the node says; of none a problem.
std::optional<std::size_t> choice_of(const YamlNode& node, std::span<const std::string_view> names,
                                     ProblemList& problems);

} // namespace monet
