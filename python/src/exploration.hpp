// Bindings of spaces and stores of designs, and of the parts of an exploration that are written in
// Python.
#pragma once

#include "commands/explore.hpp"
#include "python_calls.hpp"

#include <pybind11/pybind11.h>

namespace monet::python {

/// The caller's parts of an exploration (OwnParts in python/monet/exploring.py), adapted to the
/// library's interfaces.
class OwnCalls {
public:
  /// `own`: an OwnParts, or None if the caller has no parts.
  explicit OwnCalls(const pybind11::object& own);

  bool given() const { return !own_.is_none(); }
  const cli::OwnParts& parts() const { return parts_; }
  /// Registers the flag that is set if a call into Python raises. Must precede all such calls.
  void stops(std::atomic<bool>& stop) { stop_ = &stop; }
  void rethrow() { raised_.rethrow(); }

private:
  class OwnStrategy;
  class OwnEvaluator;

  void adapt(Space& space);
  void judge(const Space& space, DesignResult& result);

  pybind11::object own_;
  cli::OwnParts parts_;
  std::atomic<bool>* stop_ = nullptr;
  Raised raised_;
};

/// Adds Space, read_space() and read_store() to the module.
void add_exploration(pybind11::module_& module);

} // namespace monet::python
