// The library's failures as Python's exceptions.
#pragma once

#include <pybind11/pybind11.h>

namespace monet::python {

/// monet.InputError (with `problems`: place, what, hint), InfeasibleError and InternalError, all of
/// monet.Error; and how they are thrown.
void add_errors(pybind11::module_& module);

} // namespace monet::python
