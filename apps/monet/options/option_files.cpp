// Writes tables of reference pages, JSON Schemas and functions in Python from the tables of options
// (option_files.hpp). write_help_pages.cpp runs it for authors.
#include "options/option_files.hpp"

#include "base/shared/text.hpp"
#include "options/experiment.hpp"
#include "options/help_pages.hpp"

#include "monet/base/errors.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <set>

namespace monet::cli {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kEnd = "<!-- end -->";

/// Options of an experiment file by their section.
struct FileSections {
  OptimiseRequest limits;
  CheckpointingArguments checkpointing;
  FusionOptions fusion;
  AllocationSearchOptions allocation;
  ScheduleKeys schedule;
  CoreCostOptions core_cost;

  std::vector<BoundOption> at(std::string_view section) {
    std::vector<BoundOption> options;
    if (section == "schedule") {
      options = bind(kScheduleKeys, schedule);
      for (const auto& more : {bind(kEffortKeys, schedule), bind(kCoreCostKeys, core_cost)})
        options.insert(options.end(), more.begin(), more.end());
    }
    if (section == "optimise")
      options = bind(kSearchLimits, limits);
    if (section == "optimise.checkpointing")
      options = bind(kCheckpointingOptions, checkpointing);
    if (section == "optimise.fusion")
      options = bind(kFusionOptions, fusion);
    if (section == "optimise.allocation")
      options = bind(kAllocationOptions, allocation);
    std::erase_if(options,
                  [](const BoundOption& one) { return one.details.place == OptionPlace::command; });
    internal_check(!options.empty(), fmt::format("no options of files in '{}'", section));
    return options;
  }
};

const Command& command_at(const Command& program, std::string_view path) {
  const Command* at = &program;
  for (const std::string_view word : split(path, ' ', path.size())) {
    const auto found = std::ranges::find(at->commands, word, &Command::name);
    internal_check(found != at->commands.end(), fmt::format("no command '{}'", path));
    at = &*found;
  }
  return *at;
}

/// Text in a cell of a table.
std::string cell(std::string_view text) {
  std::string result;
  for (const char c : text)
    result += c == '|' ? "\\|" : std::string(1, c);
  return result;
}

/// Cells of a row.
std::string row(const std::vector<std::string>& cells) {
  std::string text = "|";
  for (const std::string& one : cells)
    text += (one.empty() ? "" : " " + one) + " |";
  return text + "\n";
}

std::string coded(std::string_view text) {
  return text.empty() ? std::string() : "`" + cell(text) + "`";
}

std::string number_text(double value) {
  const bool is_short = std::abs(value) < 1e15 && value == std::floor(value);
  return is_short ? group_digits(static_cast<std::int64_t>(value)) : fmt::format("{:g}", value);
}

std::string range_text(const std::optional<NumberRange>& range) {
  if (!range)
    return {};
  if (std::isinf(range->most))
    return fmt::format("at least {}", number_text(range->least));
  return fmt::format("{} to {}", number_text(range->least), number_text(range->most));
}

/// Whether the values of an option are of a kind: numbers, whole numbers, lists.
template <class... Values>
bool holds(const OptionValue& value) {
  return (std::holds_alternative<Values>(value) || ...);
}
bool is_whole(const OptionValue& value) {
  return holds<int*, std::int64_t*, std::uint64_t*, std::optional<int>*,
               std::optional<std::int64_t>*>(value);
}
bool is_list(const OptionValue& value) {
  return holds<std::vector<std::string>*, std::vector<std::int64_t>*, std::vector<std::uint64_t>*>(
      value);
}

std::string command_table(const Command& command, std::string_view first, std::string_view last) {
  auto at = std::ranges::find(command.options, first, &Option::name);
  const auto end = std::ranges::find(command.options, last, &Option::name);
  internal_check(at != command.options.end() && end != command.options.end(),
                 fmt::format("'{}' has no options {} to {}", command.name, first, last));
  const std::string group = at->rules.group;
  std::string table = "| option | default | meaning |\n|---|---|---|\n";
  for (;; ++at) {
    if (at->rules.group == group) {
      const bool is_flag = std::holds_alternative<bool*>(at->target);
      const std::string& type = at->rules.type;
      const bool is_text =
          holds<std::string*, std::vector<std::string>*>(at->target) && type.empty();
      const std::string words = !at->rules.choices.empty()
                                    ? fmt::format("{}", fmt::join(at->rules.choices, "|"))
                                : is_flag || !type.empty() ? type
                                : is_text                  ? "TEXT"
                                                           : "N";
      const std::string range =
          at->rules.rewritten.empty() ? range_text(at->rules.range) : at->rules.rewritten;
      table += row({coded(words.empty() ? at->names : at->names + " " + words),
                    is_flag              ? "off"
                    : at->rules.required ? "required"
                                         : coded(default_text(*at)),
                    cell(at->help) + (range.empty() ? "" : " (" + range + ")")});
    }
    if (at == end)
      return table;
  }
}

std::string key_table(const std::vector<BoundOption>& options) {
  std::string table = "| key | type | default | meaning |\n|---|---|---|---|\n";
  for (const BoundOption& one : options) {
    std::string type = range_text(one.details.range) + (one.details.zero_is_none ? ", `none`" : "");
    if (const auto* named = std::get_if<NamedValue>(&one.value)) {
      for (const std::string& name : named->names())
        type += (type.empty() ? "" : ", ") + coded(name);
    } else if (one.details.names != nullptr) {
      type = fmt::format("list of `{}`", fmt::join(*one.details.names, "`, `"));
    } else if (type.empty()) {
      type = is_whole(one.value) ? "integer" : is_list(one.value) ? "list" : "text";
    }
    const Option shown{"", one.value, "", {.hides_default = one.details.hides_default}, "", {}};
    table += row({coded(one.key), type,
                  one.details.required ? "required" : coded(default_text(shown)), cell(one.text)});
  }
  return table;
}

std::string table_of(std::string_view marker, const Command& program) {
  constexpr std::string_view kOptions = "options of monet ";
  constexpr std::string_view kKeys = "keys of ";
  if (marker.starts_with(kKeys))
    return key_table(FileSections().at(marker.substr(kKeys.size())));
  internal_check(marker.starts_with(kOptions), fmt::format("unknown marker '{}'", marker));
  marker.remove_prefix(kOptions.size());
  const std::size_t colon = marker.find(": ");
  const std::size_t to = marker.find(" to ");
  internal_check(colon < to && to != std::string_view::npos, "a marker needs 'FIRST to LAST'");
  return command_table(command_at(program, marker.substr(0, colon)),
                       marker.substr(colon + 2, to - colon - 2), marker.substr(to + 4));
}

Json json_number(double value) {
  return value == std::floor(value) ? Json(static_cast<std::int64_t>(value)) : Json(value);
}

Json schema_of(const BoundOption& option) {
  Json json;
  if (const auto* named = std::get_if<NamedValue>(&option.value)) {
    json["enum"] = named->names();
    json["default"] = named->name();
  } else if (holds<bool*>(option.value)) {
    json["type"] = "boolean";
  } else if (is_list(option.value)) {
    json["type"] = Json::array({"array", "string"});
  } else if (is_whole(option.value)) {
    json["type"] = "integer";
  } else if (holds<double*>(option.value)) {
    json["type"] = "number";
  } else {
    json["type"] = Json::array({"string", "number"}); // a number is a text, too
  }
  std::visit(
      [&]<class T>(const T& value) {
        if constexpr (std::is_pointer_v<T>) {
          if constexpr (std::is_arithmetic_v<std::remove_pointer_t<T>>) {
            if (!option.details.hides_default)
              json["default"] = std::is_same_v<T, double*> ? json_number(*value) : Json(*value);
          }
        }
      },
      option.value);
  if (option.details.names != nullptr)
    json["items"] = {{"enum", *option.details.names}};
  if (option.details.zero_is_none)
    json["type"] = Json::array({"integer", "string"});
  if (const auto& range = option.details.range) {
    json["minimum"] = json_number(range->least);
    if (!std::isinf(range->most))
      json["maximum"] = json_number(range->most);
  }
  json["description"] = option.text;
  return json;
}

Json schema_of(const std::vector<BoundOption>& options) {
  Json json{{"type", "object"}, {"additionalProperties", false}, {"properties", Json::object()}};
  for (const BoundOption& option : options) {
    json["properties"][std::string(option.key)] = schema_of(option);
    if (option.details.required)
      json["required"].push_back(option.key);
  }
  return json;
}

// --- Python -------------------------------------------------------------------------------------

/// Options of a search that are objects in Python, or that another function has.
bool is_elsewhere(const Option& option) {
  static const std::set<std::string> kElsewhere{"experiment", "--hardware",  "--workload",
                                                "--training", "--precision", "--batch",
                                                "--dim",      "--json",      "--model"};
  return kElsewhere.contains(option.name()) || !option.rules.group.empty();
}

std::string python_argument(const Option& option) {
  std::string name = option.name().substr(option.name().find_first_not_of('-'));
  std::ranges::replace(name, '-', '_');
  return name;
}

/// Text of --help with options by their names in Python: "max_slices" for "--max-slices".
std::string in_python(const std::string& text) {
  std::string result;
  bool in_name = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text.compare(at, 2, "--") == 0) {
      in_name = true;
      ++at;
    } else {
      in_name = in_name && text[at] != ' ';
      result += in_name && text[at] == '-' ? '_' : text[at];
    }
  }
  return result;
}

/// Type and default of an argument: "int = 40".
std::string python_type(const Option& option) {
  const OptionValue& value = option.target;
  const std::string shown = default_text(option);
  if (holds<bool*>(value))
    return "bool = False";
  if (option.rules.rewrite)
    return "int | str = " + shown;
  if (is_whole(value))
    return shown.empty() ? "int | None = None" : "int = " + shown;
  if (holds<double*>(value))
    return "float = " + shown;
  if (is_list(value))
    return holds<std::vector<std::string>*>(value) ? "Sequence[str] = ()" : "Sequence[int] = ()";
  if (!option.rules.choices.empty())
    return "str = \"" + shown + "\"";
  if (option.name() == "--mapping" || option.name() == "--stacks")
    return "FileOrDict | Sequence[Any] | None = None";
  return option.rules.output == Output::none ? "File | int | None = None" : "File | None = None";
}

/// Lines of at most 100 columns, each after `indent` blanks, the first after `head`.
std::string wrapped(const std::string& head, const std::string& text, std::size_t indent) {
  constexpr std::size_t kColumns = 100;
  std::string result, line = head;
  for (const std::string_view word : split(text, ' ', text.size())) {
    if (line.size() + 1 + word.size() > kColumns) {
      result += line + "\n";
      line = std::string(indent, ' ') + std::string(word);
    } else {
      line += (line.empty() || line.ends_with(' ') ? "" : " ") + std::string(word);
    }
  }
  return result + line + "\n";
}

std::string python_function(const Command& search) {
  const bool needs_no_step = search.name == "checkpointing"; // but an operator log
  const std::string optional = needs_no_step ? " | None = None" : "";
  std::string text =
      fmt::format("\n\n@search_of_step\ndef {}(\n    step: Step{}, chip: Chip{}, *,\n", search.name,
                  optional, optional);
  std::string about = fmt::format("    \"\"\"{}.\n\n", search.about);
  for (const Option& option : search.options) {
    if (is_elsewhere(option))
      continue;
    const std::string name = python_argument(option);
    text += fmt::format("    {}: {},\n", name, python_type(option));
    about += wrapped("    " + name + ":", in_python(option.help) + ".", 8);
  }
  about +=
      "    progress: True for a display, or a callable that receives the state of the search.\n";
  return text + "    progress: Progress = None,\n) -> SearchResult:\n" + about +
         "    \"\"\"\n    raise NotImplementedError\n";
}

} // namespace

std::string with_option_tables(const std::string& page, const Command& program) {
  std::string result;
  bool is_replaced = false;
  for (const std::string_view line : split(page, '\n', page.size())) {
    if (line == kEnd)
      is_replaced = false;
    if (is_replaced)
      continue;
    result += std::string(line) + "\n";
    const bool is_marker =
        line.starts_with("<!-- options of ") || line.starts_with("<!-- keys of ");
    if (is_marker && line.ends_with(" -->")) {
      is_replaced = true;
      result += table_of(line.substr(5, line.size() - 9), program);
    }
  }
  internal_check(!is_replaced, "a table of options has no end");
  if (!result.empty())
    result.pop_back(); // the text after the last line break is empty
  return result;
}

std::string experiment_schema() {
  FileSections sections;
  Json optimise = schema_of(sections.at("optimise"));
  for (const char* search : {"checkpointing", "fusion", "allocation"})
    optimise["properties"][search] = schema_of(sections.at(fmt::format("optimise.{}", search)));
  Json properties = Json::object();
  for (const char* key : {"name", "workload", "training", "precision", "hardware", "mapping"})
    properties[key] = true;
  properties["schedule"] = schema_of(sections.at("schedule"));
  properties["schedule"]["properties"]["model"] = {{"const", "monet"}};
  properties["optimise"] = optimise;
  const Json schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                    {"title", "Experiment file (monet run)"},
                    {"type", "object"},
                    {"additionalProperties", false},
                    {"required", {"workload", "hardware"}},
                    {"properties", properties}};
  return schema.dump(2) + "\n";
}

std::string python_searches(const Command& program) {
  std::string text = "\"\"\"Functions for the searches of `monet optimise` on a step. Written by "
                     "`monet_help_pages "
                     "--sources` from the\noptions of the command line: do not edit.\"\"\"\n\n"
                     "from __future__ import annotations\n\nfrom collections.abc import Sequence\n"
                     "from typing import Any\n\n"
                     "from monet.calls import File, FileOrDict\nfrom monet.chips import Chip\n"
                     "from monet.model import Step\nfrom monet.progress import Progress\n"
                     "from monet.search_calls import SearchResult, search_of_step\n";
  for (const char* search : {"allocation", "fusion", "checkpointing", "joint"})
    text += python_function(command_at(program, fmt::format("optimise {}", search)));
  return text;
}

} // namespace monet::cli
