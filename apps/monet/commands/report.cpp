// monet report RESULT.json: checks a result of any command and writes its page again.
#include "commands/check_result.hpp"
#include "commands/commands.hpp"
#include "report/shared/text.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/files.hpp"
#include "monet/base/warnings.hpp"
#include "monet/report/result.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <memory>

namespace monet::cli {

namespace {

using IsType = bool (Json::*)() const noexcept;

/// Member that a result of a certain kind, other than a step, must have.
struct ResultKind {
  std::string_view kind;
  const char* key;
  IsType is;
  const char* type;
};
constexpr std::array<ResultKind, 6> kResultKinds{
    {{"explore", "fronts", &Json::is_object, "an object"},
     {"explore-comparison", "pairs", &Json::is_array, "a list"},
     {"comparison", "runs", &Json::is_array, "a list"},
     {"cluster", "timeline", &Json::is_object, "an object"},
     {"parallelism", "best_strategy", &Json::is_object, "an object"},
     {"backward-study", "figures", &Json::is_array, "a list"}}};

} // namespace

void check_result(const Json& result, const std::string& path) {
  if (!result.is_object())
    throw InputError({path}, "is not a result: not a JSON object");
  ProblemList problems;
  const auto version = result.find("schema_version");
  if (version == result.end() || *version != 1) {
    problems.add({path}, "is not a result of this version: schema_version is not 1");
  }
  const auto require = [&](const char* key, IsType is, const char* type) {
    if (const auto value = result.find(key); value == result.end() || !((*value).*is)()) {
      problems.add({path}, fmt::format("is not a result: '{}' is not {}", key, type));
    }
  };
  require("name", &Json::is_string, "a string");
  if (const auto kind = result.find("kind"); kind != result.end() && kind->is_string()) {
    const auto known =
        std::ranges::find(kResultKinds, kind->get_ref<const std::string&>(), &ResultKind::kind);
    if (known != kResultKinds.end()) {
      require(known->key, known->is, known->type);
      problems.throw_if_any();
      return;
    }
  }
  require("latency_cycles", &Json::is_number, "a number");
  require("energy_pj", &Json::is_number, "a number");
  require("memory", &Json::is_object, "an object");
  require("phases", &Json::is_array, "a list");
  require("cores", &Json::is_array, "a list");
  require("links", &Json::is_array, "a list");
  require("layers", &Json::is_array, "a list");
  require("timeline", &Json::is_object, "an object");
  problems.throw_if_any();
  const Json& layers = result.at("layers");
  if (!layers.empty() && !layers.front().contains("critical_path_cycles"))
    warn({path},
         "is of an older version: layers and phases have no 'critical_path_cycles', and layers no "
         "'span_cycles'; the page shows 0",
         "model the step again");
}

void add_report_command(Command& monet) {
  struct Arguments {
    std::string result;
    std::string output;
  };
  auto arguments = std::make_shared<Arguments>();
  Command& command =
      monet.add_command("report", "Write the report page of a result.json or explore.json");
  command.add("result", &arguments->result,
              "Result file of monet run, monet schedule or monet explore",
              {.type = "RESULT.json", .required = true});
  command.add("-o,--output", &arguments->output, "File for the page",
              {.type = "report.html", .required = true, .output = Output::file});
  command.footer = "Example: monet report out/edge/result.json -o report.html";
  command.action = [arguments](Session&) {
    const Json result = read_json(arguments->result);
    check_result(result, arguments->result);
    write_file_atomically(arguments->output, page_of(result));
    print_result("report: " + printable(arguments->output) + "\n");
    return kExitOk;
  };
}

} // namespace monet::cli
