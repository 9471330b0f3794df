// Files of the repository that follow from the tables of options: tables of reference pages, JSON
// Schemas for editors, and functions in Python.
#pragma once

#include "options/command_line.hpp"

#include <string>

namespace monet::cli {

/// A reference page with the tables between its markers made again.
/// `<!-- options of monet optimise fusion: --model to --stacks-out -->` begins a table of options
/// of a command in the order of --help, without those in other groups than the first.
/// `<!-- keys of optimise.fusion -->` begins a table of keys of an experiment file. A table ends at
/// `<!-- end -->`. Throws InternalError for a marker that names nothing.
std::string with_option_tables(const std::string& page, const Command& program);

/// JSON Schema of experiment files.
std::string experiment_schema();

/// Module in Python with a function for each search of a step.
std::string python_searches(const Command& program);

} // namespace monet::cli
