// The subcommands of the command line, run in this process on files or on texts in place of files.
#pragma once

#include <pybind11/pybind11.h>

namespace monet::python {

/// Adds `run_command()` and `program()` to the module.
void add_commands(pybind11::module_& module);

} // namespace monet::python
