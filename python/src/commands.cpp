// Runs subcommands of the command line in this process, and describes their options. Called by
// python/monet/commands.py.
#include "commands.hpp"

#include "call_warnings.hpp"
#include "commands/commands.hpp"
#include "exploration.hpp"
#include "interruptible.hpp"
#include "python_calls.hpp"

#include "monet/base/files.hpp"

#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <map>
#include <string>
#include <type_traits>
#include <vector>

namespace py = pybind11;

namespace monet::python {

namespace {

/// The exit code and the outputs of a command.
struct Ran {
  int code = 0;
  std::string results;
  std::string json;
  std::string messages;
};

void run(const std::vector<std::string>& arguments, const std::map<std::string, std::string>& files,
         const cli::OwnParts* own, const ProgressCalls& progress, std::atomic<bool>& stop,
         Ran& ran) {
  const GivenFiles given(files);
  cli::CapturedOutput output;
  cli::Command program = cli::monet_program();
  const cli::Command& chosen = cli::parse_arguments(program, arguments);
  WarningScope* const outer = WarningScope::current();
  cli::Session session(true);
  const SessionWarnings kept(session, outer);
  session.interrupted = &stop;
  session.context.stop.flag = &stop;
  session.own = own;
  progress.listen_to(session, stop);
  const StopScope scope(&session.context.stop);
  ran.code = cli::run_command(chosen, session);
  ran.results = std::move(output.results);
  ran.json = std::move(output.json);
  ran.messages = std::move(output.messages);
}

py::tuple run_command(const std::vector<std::string>& arguments,
                      const std::map<std::string, std::string>& files, const py::object& progress,
                      const py::object& own) {
  Ran ran;
  ProgressCalls calls(progress);
  OwnCalls parts(own);
  const auto work = [&](std::atomic<bool>& stop) {
    parts.stops(stop);
    run(arguments, files, parts.given() ? &parts.parts() : nullptr, calls, stop, ran);
  };
  try {
    calls.run(work, OnInterrupt::end);
  } catch (...) {
    parts.rethrow();
    throw;
  }
  parts.rethrow();
  return py::make_tuple(ran.code, ran.results, ran.json, ran.messages);
}

py::object default_of(const cli::Target& target) {
  return std::visit(
      []<class T>(const T& value) -> py::object {
        using Value = std::remove_pointer_t<T>;
        if constexpr (std::is_same_v<T, NamedValue>)
          return py::cast(value.name());
        else if constexpr (std::is_arithmetic_v<Value> || std::is_same_v<Value, std::string>)
          return py::cast(*value);
        else
          return py::none();
      },
      target);
}

const char* kind_of(const cli::Target& target) {
  return std::visit(
      []<class T>(const T&) {
        if constexpr (std::is_same_v<T, bool*>)
          return "flag";
        else if constexpr (std::is_same_v<T, std::string*> || std::is_same_v<T, NamedValue>)
          return "text";
        else if constexpr (std::is_same_v<T, double*>)
          return "number";
        else if constexpr (std::is_same_v<T, std::vector<std::string>*> ||
                           std::is_same_v<T, std::vector<std::int64_t>*> ||
                           std::is_same_v<T, std::vector<std::uint64_t>*>)
          return "list";
        else
          return "integer";
      },
      target);
}

py::dict description_of(const cli::Command& command) {
  py::list options;
  for (const cli::Option& option : command.options) {
    py::dict one;
    one["name"] = option.name();
    one["kind"] = kind_of(option.target);
    one["help"] = option.help;
    one["choices"] = py::cast(option.rules.choices);
    one["default"] = default_of(option.target);
    one["delimiter"] = option.rules.delimiter == '\0' ? "" : std::string(1, option.rules.delimiter);
    one["values"] = option.rules.values;
    one["required"] = option.rules.required;
    options.append(one);
  }
  py::list commands;
  for (const cli::Command& one : command.commands)
    commands.append(description_of(one));
  py::dict description;
  description["name"] = command.name;
  description["about"] = command.about;
  description["options"] = options;
  description["commands"] = commands;
  return description;
}

} // namespace

void add_commands(py::module_& module) {
  module.def("run_command", &run_command, py::arg("arguments"), py::arg("files"),
             py::arg("progress"), py::arg("own"));
  module.def("program", [] { return description_of(cli::monet_program()); });
}

} // namespace monet::python
