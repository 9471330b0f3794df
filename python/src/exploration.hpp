// Spaces and stores of designs, and the parts of an exploration that are written in Python.
#pragma once

#include "commands/explore.hpp"
#include "python_calls.hpp"

#include <pybind11/pybind11.h>

namespace monet::python {

/// What the caller of an exploration brings (python/monet/exploring.py, OwnParts), as the library
/// takes it.
class OwnCalls {
public:
  /// None: nothing.
  explicit OwnCalls(const pybind11::object& own);

  bool given() const { return !own_.is_none(); }
  const cli::OwnParts& parts() const { return parts_; }
  /// Set where a call raises; before anything runs.
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
