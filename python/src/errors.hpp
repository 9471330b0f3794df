// Translates the library's exceptions into Python exceptions.
#pragma once

#include <pybind11/pybind11.h>

namespace monet::python {

/// Adds monet.Error and its subclasses InputError (with `problems`: place, what, hint),
/// InfeasibleError and InternalError to the module, and registers the translation of C++
/// exceptions.
void add_errors(pybind11::module_& module);

} // namespace monet::python
