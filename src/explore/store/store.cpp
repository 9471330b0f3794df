// The DesignStore in an SQLite file, which several processes may use at once. The commands open it
// and pass it to explore().
#include "monet/explore/store.hpp"

#include "explore/store/schema.hpp"
#include "explore/store/sqlite.hpp"

#include "monet/base/errors.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>

namespace monet {

namespace {

namespace fs = std::filesystem;
using sqlite::Database;
using sqlite::Statement;
using sqlite::Transaction;

std::string list_of(const std::vector<std::string>& columns) {
  std::string list;
  for (const std::string& column : columns)
    list += (list.empty() ? "" : ", ") + sqlite::quoted_name(column);
  return list;
}

std::string places(std::size_t count) {
  std::string list = "?";
  for (std::size_t i = 1; i < count; ++i)
    list += ", ?";
  return list;
}

/// Reports why a path cannot be opened, where SQLite would only report "unable to open database
/// file".
void check_path(const std::string& path, bool read_only) {
  const auto refuse = [&](const char* why) {
    if (read_only)
      throw InputError({path}, why);
    throw OutputError(path, why);
  };
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status))
    refuse("is a folder, not a file");
  if (fs::exists(status) && !fs::is_regular_file(status))
    refuse("is not a regular file");
  if (fs::exists(status))
    return;
  if (read_only)
    refuse("does not exist");
  const fs::path folder = fs::path(path).parent_path();
  if (!folder.empty() && !fs::is_directory(folder, error))
    refuse("cannot be created: its folder does not exist");
}

/// Path of the lock file of a store. Symbolic links are resolved, as SQLite does for its files, so
/// that all processes use the same lock file.
std::string file_beside(const std::string& store) {
  std::error_code error;
  const fs::path real = fs::weakly_canonical(store, error);
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

/// This process as an owner of claims. Every owner locks one byte, at its number, of a lock file
/// next to the store. The kernel frees the lock when the process ends in any way, so a claim is
/// valid exactly as long as its owner lives. The locks are open file description locks on another
/// file: SQLite's POSIX locks on the store would be lost if another descriptor of it were closed.
class StoreOwner {
public:
  /// Registers the owner; must not be called inside a transaction. Throws OutputError if the lock
  /// file cannot be created or locked.
  explicit StoreOwner(Database& database)
      : database_(database), path_(file_beside(database.path())) {
    // Under the store's write lock no leaving process can remove the lock file meanwhile.
    Transaction transaction(database, Transaction::Kind::write);
    file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file_ < 0)
      throw OutputError(path_, fmt::format("cannot be created: {}", std::strerror(errno)));
    try {
      database.execute("INSERT INTO owners DEFAULT VALUES");
      number_ = database.integer("SELECT last_insert_rowid()");
      struct flock lock = byte_at(number_, F_WRLCK);
      if (::fcntl(file_, F_OFD_SETLK, &lock) != 0)
        throw OutputError(path_, fmt::format("cannot be locked, which several processes need to "
                                             "share a store: {}",
                                             std::strerror(errno)));
      forget_the_dead();
      came_to_others_ = database.integer("SELECT count(*) FROM owners") > 1;
      transaction.commit();
    } catch (...) {
      ::close(file_);
      throw;
    }
  }

  /// Releases all remaining claims.
  ~StoreOwner() {
    try {
      leave();
    } catch (const std::exception&) {
      // The next process that opens the store detects that this owner is dead.
    }
    ::close(file_);
  }

  StoreOwner(const StoreOwner&) = delete;
  StoreOwner& operator=(const StoreOwner&) = delete;

  std::int64_t number() const { return number_; }
  /// Whether other processes were using the store when this owner registered.
  bool came_to_others() const { return came_to_others_; }

  /// Whether another owner is alive. Must be called within a write transaction.
  bool lives(std::int64_t owner) const {
    struct flock lock = byte_at(owner, F_WRLCK);
    if (::fcntl(file_, F_OFD_GETLK, &lock) != 0)
      return true; // if unknown, it keeps its designs
    return lock.l_type != F_UNLCK;
  }

private:
  void forget_the_dead() {
    std::vector<std::int64_t> dead;
    Statement others(database_, "SELECT number FROM owners WHERE number <> ?");
    others.bind(1, number_);
    while (others.step()) {
      if (!lives(others.integer(0)))
        dead.push_back(others.integer(0));
    }
    others.reset();
    for (const std::int64_t number : dead)
      forget(number);
  }

  void forget(std::int64_t owner) {
    Statement(database_, "DELETE FROM claims WHERE owner = ?").bind(1, owner).run();
    Statement(database_, "DELETE FROM owners WHERE number = ?").bind(1, owner).run();
  }

  void leave() {
    Transaction transaction(database_, Transaction::Kind::write);
    forget_the_dead();
    forget(number_);
    if (database_.integer("SELECT count(*) FROM owners") == 0)
      ::unlink(path_.c_str());
    transaction.commit();
  }

  Database& database_;
  std::string path_; ///< of the lock file
  int file_ = -1;
  std::int64_t number_ = 0;
  bool came_to_others_ = false;
};

/// The store. Members are declared in the order in which they must be constructed.
class SqliteStore final : public DesignStore {
public:
  SqliteStore(const std::string& path, const Space& space, const StoreOptions& options)
      : database_(open_store_file(path, options.read_only)),
        tool_(prepare_store(database_, space, options)), workload_(space.workload),
        find_(database_,
              fmt::format("SELECT {} FROM designs WHERE id = ?", list_of(result_columns(space)))),
        each_(database_,
              fmt::format("SELECT {} FROM designs ORDER BY id", list_of(result_columns(space)))),
        // Not OR IGNORE: storing a design twice is a bug and must fail.
        insert_(database_,
                fmt::format("INSERT INTO designs({}) VALUES({})", list_of(result_columns(space)),
                            places(result_columns(space).size()))),
        stored_(database_, "SELECT 1 FROM designs WHERE id = ?"),
        claimant_(database_, "SELECT owner FROM claims WHERE id = ?"),
        claim_(database_, "INSERT OR REPLACE INTO claims VALUES(?, ?)"),
        release_(database_, "DELETE FROM claims WHERE id = ?") {
    if (options.read_only)
      return;
    owner_.emplace(database_);
    const std::int64_t rows = database_.integer("SELECT count(*) FROM designs");
    // A process that joins others is meant to share their work and needs no --resume.
    if (!options.resume && rows > 0 && !owner_->came_to_others())
      throw InputError({path}, fmt::format("already holds {} designs of this space: use --resume "
                                           "to continue, or name another file",
                                           rows));
  }

  std::vector<std::optional<DesignResult>> find(std::span<const DesignId> ids) override {
    const std::lock_guard lock(mutex_);
    std::vector<std::optional<DesignResult>> found(ids.size());
    Transaction transaction(database_, Transaction::Kind::read);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      find_.bind(1, static_cast<std::int64_t>(ids[i]));
      if (find_.step())
        found[i] = read_result(find_, workload_, database_.path());
      find_.reset();
    }
    transaction.commit();
    return found;
  }

  std::vector<DesignId> claim(std::span<const DesignId> ids, std::size_t most) override {
    const std::lock_guard lock(mutex_);
    internal_check(owner_.has_value(), "designs are claimed of a store that is read only");
    std::vector<DesignId> claimed;
    std::map<std::int64_t, bool> lives;
    Transaction transaction(database_, Transaction::Kind::write);
    for (const DesignId id : ids) {
      if (claimed.size() == most)
        break;
      const auto key = static_cast<std::int64_t>(id);
      if (is_row(stored_, key) || is_held(key, lives))
        continue;
      claim_.bind(1, key).bind(2, owner_->number()).run();
      claimed.push_back(id);
    }
    transaction.commit();
    return claimed;
  }

  void put(std::span<const DesignResult> results) override {
    const std::lock_guard lock(mutex_);
    internal_check(owner_.has_value(), "designs are put into a store that is read only");
    Transaction transaction(database_, Transaction::Kind::write);
    for (const DesignResult& result : results) {
      bind_result(insert_, result, workload_, tool_);
      insert_.run();
      insert_.clear();
      release_.bind(1, static_cast<std::int64_t>(result.id)).run();
    }
    transaction.commit();
  }

  void each(const std::function<void(const DesignResult&)>& row) override {
    const std::lock_guard lock(mutex_);
    Transaction transaction(database_, Transaction::Kind::read);
    while (each_.step())
      row(read_result(each_, workload_, database_.path()));
    each_.reset();
    transaction.commit();
  }

  std::uint64_t size() override {
    const std::lock_guard lock(mutex_);
    return static_cast<std::uint64_t>(database_.integer("SELECT count(*) FROM designs"));
  }

  std::vector<TrainingRecord> trainings() override {
    const std::lock_guard lock(mutex_);
    return read_trainings(database_);
  }

  std::optional<TrainingRecord> find_training(const std::string& key, std::uint64_t seed) override {
    const std::lock_guard lock(mutex_);
    return read_training(database_, key, seed);
  }

  void put_training(const TrainingRecord& record) override {
    const std::lock_guard lock(mutex_);
    internal_check(owner_.has_value(), "a training is put into a store that is read only");
    Transaction transaction(database_, Transaction::Kind::write);
    write_training(database_, record, tool_);
    transaction.commit();
  }

private:
  static bool is_row(Statement& statement, std::int64_t key) {
    statement.bind(1, key);
    const bool row = statement.step();
    statement.reset();
    return row;
  }

  /// Whether a live process, possibly this one, has claimed the design.
  bool is_held(std::int64_t key, std::map<std::int64_t, bool>& lives) {
    claimant_.bind(1, key);
    std::optional<std::int64_t> owner;
    if (claimant_.step())
      owner = claimant_.integer(0);
    claimant_.reset();
    if (!owner)
      return false;
    if (*owner == owner_->number())
      return true;
    const auto [known, is_new] = lives.try_emplace(*owner, true);
    if (is_new)
      known->second = owner_->lives(*owner);
    return known->second;
  }

  std::mutex mutex_;
  Database database_;
  std::int64_t tool_;
  StudiedWorkload workload_;
  Statement find_, each_, insert_, stored_, claimant_, claim_, release_;
  std::optional<StoreOwner> owner_;
};

} // namespace

Database open_store_file(const std::string& path, bool read_only) {
  check_path(path, read_only);
  if (!read_only) {
    Database database(path, sqlite::Access::read_write);
    if (sqlite3_db_readonly(database.handle(), "main") == 1)
      database.fail(SQLITE_READONLY);
    return database;
  }
  try {
    Database database(path, sqlite::Access::read_only);
    database.integer("PRAGMA user_version");
    return database;
  } catch (const InputError&) {
    // A finished store in a read-only folder, where SQLite cannot create its index file.
    std::error_code error;
    if (fs::exists(path + "-wal", error))
      throw;
    return {path, sqlite::Access::read_only_immutable};
  }
}

std::unique_ptr<DesignStore> open_store(const std::string& path, const Space& space,
                                        const StoreOptions& options) {
  return std::make_unique<SqliteStore>(path, space, options);
}

} // namespace monet
