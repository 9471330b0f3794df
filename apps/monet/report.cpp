// monet report RESULT.json: the page again, from a result.
#include "commands.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/files.hpp"
#include "monet/report/result.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <memory>

namespace monet::cli {

namespace {

using Json = nlohmann::ordered_json;

/// Deeper than any result; nested values are written recursively.
constexpr int kDeepest = 64;

SourceLoc location_in(const std::string& path, const std::string& text, std::size_t byte) {
  const std::string_view before = std::string_view(text).substr(0, byte > 0 ? byte - 1 : 0);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t line_begin = before.rfind('\n') + 1; // npos + 1 = 0
  return {path, static_cast<int>(line), static_cast<int>(before.size() - line_begin + 1), {}};
}

Json read_json(const std::string& path) {
  const std::string text = read_file(path);
  try {
    return Json::parse(text, [&](int depth, Json::parse_event_t, Json&) {
      if (depth > kDeepest)
        throw InputError({path}, "is not a result: nested too deeply");
      return true;
    });
  } catch (const Json::parse_error& error) {
    throw InputError(location_in(path, text, error.byte), "is not valid JSON");
  }
}

/// Enough of the schema that the page has what it shows; the viewer treats every value as data.
void check_result(const Json& result, const std::string& path) {
  if (!result.is_object())
    throw InputError({path}, "is not a result: not a JSON object");
  ProblemList problems;
  const auto version = result.find("schema_version");
  if (version == result.end() || *version != 1) {
    problems.add({path}, "is not a result of this version: schema_version is not 1");
  }
  const auto require = [&](const char* key, bool (Json::*is)() const noexcept, const char* type) {
    const auto value = result.find(key);
    if (value == result.end() || !((*value).*is)()) {
      problems.add({path}, fmt::format("is not a result: '{}' is not {}", key, type));
    }
  };
  require("name", &Json::is_string, "a string");
  require("latency_cycles", &Json::is_number, "a number");
  require("energy_pj", &Json::is_number, "a number");
  require("memory", &Json::is_object, "an object");
  require("phases", &Json::is_array, "a list");
  require("cores", &Json::is_array, "a list");
  require("links", &Json::is_array, "a list");
  require("layers", &Json::is_array, "a list");
  require("timeline", &Json::is_object, "an object");
  problems.throw_if_any();
}

} // namespace

Action add_report_command(CLI::App& app) {
  struct Arguments {
    std::string result;
    std::string output;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("report", "Makes the report of a result.json");
  command->add_option("result", arguments->result, "Result of monet run or monet schedule")
      ->required()
      ->type_name("RESULT.json");
  command->add_option("-o,--output", arguments->output, "Page to write")
      ->required()
      ->type_name("report.html");
  command->footer("Example: monet report out/edge/result.json -o report.html");
  return [arguments](Session&) {
    const Json result = read_json(arguments->result);
    check_result(result, arguments->result);
    write_file_atomically(arguments->output, report_html(result));
    print_result("report: " + arguments->output + "\n");
    return kExitOk;
  };
}

} // namespace monet::cli
