// Numeric execution of steps, with NumPy arrays as inputs and outputs.
#pragma once

#include <pybind11/pybind11.h>

namespace monet::python {

/// Adds Execution and execute() to the module.
void add_execution(pybind11::module_& module);

} // namespace monet::python
