// The tables of a store file, and the conversion between results and rows.
// docs/reference/exploration-result.md describes them for users.
#pragma once

#include "explore/store/sqlite.hpp"

#include "monet/explore/space.hpp"
#include "monet/explore/store.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace monet {

/// SQLite's application_id of store files: "MONE".
inline constexpr std::int64_t kStoreApplication = 0x4D4F4E45;
/// Version of the tables, stored as SQLite's user_version.
inline constexpr std::int64_t kStoreSchema = 2;

/// Column names of a result in row order: `id` first, the tool's number and the checksum last.
std::vector<std::string> result_columns(const Space& space);

/// Creates the tables in a new file, or checks that existing ones belong to `space` and are intact.
/// Returns the number of this tool version in the table `tools`, or 0 if read-only. Throws
/// InputError.
std::int64_t prepare_store(sqlite::Database& database, const Space& space,
                           const StoreOptions& options);

/// Opens a store file; creates it unless `read_only`. The contents are not checked. Throws
/// InputError, or OutputError if the file cannot be written.
sqlite::Database open_store_file(const std::string& path, bool read_only);

/// Result of look_at_store().
enum class FoundStore : std::uint8_t { nothing, store };
/// Reports whether a database is empty or a store. Must be called within a transaction, because
/// another process may be creating the store. Throws InputError for other files and newer versions.
FoundStore look_at_store(sqlite::Database& database);

/// Binds the columns of result_columns(). Throws InternalError if the result's runs or metrics do
/// not match the space, or a figure is NaN.
void bind_result(sqlite::Statement& statement, const DesignResult& result,
                 const StudiedWorkload& workload, std::int64_t tool);
/// The result in the current row of a SELECT of result_columns(). Throws InputError if the checksum
/// is wrong.
DesignResult read_result(const sqlite::Statement& statement, const StudiedWorkload& workload,
                         const std::string& path);

/// The table of short trainings, sorted by key and seed. Throws InputError for a damaged row.
std::vector<TrainingRecord> read_trainings(sqlite::Database& database);
std::optional<TrainingRecord> read_training(sqlite::Database& database, const std::string& key,
                                            std::uint64_t seed);
/// Adds a record of a short training; an existing record of its key and seed is kept.
void write_training(sqlite::Database& database, const TrainingRecord& record, std::int64_t tool);

} // namespace monet
