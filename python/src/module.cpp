// The extension module `monet._monet`. What users see is the Python beside it, in python/monet.
#include "columns.hpp"
#include "errors.hpp"
#include "interruptible.hpp"
#include "objects.hpp"
#include "version.hpp"

#include "monet/base/errors.hpp"

#include <pybind11/functional.h>
#include <pybind11/stl.h>

namespace py = pybind11;

namespace monet::python {

namespace {

Result schedule_step(const Step& step, const PyChip& chip, const ScheduleArguments& arguments,
                     const py::object& progress) {
  std::function<void(std::string_view)> begins;
  if (!progress.is_none()) {
    begins = [&progress](std::string_view name) {
      const py::gil_scoped_acquire lock;
      progress(std::string(name));
    };
  }
  Result result;
  run_interruptible([&](const std::atomic<bool>& stop) {
    result = schedule(step, chip, arguments, stop, begins);
  });
  return result;
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

void add_network(py::module_& module) {
  py::class_<Network>(module, "Network")
      .def_property_readonly("path", [](const Network& net) { return net.path; })
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
  py::class_<Step>(module, "Step").def_property_readonly("is_training", [](const Step& step) {
    return step.training.has_value();
  });
  module.def("training_step", &training_step, py::arg("network"), py::arg("text"),
             py::arg("origin"), py::arg("file"));
  module.def("inference_step", &inference_step, py::arg("network"), py::arg("precision"));
}

void add_chip(py::module_& module) {
  py::class_<PyChip>(module, "Chip")
      .def_property_readonly("name", [](const PyChip& chip) { return chip.chip->name; })
      .def_property_readonly("cores", [](const PyChip& chip) { return cores_of(*chip.chip); })
      .def_property_readonly("area_mm2", [](const PyChip& chip) { return chip.chip->area_mm2(); })
      .def_property_readonly("frequency_hz",
                             [](const PyChip& chip) { return chip.chip->frequency_hz; });
  module.def("read_chip", &read_chip_file, py::arg("path"));
  module.def("parse_chip", &parse_chip_text, py::arg("text"), py::arg("cores"));
}

void add_result(py::module_& module) {
  py::class_<Result>(module, "Result")
      .def_property_readonly("name", [](const Result& result) { return result.name; })
      .def("json", &json_of)
      .def("table", &table_of)
      .def("write_report", &write_report, py::arg("folder"),
           py::call_guard<py::gil_scoped_release>())
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
  py::class_<ScheduleArguments>(module, "ScheduleArguments")
      .def(py::init<>())
      .def_readwrite("mode", &ScheduleArguments::mode)
      .def_readwrite("mapping", &ScheduleArguments::mapping)
      .def_readwrite("stacks", &ScheduleArguments::stacks)
      .def_readwrite("halo", &ScheduleArguments::halo)
      .def_readwrite("priority", &ScheduleArguments::priority)
      .def_readwrite("stream_like", &ScheduleArguments::stream_like)
      .def_readwrite("objective", &ScheduleArguments::objective)
      .def_readwrite("lpf_limit", &ScheduleArguments::lpf_limit)
      .def_readwrite("jobs", &ScheduleArguments::jobs)
      .def_readwrite("verify", &ScheduleArguments::verify);
  module.def("schedule", &schedule_step, py::arg("step"), py::arg("chip"), py::arg("arguments"),
             py::arg("progress"));
}

} // namespace

} // namespace monet::python

PYBIND11_MODULE(_monet, module) {
  module.doc() = "The library behind the package monet.";
  module.attr("version") = monet::cli::version();
  monet::python::add_errors(module);
  monet::python::add_network(module);
  monet::python::add_chip(module);
  monet::python::add_result(module);
}
