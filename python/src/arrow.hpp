// Columns as Arrow has them: the C data interface and the PyCapsules that carry it
// (https://arrow.apache.org/docs/format/CDataInterface.html), without a library.
#pragma once

#include <pybind11/pybind11.h>

namespace monet::python {

/// Adds arrow_array() and arrow_stream() to the module.
void add_arrow(pybind11::module_& module);

} // namespace monet::python
