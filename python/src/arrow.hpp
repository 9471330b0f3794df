// Columns in Arrow's C data interface, carried by PyCapsules
// (https://arrow.apache.org/docs/format/CDataInterface.html). Needs no Arrow library.
#pragma once

#include <pybind11/pybind11.h>

namespace monet::python {

/// Adds arrow_array() and arrow_stream() to the module.
void add_arrow(pybind11::module_& module);

} // namespace monet::python
