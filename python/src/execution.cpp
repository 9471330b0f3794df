// Executes steps numerically and returns tensors as NumPy arrays. Called by
// python/monet/execution.py.
#include "execution.hpp"

#include "base/shared/text.hpp"
#include "commands/step_numbers.hpp"
#include "interruptible.hpp"
#include "objects.hpp"
#include "options/memory_budget.hpp"
#include "python_calls.hpp"

#include "monet/base/errors.hpp"
#include "monet/execute/execute.hpp"

#include <fmt/format.h>
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <vector>

namespace py = pybind11;

namespace monet::python {

namespace {

/// An executed step. The graph must outlive the execution, which refers to it.
struct PyExecution {
  std::unique_ptr<const TrainingGraph> step;
  std::unique_ptr<Execution> execution;
  std::vector<double> losses; ///< one per step; empty without a loss
  std::int64_t given = 0;
  std::int64_t stored = 0;
  std::int64_t generated = 0;
};

struct GivenNumbers {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<double> numbers;
};

using Array = py::array_t<double, py::array::c_style | py::array::forcecast>;

std::vector<GivenNumbers> numbers_of(const py::dict& arrays) {
  std::vector<GivenNumbers> all;
  for (const auto& [name, value] : arrays) {
    const Array array = Array::ensure(value);
    if (!array) {
      PyErr_Clear();
      throw py::type_error(
          fmt::format("numbers[{}]: is not an array of numbers", std::string(py::repr(name))));
    }
    GivenNumbers one{name.cast<std::string>(), {}, {}};
    one.shape.assign(array.shape(), array.shape() + array.ndim());
    one.numbers.assign(array.data(), array.data() + array.size());
    all.push_back(std::move(one));
  }
  return all;
}

struct ExecuteCall {
  std::string arithmetic;
  std::uint64_t seed = 0;
  int steps = 1;
  int jobs = 1;
  std::string memory_limit;
  bool keep_all = false;
};

PyExecution run(const Step& step, const std::vector<GivenNumbers>& numbers, const ExecuteCall& call,
                const std::atomic<bool>& stop) {
  const StopScope scope(StopRequest{&stop});
  PyExecution made;
  made.step = std::make_unique<const TrainingGraph>(graph_of(step));
  ExecuteOptions options;
  options.arithmetic = *arithmetic_named(call.arithmetic);
  options.formats = made.step->arithmetic;
  options.jobs = call.jobs;
  options.seed = call.seed;
  options.keep_all = call.keep_all;
  options.memory_limit_bytes =
      cli::parse_budget(call.memory_limit, cli::machine_memory_bytes(), "memory_limit");
  made.execution = std::make_unique<Execution>(made.step->graph, options);
  cli::StepNumbers given(*made.execution, *made.step);
  for (const GivenNumbers& one : numbers)
    given.give(one.name, one.shape, one.numbers, fmt::format("numbers['{}']", one.name));
  given.from_network(step.network.path);
  given.generate_rest(call.seed);
  for (int i = 0; i < call.steps; ++i) {
    cli::run_step(*made.execution, *made.step, i);
    if (made.step->loss)
      made.losses.push_back(made.execution->get(*made.step->loss).at(0));
  }
  made.given = given.given;
  made.stored = given.stored;
  made.generated = given.generated;
  return made;
}

/// The values of a tensor as an array that owns them.
py::array array_of(const PyExecution& made, TensorId id) {
  const Tensor& tensor = made.step->graph.tensor(id);
  auto numbers = std::make_unique<std::vector<double>>(made.execution->get(id));
  const double* const data = numbers->data();
  const py::capsule owner(numbers.get(),
                          [](void* held) { delete static_cast<std::vector<double>*>(held); });
  static_cast<void>(numbers.release()); // the capsule owns them now
  return py::array(py::dtype::of<double>(), tensor.shape, data, owner);
}

py::array array_named(const PyExecution& made, const std::string& name) {
  const auto id = made.step->graph.find_tensor(name);
  if (id && made.execution->has(*id))
    return array_of(made, *id);
  if (id)
    throw py::key_error(fmt::format("'{}' is not kept; execute with keep_all=True", name));
  std::vector<std::string> names;
  for (const Tensor& tensor : made.step->graph.tensors())
    names.push_back(tensor.name);
  const std::string hint = nearest_name_hint(name, names);
  throw py::key_error(
      fmt::format("the step has no tensor '{}'{}{}", name, hint.empty() ? "" : "; ", hint));
}

/// Pairs of a weight's name and the name of its tensor of the given kind, such as its gradient.
std::vector<std::pair<std::string, std::string>> of_parameters(const PyExecution& made,
                                                               TensorId ParameterRecord::*kind) {
  std::vector<std::pair<std::string, std::string>> names;
  const Graph& graph = made.step->graph;
  for (const ParameterRecord& record : made.step->parameters)
    names.emplace_back(graph.tensor(record.weight).name, graph.tensor(record.*kind).name);
  return names;
}

std::vector<std::string> outputs_of(const PyExecution& made) {
  std::vector<std::string> names;
  for (const TensorId id : made.step->graph.outputs) {
    const Tensor& tensor = made.step->graph.tensor(id);
    if (!tensor.alias_of && id != made.step->loss && made.execution->has(id))
      names.push_back(tensor.name);
  }
  return names;
}

std::unique_ptr<PyExecution> execute(const Step& step, const py::dict& numbers,
                                     const ExecuteCall& call) {
  const std::vector<GivenNumbers> given = numbers_of(numbers);
  std::unique_ptr<PyExecution> made;
  run_interruptible([&](const std::atomic<bool>& stop) {
    made = std::make_unique<PyExecution>(run(step, given, call, stop));
  });
  return made;
}

} // namespace

void add_execution(py::module_& module) {
  py::class_<PyExecution>(module, "Execution")
      .def_readonly("losses", &PyExecution::losses)
      .def_readonly("given", &PyExecution::given)
      .def_readonly("stored", &PyExecution::stored)
      .def_readonly("generated", &PyExecution::generated)
      .def("array", &array_named, py::arg("name"))
      .def("outputs", &outputs_of)
      .def("gradients",
           [](const PyExecution& made) { return of_parameters(made, &ParameterRecord::gradient); })
      .def("updated",
           [](const PyExecution& made) { return of_parameters(made, &ParameterRecord::updated); })
      .def("tensors", [](const PyExecution& made) {
        std::vector<std::string> names;
        for (std::size_t i = 0; i < made.step->graph.tensors().size(); ++i) {
          if (made.execution->has(TensorId(i)))
            names.push_back(made.step->graph.tensors()[i].name);
        }
        return names;
      });
  module.def(
      "execute",
      [](const Step& step, const py::dict& numbers, const std::string& arithmetic,
         std::uint64_t seed, int steps, int jobs, const std::string& memory_limit, bool keep_all) {
        return execute(step, numbers, {arithmetic, seed, steps, jobs, memory_limit, keep_all});
      },
      py::arg("step"), py::arg("numbers"), py::arg("arithmetic"), py::arg("seed"), py::arg("steps"),
      py::arg("jobs"), py::arg("memory_limit"), py::arg("keep_all"));
}

} // namespace monet::python
