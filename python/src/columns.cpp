// Views of a timeline's rows as NumPy columns. Called by the bindings of Result in module.cpp.
#include "columns.hpp"

#include "report/shared/text.hpp"

namespace py = pybind11;

namespace monet::python {

namespace {

/// A field of all rows as a read-only array that shares the memory of the rows.
template <class Field, class Row>
py::array column(const std::vector<Row>& rows, const Field& first, const py::object& owner) {
  const auto count = static_cast<py::ssize_t>(rows.size());
  py::array array(py::dtype::of<Field>(), {count}, {static_cast<py::ssize_t>(sizeof(Row))},
                  rows.empty() ? nullptr : &first, owner);
  array.attr("flags").attr("writeable") = false;
  return array;
}

template <class Row>
const Row& front(const std::vector<Row>& rows) {
  static const Row none{};
  return rows.empty() ? none : rows.front();
}

} // namespace

py::dict tile_columns(const Result& result, const py::object& owner) {
  const std::vector<TileRun>& runs = result.timeline().runs;
  const TileRun& first = front(runs);
  py::dict columns;
  columns["tile"] = column(runs, first.tile.value, owner);
  columns["operator"] = column(runs, first.op.value, owner);
  columns["core"] = column(runs, first.core.value, owner);
  columns["start_cycle"] = column(runs, first.start.value, owner);
  columns["end_cycle"] = column(runs, first.end.value, owner);
  return columns;
}

py::dict transfer_columns(const Result& result, const py::object& owner) {
  const Timeline& timeline = result.timeline();
  const Transfer& first = front(timeline.transfers);
  py::dict columns;
  columns["tensor"] = column(timeline.transfers, first.tensor.value, owner);
  columns["operator"] = column(timeline.transfers, first.op.value, owner);
  columns["kind"] =
      column(timeline.transfers, reinterpret_cast<const std::uint8_t&>(first.kind), owner);
  columns["start_cycle"] = column(timeline.transfers, first.start.value, owner);
  columns["end_cycle"] = column(timeline.transfers, first.end.value, owner);
  const auto count = static_cast<py::ssize_t>(timeline.transfers.size());
  py::array_t<std::int64_t> bits(count); // copied: the timeline stores equal sizes only once
  for (py::ssize_t i = 0; i < count; ++i)
    bits.mutable_at(i) = timeline.bits_of(timeline.transfers[static_cast<std::size_t>(i)]).value;
  columns["bits"] = bits;
  return columns;
}

py::dict memory_columns(const Result& result, const py::object& owner) {
  const std::vector<MemorySample>& live = result.timeline().live;
  const MemorySample& first = front(live);
  py::dict columns;
  columns["cycle"] = column(live, first.time.value, owner);
  for (std::size_t i = 0; i < kMemoryOwners; ++i)
    columns[py::str(std::string(name_of(static_cast<MemoryOwner>(i))) + "_bytes")] =
        column(live, first.live[i], owner);
  return columns;
}

} // namespace monet::python
