// The extension module `monet._monet`: binds networks, chips and schedules, and adds the bindings
// of the other files. Wrapped by the Python package in python/monet.
#include "arrow.hpp"
#include "call_warnings.hpp"
#include "columns.hpp"
#include "commands.hpp"
#include "errors.hpp"
#include "execution.hpp"
#include "exploration.hpp"
#include "interruptible.hpp"
#include "objects.hpp"
#include "version.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/yaml.hpp"
#include "monet/hardware/read_hardware.hpp"

#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <ctime>
#include <set>

namespace py = pybind11;

namespace monet::python {

namespace {

Result schedule_step(const Step& step, const PyChip& chip, const ScheduleArguments& arguments,
                     const py::object& progress) {
  ProgressCalls calls(progress);
  Result result;
  calls.run(
      [&](std::atomic<bool>& stop) { result = schedule(step, chip, arguments, calls, stop); });
  return result;
}

/// Processor seconds of `calls` calls of schedule() without Python. Used by bench/python_bench.py.
double schedule_seconds(const Step& step, const PyChip& chip, const ScheduleArguments& arguments,
                        int calls) {
  const ProgressCalls no_calls{py::none()};
  std::atomic<bool> stop{false};
  const std::clock_t begin = std::clock();
  for (int i = 0; i < calls; ++i)
    schedule(step, chip, arguments, no_calls, stop);
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

py::list tensors_of(const Graph& graph, const std::vector<TensorId>& ids) {
  py::list tensors;
  for (const TensorId id : ids) {
    const Tensor& tensor = graph.tensor(id);
    tensors.append(
        py::make_tuple(tensor.name, py::cast(tensor.shape), std::string(name_of(tensor.type))));
  }
  return tensors;
}

py::list cores_of(const Chip& chip) {
  py::list cores;
  for (std::size_t i = 0; i < chip.cores.size(); ++i) {
    const Core& core = chip.cores[i];
    py::dict one;
    one["name"] = core.name;
    one["kind"] = std::string(name_of(chip.offchip == CoreId(i) ? CoreKind::offchip : core.kind));
    one["lanes"] = core.lanes();
    py::list memories;
    for (const Memory& memory : core.memories)
      memories.append(py::make_tuple(memory.name, memory.size.value, instances(core, memory)));
    one["memories"] = memories;
    cores.append(one);
  }
  return cores;
}

const char* name_of_reach(const Link& link) {
  return link.cores.size() > 2 ? "bus" : "link";
}

py::list links_of(const Chip& chip) {
  py::list links;
  for (const Link& link : chip.links) {
    py::list cores;
    for (const CoreId core : link.cores)
      cores.append(core.value);
    links.append(py::make_tuple(cores, link.bandwidth_bits_per_cycle, name_of_reach(link)));
  }
  return links;
}

/// Operators as (name, type, indices of the operators whose results they read).
py::list operators_of(const Graph& graph) {
  py::list operators;
  for (const Operator& op : graph.operators()) {
    std::set<std::uint32_t> from;
    for (const std::optional<TensorId>& id : op.inputs) {
      if (id && graph.tensor(*id).producer)
        from.insert(graph.tensor(*id).producer->value);
    }
    operators.append(py::make_tuple(op.name, op.op_type.str(), py::cast(from)));
  }
  return operators;
}

/// A YAML node as Python objects. Whole numbers become int, other numbers float.
py::object python_of(const YamlNode& node) {
  if (node.kind == YamlNode::Kind::sequence) {
    py::list items;
    for (const YamlNode& item : node.items)
      items.append(python_of(item));
    return items;
  }
  if (node.kind == YamlNode::Kind::map) {
    py::dict entries;
    for (const YamlNode::Entry& entry : node.entries)
      entries[py::str(entry.key)] = python_of(entry.value);
    return entries;
  }
  if (node.kind == YamlNode::Kind::null)
    return py::none();
  if (node.quoted)
    return py::str(node.scalar);
  if (node.scalar == "true" || node.scalar == "false")
    return py::bool_(node.scalar == "true");
  ProblemList not_whole;
  if (const auto whole = as_integer(node, not_whole))
    return py::int_(*whole);
  ProblemList no_number;
  if (const auto number = as_number(node, no_number))
    return py::float_(*number);
  return py::str(node.scalar);
}

void add_network(py::module_& module) {
  py::class_<Network>(module, "Network")
      .def_property_readonly("path", [](const Network& net) { return net.path; })
      .def("graph", [](const Network& net) { return operators_of(*net.graph); })
      .def_property_readonly("operators",
                             [](const Network& net) { return net.graph->operators().size(); })
      .def_property_readonly("parameters",
                             [](const Network& net) { return parameter_count(*net.graph); })
      .def_property_readonly(
          "inputs", [](const Network& net) { return tensors_of(*net.graph, net.graph->inputs); })
      .def_property_readonly(
          "outputs", [](const Network& net) { return tensors_of(*net.graph, net.graph->outputs); });
  module.def(
      "read_network",
      [](const std::string& path, std::optional<std::int64_t> batch,
         const std::map<std::string, std::int64_t>& dimensions) {
        Network network;
        run_interruptible(
            [&](const std::atomic<bool>&) { network = read_network(path, batch, dimensions); });
        return network;
      },
      py::arg("path"), py::arg("batch"), py::arg("dimensions"));
  py::class_<Step>(module, "Step");
  module.def("training_step", &training_step, py::arg("network"), py::arg("text"),
             py::arg("origin"), py::arg("file"));
  module.def("inference_step", &inference_step, py::arg("network"), py::arg("precision"));
}

void add_chip(py::module_& module) {
  py::class_<PyChip>(module, "Chip")
      .def_property_readonly("name", [](const PyChip& chip) { return chip.chip->name; })
      .def_property_readonly("cores", [](const PyChip& chip) { return cores_of(*chip.chip); })
      .def("links", [](const PyChip& chip) { return links_of(*chip.chip); })
      .def_property_readonly("area_mm2", [](const PyChip& chip) { return chip.chip->area_mm2(); })
      .def_property_readonly("frequency_hz",
                             [](const PyChip& chip) { return chip.chip->frequency_hz; });
  module.def("read_chip", &read_chip_file, py::arg("path"));
  module.def("read_yaml", [](const std::string& path) { return python_of(load_yaml(path)); });
  module.def("find_core_file", [](const std::string& system, const std::string& name) {
    return find_core_file(system, name, {system});
  });
  module.def("read_chip_texts", &read_chip_texts, py::arg("name"), py::arg("texts"));
}

/// Sets an option to a value of Python.
void set_value(const OptionValue& option, const py::object& value) {
  std::visit(
      [&]<class T>(const T& target) {
        if constexpr (std::is_same_v<T, NamedValue>) {
          if (!target.assign(value.cast<std::string>()))
            throw py::value_error("unknown name: " + value.cast<std::string>());
        } else {
          *target = value.cast<std::remove_pointer_t<T>>();
        }
      },
      option);
}

py::object value_of(const OptionValue& option) {
  return std::visit(
      []<class T>(const T& target) -> py::object {
        if constexpr (std::is_same_v<T, NamedValue>)
          return py::cast(target.name());
        else
          return py::cast(*target);
      },
      option);
}

/// Adds the keys of a table as attributes.
template <class Keys, std::size_t kRows>
void add_keys(py::class_<ScheduleArguments>& made, const OptionRow<Keys> (&rows)[kRows],
              Keys& (*of)(ScheduleArguments&)) {
  for (const OptionRow<Keys>& row : rows) {
    const auto at = row.at;
    made.def_property(
        std::string(row.key).c_str(),
        [at, of](ScheduleArguments& arguments) { return value_of(at(of(arguments))); },
        [at, of](ScheduleArguments& arguments, const py::object& value) {
          set_value(at(of(arguments)), value);
        });
  }
}

void add_result(py::module_& module) {
  py::class_<Result>(module, "Result")
      .def_property_readonly("name", [](const Result& result) { return result.name; })
      .def("json", &json_of)
      .def("table", &table_of)
      .def(
          "write_report",
          [](const Result& result, const std::string& folder) {
            std::string page;
            run_interruptible([&](std::atomic<bool>&) { page = write_report(result, folder); });
            return page;
          },
          py::arg("folder"))
      .def("operators",
           [](const Result& result) {
             py::list names;
             for (const Operator& op : result.graph().graph.operators())
               names.append(op.name);
             return names;
           })
      .def("tiles",
           [](const py::object& self) { return tile_columns(self.cast<const Result&>(), self); })
      .def(
          "transfers",
          [](const py::object& self) { return transfer_columns(self.cast<const Result&>(), self); })
      .def("memory_over_time",
           [](const py::object& self) { return memory_columns(self.cast<const Result&>(), self); });
  py::class_<ScheduleArguments> arguments(module, "ScheduleArguments");
  arguments.def(py::init<>())
      .def_readwrite("mapping", &ScheduleArguments::mapping)
      .def_readwrite("jobs", &ScheduleArguments::jobs)
      .def_readwrite("verify", &ScheduleArguments::verify)
      .def_readwrite("files", &ScheduleArguments::files);
  add_keys<ScheduleKeys>(arguments, kScheduleKeys,
                         [](ScheduleArguments& of) -> ScheduleKeys& { return of; });
  add_keys<ScheduleKeys>(arguments, kEffortKeys,
                         [](ScheduleArguments& of) -> ScheduleKeys& { return of; });
  add_keys<CoreCostOptions>(arguments, kCoreCostKeys,
                            [](ScheduleArguments& of) -> CoreCostOptions& { return of.cost; });
  module.def("schedule", &schedule_step, py::arg("step"), py::arg("chip"), py::arg("arguments"),
             py::arg("progress"));
  module.def("schedule_seconds", &schedule_seconds, py::arg("step"), py::arg("chip"),
             py::arg("arguments"), py::arg("calls"));
}

} // namespace

} // namespace monet::python

PYBIND11_MODULE(_monet, module) {
  module.doc() = "The library behind the package monet.";
  module.attr("version") = monet::cli::version();
  monet::python::add_errors(module);
  monet::python::add_warnings(module);
  monet::python::add_network(module);
  monet::python::add_chip(module);
  monet::python::add_result(module);
  monet::python::add_execution(module);
  monet::python::add_exploration(module);
  monet::python::add_commands(module);
  monet::python::add_arrow(module);
}
