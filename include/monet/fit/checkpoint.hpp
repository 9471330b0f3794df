// Runs put down in a folder: whole or not at all, and the newest is found again.
#pragma once

#include "monet/fit/run.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace monet {

/// A run's folder of checkpoints, one folder each: `tensors/` and the histories as .npy files, and
/// checkpoint.yaml. What is being written, or goes, ends in .tmp, and counts for nothing.
class CheckpointFolder {
public:
  /// Of runs with this identity; nothing is read or made yet.
  CheckpointFolder(std::string path, std::string identity)
      : path_(std::move(path)), identity_(std::move(identity)) {}

  /// Writes aside and renames, and keeps the newest `keep`. OutputError where it cannot.
  void write(const RunState& state, std::int64_t keep) const;

  struct Found {
    std::string path;
    RunState state;
  };
  /// The newest; nullopt where there is none. InputError where it is of another recipe, or cannot
  /// be read.
  std::optional<Found> newest() const;

  /// Removes checkpoints that a killed run did not finish.
  void remove_unfinished() const;

  /// Removes all of them, and what is left of others: a run begins anew.
  void clear() const;

private:
  std::string path_;
  std::string identity_;
};

} // namespace monet
