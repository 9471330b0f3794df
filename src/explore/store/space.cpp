// Rebuilds the space of a store from its tables, without the space file. Commands that read a
// finished exploration call stored_space().
#include "explore/store/schema.hpp"
#include "explore/store/sqlite.hpp"

#include "monet/base/errors.hpp"
#include "monet/explore/store.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <sstream>

namespace monet {

namespace {

using sqlite::Database;
using sqlite::Statement;

std::vector<std::string> texts(Database& database, const std::string& sql) {
  std::vector<std::string> all;
  Statement statement(database, sql);
  while (statement.step())
    all.push_back(statement.text(0));
  return all;
}

std::vector<std::string> runs_of(Database& database) {
  const std::string_view ending = "_latency_cycles";
  std::vector<std::string> runs;
  for (const std::string& column :
       texts(database, "SELECT name FROM pragma_table_info('designs') ORDER BY cid")) {
    if (column.ends_with(ending))
      runs.push_back(column.substr(0, column.size() - ending.size()));
  }
  return runs;
}

std::vector<Parameter> parameters_of(Database& database) {
  std::vector<Parameter> parameters;
  for (std::string& name : texts(database, "SELECT name FROM parameters ORDER BY position"))
    parameters.push_back({std::move(name), {}});
  Statement rows(database, "SELECT position, value, typeof(value) <> 'text' FROM parameter_values "
                           "ORDER BY position, choice");
  while (rows.step()) {
    ParameterValue value;
    value.is_number = rows.integer(2) != 0;
    value.number = value.is_number ? rows.real(1) : 0;
    value.text = value.is_number ? fmt::format("{}", value.number) : rows.text(1);
    parameters.at(static_cast<std::size_t>(rows.integer(0))).values.push_back(std::move(value));
  }
  return parameters;
}

/// Parses a front such as "training: latency energy"; empty if the text is not of this form.
std::optional<FrontRequest> front_of_text(const std::string& text,
                                          const std::vector<std::string>& runs) {
  const std::size_t colon = text.find(':');
  const auto run = std::ranges::find(runs, text.substr(0, colon));
  if (colon == std::string::npos || run == runs.end())
    return std::nullopt;
  FrontRequest front{static_cast<std::size_t>(run - runs.begin()), {}};
  std::istringstream words(text.substr(colon + 1));
  for (std::string word; words >> word;) {
    if (const auto objective = objective_named(word, kDesignObjectives))
      front.objectives.push_back(*objective);
  }
  return front;
}

} // namespace

Space stored_space(const std::string& path) {
  Database database = open_store_file(path, true);
  if (look_at_store(database) == FoundStore::nothing)
    throw InputError({path}, "is empty, no store of designs");
  Space space;
  space.origin = path;
  space.name = database.text("SELECT value FROM about WHERE name = 'space'");
  space.content_hash = database.text("SELECT value FROM about WHERE name = 'space_hash'");
  space.files = texts(database, "SELECT value FROM about WHERE name GLOB 'file_*' ORDER BY "
                                "CAST(substr(name, 6) AS INTEGER)");
  space.workload.runs = runs_of(database);
  space.workload.metrics = texts(database, "SELECT value FROM about WHERE name GLOB 'metric_*' "
                                           "ORDER BY CAST(substr(name, 8) AS INTEGER)");
  try {
    space.parameters = parameters_of(database);
  } catch (const std::out_of_range&) {
    throw InputError({path}, "is damaged: a value of no parameter");
  }
  for (const std::string& text :
       texts(database, "SELECT value FROM about WHERE name GLOB 'front_*' "
                       "ORDER BY CAST(substr(name, 7) AS INTEGER)")) {
    const std::optional<FrontRequest> front = front_of_text(text, space.workload.runs);
    if (!front)
      throw InputError({path}, "is damaged: a front of no run");
    space.fronts.push_back(*front);
  }
  return space;
}

} // namespace monet
