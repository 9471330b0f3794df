// Rows of C++ as NumPy arrays, a column each.
#pragma once

#include "objects.hpp"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

namespace monet::python {

/// Views of the timeline's rows, without a copy: `owner` stays alive as long as any of them.
pybind11::dict tile_columns(const Result& result, const pybind11::object& owner);
pybind11::dict transfer_columns(const Result& result, const pybind11::object& owner);
pybind11::dict memory_columns(const Result& result, const pybind11::object& owner);

} // namespace monet::python
