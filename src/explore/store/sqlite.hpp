// SQLite as values: databases and statements that close themselves and failures that name the file.
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
  read_only_immutable, ///< where the folder cannot be written either; nobody else may write
};

/// One connection. Not for several threads at once.
class Database {
public:
  /// Makes the file when it is not there and access is read_write. Fails naming it.
  Database(const std::string& path, Access access);
  ~Database();
  Database(Database&& other) noexcept;
  Database& operator=(Database&&) = delete;
  Database(const Database&) = delete;

  /// Statements without parameters and rows.
  void execute(const std::string& sql);
  /// Fails unless `code` says that all is well.
  void check(int code) const;
  /// First column of the first row.
  std::int64_t integer(const std::string& sql);
  std::string text(const std::string& sql);
  const std::string& path() const { return path_; }
  sqlite3* handle() const { return handle_; }
  /// Says in the user's words what `code` means: InputError, or OutputError where a file that shall
  /// be written cannot be.
  [[noreturn]] void fail(int code) const;

private:
  std::string path_;
  Access access_;
  sqlite3* handle_ = nullptr;
};

/// A prepared statement, used again and again.
class Statement {
public:
  Statement(Database& database, const std::string& sql);
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  /// Parameters from 1. Text is copied.
  Statement& bind(int at, std::int64_t value);
  Statement& bind(int at, double value);
  Statement& bind(int at, std::string_view value);
  /// Whether there is a row.
  bool step();
  /// Steps to the end and makes it ready for the next time.
  void run();
  void reset();
  /// All parameters are NULL again.
  void clear();

  std::int64_t integer(int column) const;
  double real(int column) const;
  std::string text(int column) const;

private:
  Database* database_;
  sqlite3_stmt* handle_ = nullptr;
};

/// Rolls back unless committed. Writers wait for each other here.
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

/// "name" with its quotes doubled.
std::string quoted_name(std::string_view name);

} // namespace monet::sqlite
