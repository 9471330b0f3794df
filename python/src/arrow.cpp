// Exports columns through Arrow's C data interface. Called by python/monet/columns.py for consumers
// such as pandas and polars.
#include "arrow.hpp"

#include <fmt/core.h>
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace py = pybind11;

// Arrow's specification prescribes the names and members of these structures.
extern "C" {
struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  std::int64_t flags;
  std::int64_t n_children;
  ArrowSchema** children;
  ArrowSchema* dictionary;
  void (*release)(ArrowSchema*);
  void* private_data;
};
struct ArrowArray {
  std::int64_t length;
  std::int64_t null_count;
  std::int64_t offset;
  std::int64_t n_buffers;
  std::int64_t n_children;
  const void** buffers;
  ArrowArray** children;
  ArrowArray* dictionary;
  void (*release)(ArrowArray*);
  void* private_data;
};
struct ArrowArrayStream {
  int (*get_schema)(ArrowArrayStream*, ArrowSchema*);
  int (*get_next)(ArrowArrayStream*, ArrowArray*);
  const char* (*get_last_error)(ArrowArrayStream*);
  void (*release)(ArrowArrayStream*);
  void* private_data;
};
}

namespace monet::python {

namespace {

constexpr std::int64_t kNullable = 2; // ARROW_FLAG_NULLABLE

/// The type and buffers of a column. Numbers stay in the NumPy array, which `owner` keeps alive.
struct ArrowColumn {
  std::string name;
  std::string format;
  std::int64_t nulls = 0;
  std::vector<const void*> buffers; ///< first the validity bits, null if all values are valid
  py::object owner;
  std::vector<std::uint8_t> valid;
  std::vector<std::uint8_t> bits;
  std::vector<std::int32_t> offsets;
  std::string text;
};

/// The data of a table. Its exported schema and array both point into it and keep it alive.
struct ArrowTable {
  std::deque<ArrowColumn> columns;
  std::int64_t rows = 0;

  ~ArrowTable() {
    const py::gil_scoped_acquire lock; // consumers may release a table at any time
    columns.clear();
  }
};
using SharedArrowTable = std::shared_ptr<ArrowTable>;

void set_arrow_bit(std::vector<std::uint8_t>& bits, std::size_t place) {
  bits[place / 8] = static_cast<std::uint8_t>(bits[place / 8] | 1U << place % 8);
}

const char* format_of(const py::dtype& type) {
  constexpr std::array<const char*, 4> whole{"c", "s", "i", "l"};
  constexpr std::array<const char*, 4> natural{"C", "S", "I", "L"};
  const auto size = static_cast<std::size_t>(type.itemsize());
  const std::size_t place = size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3;
  switch (type.kind()) {
  case 'i':
    return whole[place];
  case 'u':
    return natural[place];
  case 'f':
    return size == 4 ? "f" : size == 8 ? "g" : "";
  default:
    return "";
  }
}

void fill_texts(ArrowColumn& column, const py::array& values) {
  const auto rows = static_cast<std::size_t>(values.size());
  column.format = "u";
  column.valid.assign((rows + 7) / 8, 0);
  column.offsets.push_back(0);
  const py::list list = values.attr("tolist")();
  for (std::size_t i = 0; i < rows; ++i) {
    const py::object one = list[i];
    if (one.is_none()) {
      ++column.nulls;
    } else {
      column.text += std::string(py::str(one));
      set_arrow_bit(column.valid, i);
    }
    if (column.text.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
      throw py::value_error(fmt::format("{}: more than 2 GiB of text", column.name));
    column.offsets.push_back(static_cast<std::int32_t>(column.text.size()));
  }
  column.buffers = {column.nulls > 0 ? column.valid.data() : nullptr, column.offsets.data(),
                    column.text.data()};
}

void fill(ArrowColumn& column, const py::array& values) {
  if (values.dtype().kind() == 'O' || values.dtype().kind() == 'U') {
    fill_texts(column, values);
    return;
  }
  if (values.dtype().kind() == 'b') {
    const py::array_t<bool> flags = values;
    column.format = "b";
    column.bits.assign((static_cast<std::size_t>(flags.size()) + 7) / 8, 0);
    for (py::ssize_t i = 0; i < flags.size(); ++i) {
      if (flags.at(i))
        set_arrow_bit(column.bits, static_cast<std::size_t>(i));
    }
    column.buffers = {nullptr, column.bits.data()};
    return;
  }
  column.format = format_of(values.dtype());
  if (column.format.empty())
    throw py::type_error(fmt::format("{}: Arrow has no columns of {}", column.name,
                                     std::string(py::str(values.dtype()))));
  column.owner = values;
  column.buffers = {nullptr, values.data()};
}

SharedArrowTable arrow_table_of(const py::dict& columns) {
  const auto table = std::make_shared<ArrowTable>();
  for (const auto& [name, value] : columns) {
    const auto values = py::array::ensure(value, py::array::c_style);
    ArrowColumn& column = table->columns.emplace_back();
    column.name = name.cast<std::string>();
    if (!values || values.ndim() != 1)
      throw py::type_error(column.name + ": is not a column");
    if (table->columns.size() > 1 && values.size() != table->rows)
      throw py::value_error(column.name + ": is not as long as the others");
    table->rows = values.size();
    fill(column, values);
  }
  return table;
}

/// The children of an exported structure, and the table that they point into.
template <class Structure>
struct Held {
  SharedArrowTable table;
  std::deque<Structure> parts;
  std::vector<Structure*> children;
  std::array<const void*, 1> no_buffers{nullptr};
};

template <class Structure>
void release(Structure* structure) {
  auto* const held = static_cast<Held<Structure>*>(structure->private_data);
  for (std::int64_t i = 0; i < structure->n_children; ++i) {
    Structure* const child = structure->children[i];
    if (child->release != nullptr) // null if a consumer has moved the child elsewhere
      child->release(child);
  }
  structure->release = nullptr;
  delete held;
}

/// Releases a child. A child that was moved out of its parent may outlive it.
template <class Structure>
void release_child(Structure* child) {
  delete static_cast<SharedArrowTable*>(child->private_data);
  child->release = nullptr;
}

void export_schema(const SharedArrowTable& table, ArrowSchema& schema) {
  auto held = std::make_unique<Held<ArrowSchema>>();
  held->table = table;
  for (const ArrowColumn& column : table->columns) {
    held->parts.push_back({column.format.c_str(), column.name.c_str(), nullptr,
                           column.nulls > 0 ? kNullable : 0, 0, nullptr, nullptr,
                           &release_child<ArrowSchema>, new SharedArrowTable(table)});
    held->children.push_back(&held->parts.back());
  }
  schema = {"+s",
            "",
            nullptr,
            0,
            static_cast<std::int64_t>(held->children.size()),
            held->children.data(),
            nullptr,
            &release<ArrowSchema>,
            nullptr};
  schema.private_data = held.release();
}

void export_array(const SharedArrowTable& table, ArrowArray& array) {
  auto held = std::make_unique<Held<ArrowArray>>();
  held->table = table;
  for (ArrowColumn& column : table->columns) {
    held->parts.push_back({table->rows, column.nulls, 0,
                           static_cast<std::int64_t>(column.buffers.size()), 0,
                           column.buffers.data(), nullptr, nullptr, &release_child<ArrowArray>,
                           new SharedArrowTable(table)});
    held->children.push_back(&held->parts.back());
  }
  array = {table->rows,
           0,
           0,
           1,
           static_cast<std::int64_t>(held->children.size()),
           held->no_buffers.data(),
           held->children.data(),
           nullptr,
           &release<ArrowArray>,
           nullptr};
  array.private_data = held.release();
}

/// The state of a stream with one batch.
struct Stream {
  SharedArrowTable table;
  bool given = false;
};

void export_stream(SharedArrowTable table, ArrowArrayStream& stream) {
  stream.get_schema = [](ArrowArrayStream* of, ArrowSchema* schema) {
    export_schema(static_cast<Stream*>(of->private_data)->table, *schema);
    return 0;
  };
  stream.get_next = [](ArrowArrayStream* of, ArrowArray* array) {
    Stream& own = *static_cast<Stream*>(of->private_data);
    *array = {};
    if (!own.given)
      export_array(own.table, *array);
    own.given = true;
    return 0;
  };
  stream.get_last_error = [](ArrowArrayStream*) -> const char* { return nullptr; };
  stream.release = [](ArrowArrayStream* of) {
    delete static_cast<Stream*>(of->private_data);
    of->release = nullptr;
  };
  stream.private_data = new Stream{std::move(table)};
}

/// A capsule that releases its structure if no consumer has taken it.
template <class Structure>
py::capsule capsule(std::unique_ptr<Structure> structure, const char* name) {
  return py::capsule(structure.release(), name, [](PyObject* held) {
    auto* const own = static_cast<Structure*>(PyCapsule_GetPointer(held, PyCapsule_GetName(held)));
    if (own->release != nullptr)
      own->release(own);
    delete own;
  });
}

} // namespace

void add_arrow(py::module_& module) {
  module.def("arrow_array", [](const py::dict& columns) {
    const SharedArrowTable table = arrow_table_of(columns);
    auto schema = std::make_unique<ArrowSchema>();
    auto array = std::make_unique<ArrowArray>();
    export_schema(table, *schema);
    export_array(table, *array);
    return py::make_tuple(capsule(std::move(schema), "arrow_schema"),
                          capsule(std::move(array), "arrow_array"));
  });
  module.def("arrow_stream", [](const py::dict& columns) {
    auto stream = std::make_unique<ArrowArrayStream>();
    export_stream(arrow_table_of(columns), *stream);
    return capsule(std::move(stream), "arrow_array_stream");
  });
}

} // namespace monet::python
