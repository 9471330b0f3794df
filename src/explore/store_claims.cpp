#include "explore/store_claims.hpp"

#include "monet/base/errors.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

namespace monet {

using sqlite::Statement;
using sqlite::Transaction;

namespace {

/// Through symbolic links, as SQLite names its own files: all processes must meet at one.
std::string file_beside(const std::string& store) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::weakly_canonical(store, error);
  return (error ? store : real.string()) + "-owners";
}

struct flock byte_at(std::int64_t number, short kind) {
  struct flock lock {};
  lock.l_type = kind;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(number);
  lock.l_len = 1;
  return lock;
}

} // namespace

StoreOwner::StoreOwner(sqlite::Database& database)
    : database_(database), path_(file_beside(database.path())) {
  // The write lock of the store keeps the last to leave from removing the file under our hands.
  Transaction transaction(database, Transaction::Kind::write);
  file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file_ < 0)
    throw InputError({path_}, fmt::format("cannot be created: {}", std::strerror(errno)));
  try {
    database.execute("INSERT INTO owners DEFAULT VALUES");
    number_ = database.integer("SELECT last_insert_rowid()");
    struct flock lock = byte_at(number_, F_WRLCK);
    if (::fcntl(file_, F_OFD_SETLK, &lock) != 0)
      throw InputError({path_},
                       fmt::format("cannot be locked, which several processes need to share "
                                   "a store: {}",
                                   std::strerror(errno)));
    forget_the_dead();
    came_to_others_ = database.integer("SELECT count(*) FROM owners") > 1;
    transaction.commit();
  } catch (...) {
    ::close(file_);
    throw;
  }
}

StoreOwner::~StoreOwner() {
  try {
    leave();
  } catch (const std::exception&) {
    // The next to open the store sees that we are gone.
  }
  ::close(file_);
}

void StoreOwner::forget_the_dead() {
  std::vector<std::int64_t> dead;
  Statement others(database_, "SELECT number FROM owners WHERE number <> ?");
  others.bind(1, number_);
  while (others.step()) {
    if (!lives(others.integer(0)))
      dead.push_back(others.integer(0));
  }
  others.reset();
  Statement claims(database_, "DELETE FROM claims WHERE owner = ?");
  Statement owner(database_, "DELETE FROM owners WHERE number = ?");
  for (const std::int64_t number : dead) {
    claims.bind(1, number).run();
    owner.bind(1, number).run();
  }
}

void StoreOwner::leave() {
  Transaction transaction(database_, Transaction::Kind::write);
  forget_the_dead();
  Statement(database_, "DELETE FROM claims WHERE owner = ?").bind(1, number_).run();
  Statement(database_, "DELETE FROM owners WHERE number = ?").bind(1, number_).run();
  if (database_.integer("SELECT count(*) FROM owners") == 0)
    ::unlink(path_.c_str());
  transaction.commit();
}

bool StoreOwner::lives(std::int64_t owner) const {
  struct flock lock = byte_at(owner, F_WRLCK);
  if (::fcntl(file_, F_OFD_GETLK, &lock) != 0)
    return true; // in doubt its designs are left to it
  return lock.l_type != F_UNLCK;
}

} // namespace monet
