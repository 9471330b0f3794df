// Collects the warnings of calls into the library. python/monet/warning.py reads them after each
// call.
#include "call_warnings.hpp"

#include <utility>

namespace py = pybind11;

namespace monet::python {

namespace {

thread_local std::vector<InputProblem> kept_warnings;

py::list take_warnings() {
  py::list taken;
  for (const InputProblem& warning : std::exchange(kept_warnings, {}))
    taken.append(py::make_tuple(warning.where.to_string(), warning.what, warning.hint));
  return taken;
}

} // namespace

CallWarnings::~CallWarnings() {
  for (InputProblem& warning : scope_.warnings())
    kept_warnings.push_back(std::move(warning));
}

SessionWarnings::~SessionWarnings() {
  if (outer_ == nullptr)
    return;
  for (InputProblem& warning : session_.warnings.warnings())
    outer_->add(std::move(warning));
}

void add_warnings(py::module_& module) {
  module.def("take_warnings", &take_warnings);
}

} // namespace monet::python
