// Which file of the repository may include which: rule 2 of CONTRIBUTING.md.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace monet::test {

/// One line for each include below `root` that breaks a rule, sorted.
std::vector<std::string> broken_includes(const std::filesystem::path& root);

} // namespace monet::test
