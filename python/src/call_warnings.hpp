// Warnings of the library, kept until Python reads them with take_warnings().
#pragma once

#include "console.hpp"

#include "monet/base/warnings.hpp"

#include <pybind11/pybind11.h>

#include <vector>

namespace monet::python {

/// Collects the warnings of one call. At its end, they are kept for take_warnings() of the same
/// thread. Other threads of the call adopt the scope.
class CallWarnings {
public:
  CallWarnings() = default;
  ~CallWarnings();
  CallWarnings(const CallWarnings&) = delete;
  CallWarnings& operator=(const CallWarnings&) = delete;

  WarningScope& scope() { return scope_; }

private:
  WarningScope scope_;
};

/// Adds the warnings of a session to a scope, which may be null, at the end of the session's work.
class SessionWarnings {
public:
  SessionWarnings(const cli::Session& session, WarningScope* outer)
      : session_(session), outer_(outer) {}
  ~SessionWarnings();
  SessionWarnings(const SessionWarnings&) = delete;
  SessionWarnings& operator=(const SessionWarnings&) = delete;

private:
  const cli::Session& session_;
  WarningScope* outer_;
};

/// Adds take_warnings() to the module. It returns the warnings of this thread's calls since its
/// last call, as a list of (place, what, hint).
void add_warnings(pybind11::module_& module);

} // namespace monet::python
