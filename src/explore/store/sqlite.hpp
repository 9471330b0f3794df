// RAII wrappers of SQLite databases, statements and transactions. Errors name the file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace monet::sqlite {

enum class Access : std::uint8_t {
  read_write,
  read_only,
  read_only_immutable, ///< for a read-only folder; the file must not change
};

/// A connection to a database. Only one thread at a time may use it.
class Database {
public:
  /// Opens a file; creates it if it is missing and `access` is read_write. Throws as fail() does.
  Database(const std::string& path, Access access);
  ~Database();
  Database(Database&& other) noexcept;
  Database& operator=(Database&&) = delete;
  Database(const Database&) = delete;

  /// Executes statements that have no parameters and return no rows.
  void execute(const std::string& sql);
  /// Calls fail() if `code` is an error.
  void check(int code) const;
  /// The first column of the first row.
  std::int64_t integer(const std::string& sql);
  std::string text(const std::string& sql);
  const std::string& path() const { return path_; }
  sqlite3* handle() const { return handle_; }
  /// Throws an error that explains `code`: OutputError if a file to be written cannot be, otherwise
  /// InputError.
  [[noreturn]] void fail(int code) const;

private:
  std::string path_;
  Access access_;
  sqlite3* handle_ = nullptr;
};

/// A prepared statement that can be executed repeatedly.
class Statement {
public:
  Statement(Database& database, const std::string& sql);
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  /// Binds parameter `at`, counted from 1. Text is copied.
  Statement& bind(int at, std::int64_t value);
  Statement& bind(int at, double value);
  Statement& bind(int at, std::string_view value);
  /// Moves to the next row; returns whether there is one.
  bool step();
  /// Executes the statement to its end and resets it.
  void run();
  void reset();
  /// Sets all parameters to NULL.
  void clear();

  std::int64_t integer(int column) const;
  double real(int column) const;
  std::string text(int column) const;

private:
  Database* database_;
  sqlite3_stmt* handle_ = nullptr;
};

/// A transaction, rolled back unless committed. The constructor of a write transaction waits for
/// other writers.
class Transaction {
public:
  enum class Kind : std::uint8_t { read, write };
  Transaction(Database& database, Kind kind);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit();

private:
  Database& database_;
  bool open_ = true;
};

/// A name in double quotes, with its own quotes doubled.
std::string quoted_name(std::string_view name);

} // namespace monet::sqlite
