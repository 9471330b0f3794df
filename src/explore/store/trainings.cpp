// Reads and writes the table of short trainings for the store (store.cpp).
#include "base/shared/bytes.hpp"
#include "base/shared/fnv1a.hpp"
#include "explore/store/schema.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>

namespace monet {

using sqlite::Database;
using sqlite::Statement;

namespace {

constexpr const char* kColumns =
    "SELECT key, seed, error, gradients_flushed, checksum FROM trainings";

std::int64_t checksum_of_training(const TrainingRecord& record) {
  ByteWriter row;
  row.text(record.key);
  row.number(record.seed, record.error, record.gradients_flushed);
  return static_cast<std::int64_t>(fnv1a(row.take()));
}

TrainingRecord record_of(const Statement& row, const std::string& path) {
  TrainingRecord record{row.text(0), static_cast<std::uint64_t>(row.integer(1)), row.real(2),
                        row.real(3)};
  if (row.integer(4) != checksum_of_training(record))
    throw InputError({path},
                     fmt::format("is damaged: the row of a training (seed {}) is not what was "
                                 "written; delete it, or restore a copy",
                                 record.seed));
  return record;
}

/// Whether the store has the table of trainings; a read-only store of version 1 has none.
bool has_trainings(Database& database) {
  return database.integer("SELECT count(*) FROM sqlite_master WHERE name = 'trainings'") > 0;
}

} // namespace

std::vector<TrainingRecord> read_trainings(Database& database) {
  std::vector<TrainingRecord> records;
  if (!has_trainings(database))
    return records;
  Statement rows(database, fmt::format("{} ORDER BY key, seed", kColumns));
  while (rows.step())
    records.push_back(record_of(rows, database.path()));
  return records;
}

std::optional<TrainingRecord> read_training(Database& database, const std::string& key,
                                            std::uint64_t seed) {
  if (!has_trainings(database))
    return std::nullopt;
  Statement row(database, fmt::format("{} WHERE key = ? AND seed = ?", kColumns));
  row.bind(1, key).bind(2, static_cast<std::int64_t>(seed));
  return row.step() ? std::optional(record_of(row, database.path())) : std::nullopt;
}

void write_training(Database& database, const TrainingRecord& record, std::int64_t tool) {
  Statement insert(database, "INSERT OR IGNORE INTO trainings VALUES(?, ?, ?, ?, ?, ?)");
  insert.bind(1, record.key).bind(2, static_cast<std::int64_t>(record.seed));
  insert.bind(3, record.error).bind(4, record.gradients_flushed);
  insert.bind(5, tool).bind(6, checksum_of_training(record)).run();
}

} // namespace monet
