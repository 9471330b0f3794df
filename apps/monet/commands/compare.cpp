// monet compare A B...: shows what changed between results of modelled steps.
#include "base/shared/text.hpp"
#include "commands/commands.hpp"
#include "pipeline.hpp"
#include "report/shared/result_comparison.hpp"
#include "report/shared/text.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/files.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <memory>

namespace monet::cli {

namespace {

struct CompareArguments {
  std::vector<std::string> results;
  std::vector<std::string> fail_if;
  std::string folder;
  std::string json;
  std::string csv;
  int layers = 20;
};

/// File of a result: the path, or the result in the folder.
std::string result_file(const std::string& path) {
  if (!std::filesystem::is_directory(path))
    return path;
  for (const char* name : {"result.json", "cluster.json"}) {
    if (is_file(path_in(path, name)))
      return path_in(path, name);
  }
  throw InputError({path}, "has neither result.json nor cluster.json");
}

/// Condition of --fail-if, such as "latency > 1.02x": a figure, and a limit that is absolute or
/// relative to the first result.
struct Condition {
  std::string text;
  std::string figure;
  bool above = true;
  double limit = 0;
  bool relative = false;

  bool holds(double value, double first) const {
    const double bound = relative ? limit * first : limit;
    return above ? value > bound : value < bound;
  }
};

Condition condition_of(const std::string& text) {
  Condition condition{.text = text};
  const std::size_t at = text.find_first_of("<>");
  std::string_view number =
      at == std::string::npos ? std::string_view{} : trimmed(std::string_view(text).substr(at + 1));
  if (at != std::string::npos) {
    condition.figure = trimmed(std::string_view(text).substr(0, at));
    condition.above = text[at] == '>';
  }
  condition.relative = number.ends_with('x');
  if (condition.relative)
    number.remove_suffix(1);
  const auto limit = number_in<double>(number);
  if (!limit || condition.figure.empty())
    throw UsageError(fmt::format(
        "--fail-if '{}' is not a condition such as 'latency > 1.02x' or 'energy > 1e9'", text));
  condition.limit = *limit;
  return condition;
}

/// Messages about conditions that hold for a result after the first.
std::vector<std::string> failures(const std::vector<Condition>& conditions,
                                  const Json& comparison) {
  const Json& totals = comparison.at("totals");
  std::vector<std::string> found;
  for (const Condition& condition : conditions) {
    const auto total = std::ranges::find_if(
        totals, [&](const Json& one) { return one.at("name") == condition.figure; });
    if (total == totals.end()) {
      std::vector<std::string> names;
      for (const Json& one : totals)
        names.push_back(one.at("name"));
      throw UsageError(
          fmt::format("--fail-if: the results have no figure '{}'; their figures are {}",
                      condition.figure, fmt::join(names, ", ")));
    }
    const Json& values = total->at("values");
    for (std::size_t i = 1; i < values.size(); ++i) {
      if (values[i].is_null() || values[0].is_null())
        throw UsageError(
            fmt::format("--fail-if '{}': a result has no such figure", condition.text));
      if (!condition.holds(values[i].get<double>(), values[0].get<double>()))
        continue;
      found.push_back(fmt::format("'{}' holds for {}: {} instead of {}", condition.text,
                                  comparison.at("runs")[i].at("label").get<std::string>(),
                                  json_text(values[i]), json_text(values[0])));
    }
  }
  return found;
}

Json compare_files(const std::vector<std::string>& paths) {
  std::vector<Json> read;
  for (const std::string& path : paths)
    read.push_back(read_json(result_file(path)));
  std::vector<ComparedResult> results;
  for (std::size_t i = 0; i < paths.size(); ++i)
    results.push_back({paths[i], &read[i]});
  try {
    return result_comparison_json(results);
  } catch (const nlohmann::json::exception&) {
    throw InputError({fmt::format("{}", fmt::join(paths, " or "))},
                     "is not a complete result of monet run, schedule or cluster");
  }
}

int run_compare(const CompareArguments& arguments, Session& session) {
  if (arguments.results.size() < 2)
    throw UsageError("monet compare requires two results or more");
  std::vector<Condition> conditions;
  for (const std::string& text : arguments.fail_if)
    conditions.push_back(condition_of(text));
  session.progress.stage("compare");
  const Json comparison = compare_files(arguments.results);
  const std::vector<std::string> failed = failures(conditions, comparison);
  std::string text =
      result_comparison_table(comparison, static_cast<std::size_t>(arguments.layers));
  if (!arguments.folder.empty())
    text += "\nreport: " + printable(write_comparison(arguments.folder, comparison)) + "\n";
  if (!arguments.csv.empty())
    write_file_atomically(arguments.csv, result_comparison_csv(comparison));
  write_output(arguments.json, comparison, text);
  for (const std::string& message : failed)
    print_message("error: ", "--fail-if " + message);
  return failed.empty() ? kExitOk : kExitCondition;
}

} // namespace

void add_compare_command(Command& monet) {
  auto arguments = std::make_shared<CompareArguments>();
  Command& command = monet.add_command("compare", "Compare results of modelled steps");
  command.add("results", &arguments->results,
              "Results of monet run, schedule or cluster, or folders with them; the first is what "
              "the others are compared with",
              {.type = "RESULT", .required = true});
  command.add("--fail-if", &arguments->fail_if,
              "Exit with code 1 if a condition such as 'latency > 1.02x' holds for a result; x "
              "means times the first result",
              {.type = "CONDITION", .repeated = true});
  command.add("--layers", &arguments->layers, "Maximum number of layers in the table",
              {.range = Range{0, 1'000'000}});
  command.add("-o,--output", &arguments->folder, "Folder for compare.html and compare.json",
              {.type = "FOLDER", .output = Output::folder});
  command.add("--json", &arguments->json, "File for the comparison as JSON; - for standard output",
              {.type = "FILE", .output = Output::file});
  command.add("--csv", &arguments->csv, "File for the comparison as CSV",
              {.type = "FILE", .output = Output::file});
  command.footer = "Example: monet compare out/before out/after --fail-if 'latency > 1.02x'";
  command.action = [arguments](Session& session) { return run_compare(*arguments, session); };
}

} // namespace monet::cli
