// Creates the exceptions of the Python package and translates those of the library into them.
// Called once, when the module is loaded.
#include "errors.hpp"

#include "console.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/stop.hpp"

namespace py = pybind11;

namespace monet::python {

namespace {

/// The classes of the package's exceptions. They are never released, because exceptions may be
/// thrown until the interpreter ends.
struct Exceptions {
  PyObject* error = nullptr;
  PyObject* input = nullptr;
  PyObject* infeasible = nullptr;
  PyObject* internal = nullptr;
};
Exceptions exceptions;

PyObject* make(py::module_& module, const char* name, PyObject* base, const char* says) {
  const std::string full = std::string("monet.") + name;
  PyObject* made = PyErr_NewExceptionWithDoc(full.c_str(), says, base, nullptr);
  if (made == nullptr)
    throw py::error_already_set();
  module.attr(name) = py::handle(made);
  return made;
}

void set_input_error(const InputError& error) {
  py::list problems;
  for (const InputProblem& problem : error.problems())
    problems.append(py::make_tuple(problem.where.to_string(), problem.what, problem.hint));
  const py::object raised =
      py::reinterpret_steal<py::object>(PyObject_CallFunction(exceptions.input, "s", error.what()));
  if (!raised)
    throw py::error_already_set();
  raised.attr("problems") = problems;
  PyErr_SetObject(exceptions.input, raised.ptr());
}

} // namespace

void add_errors(py::module_& module) {
  exceptions.error = make(module, "Error", nullptr, "Whatever the library refuses.");
  exceptions.input = make(module, "InputError", exceptions.error,
                          "A file, a dict or an argument is wrong. `problems` has every problem "
                          "found: (place, what, hint).");
  exceptions.infeasible =
      make(module, "InfeasibleError", exceptions.error,
           "A valid question without an answer: which constraint fails, and by how much.");
  exceptions.internal =
      make(module, "InternalError", exceptions.error, "A bug of the library: please report it.");
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown)
        std::rethrow_exception(thrown);
    } catch (const InputError& error) {
      set_input_error(error);
    } catch (const InfeasibleError& error) {
      PyErr_SetString(exceptions.infeasible, error.what());
    } catch (const OutputError& error) {
      PyErr_SetString(PyExc_OSError, error.what());
    } catch (const cli::UsageError& error) {
      PyErr_SetString(PyExc_ValueError, error.what());
    } catch (const Stopped& error) {
      PyErr_SetString(error.by_clock() ? PyExc_TimeoutError : PyExc_KeyboardInterrupt,
                      error.what());
    } catch (const InternalError& error) {
      PyErr_SetString(exceptions.internal, error.what());
    }
  });
}

} // namespace monet::python
