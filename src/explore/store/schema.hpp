// The tables of a store, and how a result becomes a row.
// docs/reference/exploration-result.md describes them for users.
#pragma once

#include "explore/store/sqlite.hpp"

#include "monet/explore/design.hpp"
#include "monet/explore/space.hpp"
#include "monet/explore/store.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace monet {

/// SQLite's application_id of our files: "MONE".
inline constexpr std::int64_t kStoreApplication = 0x4D4F4E45;
/// Of the tables; SQLite's user_version.
inline constexpr std::int64_t kStoreSchema = 2;

/// Column names of a result in the order of its row; `id` first. The last two are the tool's number
/// and the row's checksum.
std::vector<std::string> result_columns(const Space& space);

/// Makes the tables in a new file, or checks that they are of this space and undamaged. The number
/// of the tool's version among those that wrote rows; 0 when read-only. InputError.
std::int64_t prepare_store(sqlite::Database& database, const Space& space,
                           const StoreOptions& options);

/// The file, which may be new unless read only; SQLite has not looked into it yet. InputError.
sqlite::Database open_store_file(const std::string& path, bool read_only);

/// What look_at_store() found.
enum class FoundStore : std::uint8_t { nothing, store };
/// Within a transaction, or another process could make the file in between. InputError for what is
/// neither empty nor a store of this version or one before it.
FoundStore look_at_store(sqlite::Database& database);

/// Binds the columns of result_columns(). InternalError for a result that has not the space's runs
/// and metrics, or is not a number.
void bind_result(sqlite::Statement& statement, const DesignResult& result,
                 const StudiedWorkload& workload, std::int64_t tool);
/// The row of a SELECT of result_columns(); InputError when its checksum is not that of its
/// figures.
DesignResult read_result(const sqlite::Statement& statement, const StudiedWorkload& workload,
                         const std::string& path);

/// Of the table of short trainings, in order of key and seed. InputError for a damaged row.
std::vector<TrainingRecord> read_trainings(sqlite::Database& database);
std::optional<TrainingRecord> read_training(sqlite::Database& database, const std::string& key,
                                            std::uint64_t seed);
/// What is there already stays.
void write_training(sqlite::Database& database, const TrainingRecord& record, std::int64_t tool);

} // namespace monet
