// Store of design results in an SQLite file: one row per design, crash-safe.
// Example:
//   std::vector<DesignResult> stored_results(const std::string& path) {
//     StoreOptions options;
//     options.read_only = true;
//     const std::unique_ptr<DesignStore> store = open_store(path, stored_space(path), options);
//     std::vector<DesignResult> results;
//     store->each([&](const DesignResult& result) { results.push_back(result); });
//     return results;
//   }
#pragma once

#include "monet/explore/space.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace monet {

/// Options of open_store().
struct StoreOptions {
  /// Whether the file may already hold designs of this space. Otherwise only designs of processes
  /// that use it now are allowed.
  bool resume = false;
  bool read_only = false;
  std::string version; ///< version of the tool, stored as provenance
  std::string git_hash;
};

/// Store of one space (Space::content_hash). Several processes on one machine can use it at once,
/// and each design is evaluated by only one of them. Functions are thread-safe.
class DesignStore {
public:
  virtual ~DesignStore() = default;
  /// Stored results of these designs, in their order.
  virtual std::vector<std::optional<DesignResult>> find(std::span<const DesignId> ids) = 0;
  /// Claims designs for this process: those among `ids` that are neither stored nor claimed by a
  /// live process, at most `most`.
  virtual std::vector<DesignId> claim(std::span<const DesignId> ids, std::size_t most) = 0;
  /// Appends results in one transaction; after it returns, the rows survive kill -9.
  virtual void put(std::span<const DesignResult> results) = 0;
  /// Calls `row` with all results, sorted by id.
  virtual void each(const std::function<void(const DesignResult&)>& row) = 0;
  virtual std::uint64_t size() = 0;
  /// Stored short trainings, which designs share. A store without a file may keep none.
  virtual std::vector<TrainingRecord> trainings() { return {}; }
  virtual std::optional<TrainingRecord> find_training(const std::string& key, std::uint64_t seed) {
    static_cast<void>(key);
    static_cast<void>(seed);
    return std::nullopt;
  }
  /// Stores a short training; an existing record with the same key and seed is kept.
  virtual void put_training(const TrainingRecord& record) { static_cast<void>(record); }
};

/// Opens or creates the file. A file of an older version is converted when it is first written; its
/// rows are kept. Throws InputError naming the file if it is not a store, belongs to another space,
/// is damaged, or is newer than this version. This function and all others that write throw
/// OutputError if the file cannot be written or the disk is full.
std::unique_ptr<DesignStore> open_store(const std::string& path, const Space& space,
                                        const StoreOptions& options);
/// Space as described in a store, without the space's files: name, content_hash, parameters, files,
/// workload.runs and fronts. This suffices to open the store read-only. Errors as open_store().
Space stored_space(const std::string& path);
/// Store in memory, for runs without a file.
std::unique_ptr<DesignStore> memory_store();

/// CSV table of results: a header, then one row per result with id, parameter values, feasible (0
/// or 1), reason, area, power, frequency and each run's figures. Doubles have the shortest form
/// that reads back exactly.
std::string designs_csv(std::span<const DesignResult> results, const Space& space);

} // namespace monet
