// Creates and checks the tables of a store file, and converts results to rows and back. The store
// (store.cpp) calls this.
#include "explore/store/schema.hpp"

#include "base/shared/bytes.hpp"
#include "base/shared/fnv1a.hpp"
#include "explore/shared/run_figures.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <span>
#include <thread>

namespace monet {

using sqlite::Database;
using sqlite::quoted_name;
using sqlite::Statement;
using sqlite::Transaction;

namespace {

constexpr int kFixedColumns = 6; // id .. frequency_hz
constexpr int kRunColumns = kRunFigures.size();
constexpr std::int64_t kOldestSchema = 1; ///< oldest readable version

/// Checksum of a row's contents. SQLite detects damaged pages but not changed values.
std::int64_t checksum_of(const DesignResult& result) {
  ByteWriter row;
  row.number(result.id, std::uint64_t{result.feasible});
  row.text(result.reason);
  row.number(result.area_mm2, result.peak_power_w, result.frequency_hz);
  for (const StepFigures& run : result.runs)
    for_each_run_figure(run, [&](const char*, auto figure) { row.number(figure); });
  for (const Metric& metric : result.metrics)
    row.number(metric.value);
  return static_cast<std::int64_t>(fnv1a(row.take()));
}

/// A column name that differs, ignoring case, from all names in `taken`; adds it to them.
std::string free_name(std::string name, std::map<std::string, int>& taken) {
  const auto folded = [](std::string text) {
    for (char& c : text)
      c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return text;
  };
  while (taken.contains(folded(name)))
    name = "parameter_" + name;
  taken[folded(name)] = 1;
  return name;
}

/// The statement that creates the view `exploration`: designs with their parameter values, for use
/// in the sqlite3 shell. Values are found from the mixed-radix digits of the id.
std::string view_of(const Space& space) {
  const std::vector<std::string> columns = result_columns(space);
  std::map<std::string, int> taken{{"tool_version", 1}, {"git_hash", 1}};
  for (const std::string& column : columns)
    free_name(column, taken);
  std::string sql = "CREATE VIEW exploration AS SELECT d.id";
  std::int64_t stride = static_cast<std::int64_t>(space.size());
  for (std::size_t p = 0; p < space.parameters.size(); ++p) {
    const auto count = static_cast<std::int64_t>(space.parameters[p].values.size());
    stride = count > 0 ? stride / count : 0;
    sql += fmt::format(", (SELECT value FROM parameter_values WHERE position = {} AND choice = "
                       "d.id / {} % {}) AS {}",
                       p, stride, count, quoted_name(free_name(space.parameters[p].name, taken)));
  }
  for (std::size_t c = 1; c + 2 < columns.size(); ++c)
    sql += ", d." + quoted_name(columns[c]);
  return sql + ", t.version AS tool_version, t.git_hash AS git_hash FROM designs AS d LEFT JOIN "
               "tools AS t ON t.number = d.tool";
}

std::string designs_table(const Space& space) {
  std::string sql =
      "CREATE TABLE designs(id INTEGER PRIMARY KEY, feasible INTEGER NOT NULL, reason "
      "TEXT NOT NULL, area_mm2 REAL NOT NULL, peak_power_w REAL NOT NULL, "
      "frequency_hz REAL NOT NULL";
  for (const std::string& run : space.workload.runs) {
    for_each_run_figure(StepFigures(), [&](const char* key, auto figure) {
      sql += fmt::format(", {} {}", quoted_name(run + "_" + key),
                         std::is_integral_v<decltype(figure)> ? "INTEGER" : "REAL");
    });
  }
  for (const std::string& metric : space.workload.metrics)
    sql += fmt::format(", {} REAL", quoted_name(metric));
  return sql + ", tool INTEGER NOT NULL, checksum INTEGER NOT NULL)";
}

void write_parameters(Database& database, const Space& space) {
  Statement parameter(database, "INSERT INTO parameters VALUES(?, ?)");
  Statement value(database, "INSERT INTO parameter_values VALUES(?, ?, ?)");
  for (std::size_t p = 0; p < space.parameters.size(); ++p) {
    const auto position = static_cast<std::int64_t>(p);
    parameter.bind(1, position).bind(2, space.parameters[p].name).run();
    std::int64_t choice = 0;
    for (const ParameterValue& of : space.parameters[p].values) {
      value.bind(1, position).bind(2, choice++);
      // Integers are stored as integers, so that they print without ".0".
      if (!of.is_number)
        value.bind(3, of.text);
      else if (of.number == std::floor(of.number) && std::abs(of.number) < 0x1p53)
        value.bind(3, static_cast<std::int64_t>(of.number));
      else
        value.bind(3, of.number);
      value.run();
    }
  }
}

/// The table of short trainings, which designs share; present from version 2 on.
void make_trainings_table(Database& database) {
  database.execute("CREATE TABLE IF NOT EXISTS trainings(key TEXT NOT NULL, seed INTEGER NOT NULL, "
                   "error REAL NOT NULL, gradients_flushed REAL NOT NULL, tool INTEGER NOT NULL, "
                   "checksum INTEGER NOT NULL, PRIMARY KEY(key, seed)) WITHOUT ROWID");
}

/// A front as text, for example "training: latency energy".
std::string front_text(const Space& space, const FrontRequest& front) {
  std::string text = space.workload.runs.at(front.run) + ":";
  for (const Objective objective : front.objectives)
    text += fmt::format(" {}", name_of(objective));
  return text;
}

/// Creates all tables. The caller's transaction makes everything visible at once, including the
/// application id and version in the header.
void make_tables(Database& database, const Space& space) {
  database.execute("CREATE TABLE about(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"
                   "CREATE TABLE tools(number INTEGER PRIMARY KEY, version TEXT NOT NULL, git_hash "
                   "TEXT NOT NULL,"
                   " UNIQUE(version, git_hash));"
                   "CREATE TABLE parameters(position INTEGER PRIMARY KEY, name TEXT NOT NULL);"
                   "CREATE TABLE parameter_values(position INTEGER, choice INTEGER, value,"
                   " PRIMARY KEY(position, choice)) WITHOUT ROWID;"
                   // AUTOINCREMENT: owner numbers are never reused.
                   "CREATE TABLE owners(number INTEGER PRIMARY KEY AUTOINCREMENT);"
                   "CREATE TABLE claims(id INTEGER PRIMARY KEY, owner INTEGER NOT NULL);");
  database.execute(designs_table(space));
  database.execute(view_of(space));
  make_trainings_table(database);
  write_parameters(database, space);
  Statement about(database, "INSERT INTO about VALUES(?, ?)");
  about.bind(1, std::string_view("space")).bind(2, space.name).run();
  about.bind(1, std::string_view("space_hash")).bind(2, space.content_hash).run();
  for (std::size_t f = 0; f < space.files.size(); ++f)
    about.bind(1, fmt::format("file_{}", f)).bind(2, space.files[f]).run();
  for (std::size_t f = 0; f < space.fronts.size(); ++f)
    about.bind(1, fmt::format("front_{}", f)).bind(2, front_text(space, space.fronts[f])).run();
  for (std::size_t m = 0; m < space.workload.metrics.size(); ++m)
    about.bind(1, fmt::format("metric_{}", m)).bind(2, space.workload.metrics[m]).run();
  database.execute(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}",
                               kStoreApplication, kStoreSchema));
}

void check_store(Database& database, const Space& space) {
  if (const std::string health = database.text("PRAGMA quick_check(1)"); health != "ok") {
    throw InputError({database.path()},
                     fmt::format("is damaged: restore a copy, or save what is readable with "
                                 "sqlite3's .recover ({})",
                                 health.substr(0, health.find('\n'))));
  }
  const std::string hash = database.text("SELECT value FROM about WHERE name = 'space_hash'");
  if (hash != space.content_hash) {
    throw InputError(
        {database.path()},
        fmt::format("holds designs of the space '{}' (hash {}), not of '{}' (hash {}), or a file "
                    "that it names has changed since: name another file",
                    database.text("SELECT value FROM about WHERE name = 'space'"), hash, space.name,
                    space.content_hash));
  }
}

/// Converts an older store to the current version, within a transaction. Rows do not change: an
/// older store has all columns that its space needs.
void renew_store(Database& database) {
  if (database.integer("PRAGMA user_version") >= kStoreSchema)
    return;
  make_trainings_table(database);
  database.execute(fmt::format("PRAGMA user_version = {}", kStoreSchema));
}

/// Turns on the write-ahead log: readers do not wait for writers, and a killed process loses no
/// committed rows. Without shared memory SQLite keeps its rollback journal, which is equally safe.
void use_write_ahead_log(Database& database) {
  constexpr int kTries = 1000;
  for (int tries = 0;; ++tries) {
    try {
      database.execute("PRAGMA journal_mode = WAL");
      break;
    } catch (const OutputError&) {
      // Another process that creates the same file may lock it briefly; SQLite does not wait here.
      if (tries == kTries)
        throw;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  database.execute("PRAGMA synchronous = NORMAL");
}

std::int64_t number_of_tool(Database& database, const StoreOptions& options) {
  Statement insert(database, "INSERT OR IGNORE INTO tools(version, git_hash) VALUES(?, ?)");
  insert.bind(1, options.version).bind(2, options.git_hash).run();
  Statement find(database, "SELECT number FROM tools WHERE version = ? AND git_hash = ?");
  find.bind(1, options.version).bind(2, options.git_hash);
  internal_check(find.step(), "a tool that was just written is not in its table");
  return find.integer(0);
}

/// The number as SQLite keeps it.
std::int64_t number(std::int64_t value) {
  return value;
}

double number(double value) {
  internal_check(!std::isnan(value), "a design's figure is no number");
  return value == 0 ? 0.0 : value; // SQLite has no negative zero
}

} // namespace

FoundStore look_at_store(Database& database) {
  const std::int64_t application = database.integer("PRAGMA application_id");
  const std::int64_t schema = database.integer("PRAGMA user_version");
  if (application == kStoreApplication) {
    if (schema >= kOldestSchema && schema <= kStoreSchema)
      return FoundStore::store;
    throw InputError(
        {database.path()},
        fmt::format("was written by {} version of the tool (its tables are version {}, "
                    "this one's {}): use that version, or name another file",
                    schema > kStoreSchema ? "a newer" : "an older", schema, kStoreSchema));
  }
  if (application == 0 && schema == 0 &&
      database.integer("SELECT count(*) FROM sqlite_master") == 0)
    return FoundStore::nothing;
  throw InputError({database.path()}, "is a database of another program: name another file");
}

std::vector<std::string> result_columns(const Space& space) {
  std::vector<std::string> columns{"id",       "feasible",     "reason",
                                   "area_mm2", "peak_power_w", "frequency_hz"};
  for (const std::string& run : space.workload.runs) {
    for (const char* figure : kRunFigures)
      columns.push_back(run + "_" + figure);
  }
  columns.insert(columns.end(), space.workload.metrics.begin(), space.workload.metrics.end());
  columns.insert(columns.end(), {"tool", "checksum"});
  return columns;
}

std::int64_t prepare_store(Database& database, const Space& space, const StoreOptions& options) {
  if (space.size() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    throw InfeasibleError(
        fmt::format("space '{}' has more designs than a store can number, 2^63 - 1", space.name));
  const FoundStore found = [&] {
    const Transaction snapshot(database, Transaction::Kind::read);
    return look_at_store(database);
  }();
  if (options.read_only) {
    if (found == FoundStore::nothing)
      throw InputError({database.path()}, "is empty, no store of designs");
    check_store(database, space);
    return 0;
  }
  if (found == FoundStore::store)
    check_store(database, space);
  use_write_ahead_log(database);
  Transaction transaction(database, Transaction::Kind::write);
  // Look again: another process may have created the tables in the meantime.
  if (found == FoundStore::nothing) {
    if (look_at_store(database) == FoundStore::nothing)
      make_tables(database, space);
    else
      check_store(database, space);
  }
  renew_store(database);
  const std::int64_t tool = number_of_tool(database, options);
  transaction.commit();
  return tool;
}

void bind_result(Statement& statement, const DesignResult& result, const StudiedWorkload& workload,
                 std::int64_t tool) {
  const std::vector<std::string>& metrics = workload.metrics;
  internal_check(
      result.runs.size() == (result.feasible ? workload.runs.size() : 0) &&
          std::ranges::equal(result.metrics,
                             std::span(metrics).first(result.feasible ? metrics.size() : 0), {},
                             &Metric::name),
      "a design's result has not the runs and metrics of its space");
  DesignResult row = result;
  row.area_mm2 = number(row.area_mm2);
  row.peak_power_w = number(row.peak_power_w);
  row.frequency_hz = number(row.frequency_hz);
  for (StepFigures& run : row.runs)
    for_each_run_figure(run, [](const char*, auto& figure) { figure = number(figure); });
  for (Metric& metric : row.metrics)
    metric.value = number(metric.value);
  statement.bind(1, static_cast<std::int64_t>(row.id))
      .bind(2, std::int64_t{row.feasible})
      .bind(3, row.reason)
      .bind(4, row.area_mm2)
      .bind(5, row.peak_power_w)
      .bind(6, row.frequency_hz);
  int at = kFixedColumns + 1;
  for (const StepFigures& run : row.runs)
    for_each_run_figure(run, [&](const char*, auto figure) { statement.bind(at++, figure); });
  at = kFixedColumns + 1 + kRunColumns * static_cast<int>(workload.runs.size());
  for (std::size_t m = 0; m < row.metrics.size(); ++m)
    statement.bind(at + static_cast<int>(m), row.metrics[m].value);
  at += static_cast<int>(metrics.size());
  statement.bind(at, tool).bind(at + 1, checksum_of(row));
}

DesignResult read_result(const Statement& statement, const StudiedWorkload& workload,
                         const std::string& path) {
  DesignResult result;
  result.id = static_cast<DesignId>(statement.integer(0));
  result.feasible = statement.integer(1) != 0;
  result.reason = statement.text(2);
  result.area_mm2 = statement.real(3);
  result.peak_power_w = statement.real(4);
  result.frequency_hz = statement.real(5);
  int at = kFixedColumns;
  for (std::size_t r = 0; r < workload.runs.size(); ++r, at += kRunColumns) {
    if (!result.feasible)
      continue;
    int column = at;
    for_each_run_figure(result.runs.emplace_back(), [&](const char*, auto& figure) {
      if constexpr (std::is_integral_v<std::remove_reference_t<decltype(figure)>>)
        figure = statement.integer(column++);
      else
        figure = statement.real(column++);
    });
  }
  for (const std::string& metric : workload.metrics) {
    if (result.feasible)
      result.metrics.push_back({metric, statement.real(at)});
    ++at;
  }
  if (statement.integer(at + 1) != checksum_of(result))
    throw InputError({path},
                     fmt::format("is damaged: the row of design {} is not what was written; "
                                 "delete it, or restore a copy",
                                 result.id));
  return result;
}

} // namespace monet
