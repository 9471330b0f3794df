// Results of designs in an SQLite file: one row per design, safe at any kill.
#pragma once

#include "monet/explore/design.hpp"
#include "monet/explore/space.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace monet {

struct StoreOptions {
  /// The file may hold designs of this space; else it must not, but for those of processes that are
  /// at work on it now.
  bool resume = false;
  bool read_only = false;
  std::string version; ///< of the tool, kept as provenance
  std::string git_hash;
};

/// A store belongs to one space (Space::content_hash); several processes on one machine may use it
/// at once, each design is evaluated by one of them. All functions may be called from any thread.
class DesignStore {
public:
  virtual ~DesignStore() = default;
  /// What is stored of these designs, in their order.
  virtual std::vector<std::optional<DesignResult>> find(std::span<const DesignId> ids) = 0;
  /// Of these designs those that this process shall evaluate now: not stored, and not claimed by a
  /// process that lives. At most `most`.
  virtual std::vector<DesignId> claim(std::span<const DesignId> ids, std::size_t most) = 0;
  /// Appends in one transaction; when it returns, the rows survive kill -9.
  virtual void put(std::span<const DesignResult> results) = 0;
  /// Rows in order of id.
  virtual void each(const std::function<void(const DesignResult&)>& row) = 0;
  virtual std::uint64_t size() = 0;
  /// Short trainings, which designs share: a store without a file need not keep them.
  virtual std::vector<TrainingRecord> trainings() { return {}; }
  virtual std::optional<TrainingRecord> find_training(const std::string& key, std::uint64_t seed) {
    static_cast<void>(key);
    static_cast<void>(seed);
    return std::nullopt;
  }
  /// What is there already, of equal key and seed, stays.
  virtual void put_training(const TrainingRecord& record) { static_cast<void>(record); }
};

/// Opens or makes the file. InputError naming it: no store, of another space, damaged, newer than
/// this version; one of an older version becomes one of this when it is written, its rows as they
/// are. OutputError: not writable, disk full; so do all functions that write.
std::unique_ptr<DesignStore> open_store(const std::string& path, const Space& space,
                                        const StoreOptions& options);
/// What a store says of its space, without the space's files: name, content_hash, parameters,
/// files, workload.runs and fronts. Enough to open it read only. InputError as open_store().
Space stored_space(const std::string& path);
/// In memory, for runs without a file.
std::unique_ptr<DesignStore> memory_store();

/// A line of names, then one per result: id, the parameters' values, feasible (0 or 1), reason,
/// area, power, frequency and each run's figures; doubles in the shortest form that reads back.
std::string designs_csv(std::span<const DesignResult> results, const Space& space);

} // namespace monet
