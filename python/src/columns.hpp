// The rows of a timeline as NumPy arrays, one per column.
#pragma once

#include "objects.hpp"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

namespace monet::python {

/// Columns of a timeline's rows by name. They share memory with the rows, except the bits of
/// transfers, and keep `owner` alive.
pybind11::dict tile_columns(const Result& result, const pybind11::object& owner);
pybind11::dict transfer_columns(const Result& result, const pybind11::object& owner);
pybind11::dict memory_columns(const Result& result, const pybind11::object& owner);

} // namespace monet::python
