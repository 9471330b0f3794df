// Manual page and shell completions, made from the description of the command line.
#pragma once

#include "options/command_line.hpp"

#include <string>

namespace monet::cli {

/// Default value of an option as --help shows it; empty if it has no default.
std::string default_text(const Option& option);

/// Manual page (man(7) macros) of the program and all its subcommands.
std::string man_page(const Command& program, const std::string& version);

/// Completion script for bash: subcommands, options and the allowed values of options; file names
/// elsewhere.
std::string bash_completion(const Command& program);
/// Completion function for zsh (`_monet`), with the options' descriptions.
std::string zsh_completion(const Command& program);
/// Completion script for fish, with the options' descriptions.
std::string fish_completion(const Command& program);

} // namespace monet::cli
