// Checkpoints of training runs in a folder: written atomically; the newest can be found again.
// Example:
//   TrainRun start_or_resume(const TrainSetup& setup, const TrainRunOptions& options) {
//     const CheckpointFolder folder("checkpoints", setup.identity);
//     if (const std::optional<CheckpointFolder::Found> found = folder.newest())
//       return {setup, options, found->state, found->path};
//     return {setup, options};
//   }
#pragma once

#include "monet/fit/run.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace monet {

/// Folder of a run's checkpoints. Each is a folder with `tensors/` and the histories as .npy files,
/// and checkpoint.yaml. Folders being written or removed end in .tmp and are ignored.
class CheckpointFolder {
public:
  /// Refers to the checkpoints of runs with this identity; reads and creates nothing yet.
  CheckpointFolder(std::string path, std::string identity)
      : path_(std::move(path)), identity_(std::move(identity)) {}

  /// Writes a checkpoint under a temporary name, renames it, and keeps only the newest `keep`.
  /// Throws OutputError if it cannot.
  void write(const RunState& state, std::int64_t keep) const;

  struct Found {
    std::string path;
    RunState state;
  };
  /// Newest checkpoint; nullopt without checkpoints. Throws InputError if it belongs to another
  /// recipe or cannot be read.
  std::optional<Found> newest() const;

  /// Removes incomplete checkpoints of a killed run.
  void remove_unfinished() const;

  /// Removes all checkpoints and remains of others, for a run from the beginning.
  void clear() const;

private:
  std::string path_;
  std::string identity_;
};

} // namespace monet
