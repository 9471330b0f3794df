// Which process evaluates a design: claims that end with the process that made them.
#pragma once

#include "explore/sqlite.hpp"

#include "monet/explore/design.hpp"

#include <cstdint>
#include <map>
#include <string>

namespace monet {

/// This process as an owner of claims. Beside the store lies a file of which every owner holds one
/// byte locked, at its number; the kernel frees the lock when the process ends, however it does, so
/// that a claim is valid exactly as long as its owner lives. (Open file description locks: SQLite's
/// own locks, on the store itself, would be lost when another descriptor of it is closed.)
class StoreOwner {
public:
  /// Inside no transaction. InputError when the file cannot be made or locked.
  explicit StoreOwner(sqlite::Database& database);
  /// Gives up what is claimed still.
  ~StoreOwner();
  StoreOwner(const StoreOwner&) = delete;
  StoreOwner& operator=(const StoreOwner&) = delete;

  std::int64_t number() const { return number_; }
  /// Whether other processes were at work on the store when this one came.
  bool came_to_others() const { return came_to_others_; }
  /// Within a write transaction: whether the owner, not this one, lives.
  bool lives(std::int64_t owner) const;

private:
  void forget_the_dead();
  void leave();

  sqlite::Database& database_;
  std::string path_; ///< of the file of locks
  int file_ = -1;
  std::int64_t number_ = 0;
  bool came_to_others_ = false;
};

} // namespace monet
