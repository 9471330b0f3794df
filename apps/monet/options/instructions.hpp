// `--instructions`: which vector instructions emulated arithmetic may use.
#pragma once

#include "monet/numerics/blocks.hpp"

#include <string>
#include <string_view>

namespace monet::cli {

struct Command;

/// Adds the option, under a heading of --help if there is one.
void add_instructions(Command& command, std::string& word, std::string_view group = {});
/// What the word says; InputError where this machine has none of them.
Instructions instructions_of(const std::string& word);

} // namespace monet::cli
