// C++ wrappers of SQLite databases, statements and transactions; only src/explore/store uses them.
#include "explore/store/sqlite.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>
#include <sqlite3.h>

#include <cstring>
#include <utility>

namespace monet::sqlite {

namespace {

/// Maximum wait for another process's transaction; a transaction takes milliseconds.
constexpr int kPatienceMilliseconds = 60000;

std::string uri_of(const std::string& path, Access access) {
  std::string uri = "file:";
  for (const char c : path) {
    if (c == '%' || c == '?' || c == '#')
      uri += fmt::format("%{:02x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    else
      uri += c;
  }
  return uri + (access == Access::read_only_immutable ? "?immutable=1" : "");
}

std::string_view meaning_of(int code) {
  switch (code & 0xff) {
  case SQLITE_FULL:
    return "cannot be written: the disk is full; what was stored before is safe";
  case SQLITE_CORRUPT:
    return "is damaged: restore a copy, or save what is readable with sqlite3's .recover";
  case SQLITE_NOTADB:
    return "is not a store of designs (not a SQLite database)";
  case SQLITE_READONLY:
    return "cannot be written: the file or its folder is read-only";
  case SQLITE_CANTOPEN:
    return "cannot be opened";
  case SQLITE_BUSY:
  case SQLITE_LOCKED:
    return "is held by another program";
  default:
    return "cannot be read or written; what was stored before is safe";
  }
}

} // namespace

std::string quoted_name(std::string_view name) {
  std::string out = "\"";
  for (const char c : name) {
    if (c == '"')
      out += c;
    out += c;
  }
  return out + '"';
}

Database::Database(const std::string& path, Access access) : path_(path), access_(access) {
  const int flags = access == Access::read_write ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
                                                 : SQLITE_OPEN_READONLY;
  const int code = sqlite3_open_v2(uri_of(path, access).c_str(), &handle_,
                                   flags | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, nullptr);
  if (code == SQLITE_OK) {
    sqlite3_extended_result_codes(handle_, 1);
    sqlite3_busy_timeout(handle_, kPatienceMilliseconds);
    // Statements in a damaged or malicious schema must not be executed.
    sqlite3_db_config(handle_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(handle_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    return;
  }
  try {
    fail(code);
  } catch (...) {
    sqlite3_close_v2(handle_);
    throw;
  }
}

Database::~Database() {
  sqlite3_close_v2(handle_);
}

Database::Database(Database&& other) noexcept
    : path_(std::move(other.path_)), access_(other.access_),
      handle_(std::exchange(other.handle_, nullptr)) {}

void Database::fail(int code) const {
  const int reason = handle_ != nullptr ? sqlite3_system_errno(handle_) : 0;
  const char* said = handle_ != nullptr ? sqlite3_errmsg(handle_) : sqlite3_errstr(code);
  const int kind = code & 0xff;
  if (kind == SQLITE_NOMEM)
    throw std::bad_alloc();
  if (kind == SQLITE_CONSTRAINT || kind == SQLITE_MISUSE || kind == SQLITE_RANGE)
    throw InternalError(fmt::format("store {}: {}", path_, said));
  const bool system = kind == SQLITE_IOERR || kind == SQLITE_CANTOPEN || kind == SQLITE_FULL;
  const std::string what =
      fmt::format("{} ({}{}{})", meaning_of(code), said, system && reason != 0 ? ": " : "",
                  system && reason != 0 ? std::strerror(reason) : "");
  const bool output = system || kind == SQLITE_READONLY || kind == SQLITE_BUSY ||
                      kind == SQLITE_LOCKED; // otherwise the contents are wrong
  if (access_ == Access::read_write && output)
    throw OutputError(path_, what);
  throw InputError({path_}, what);
}

void Database::execute(const std::string& sql) {
  check(sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr));
}

void Database::check(int code) const {
  if (code != SQLITE_OK)
    fail(code);
}

std::int64_t Database::integer(const std::string& sql) {
  Statement statement(*this, sql);
  return statement.step() ? statement.integer(0) : 0;
}

std::string Database::text(const std::string& sql) {
  Statement statement(*this, sql);
  return statement.step() ? statement.text(0) : std::string();
}

Statement::Statement(Database& database, const std::string& sql) : database_(&database) {
  database.check(sqlite3_prepare_v3(database.handle(), sql.c_str(), -1, SQLITE_PREPARE_PERSISTENT,
                                    &handle_, nullptr));
}

Statement::~Statement() {
  sqlite3_finalize(handle_);
}

Statement& Statement::bind(int at, std::int64_t value) {
  database_->check(sqlite3_bind_int64(handle_, at, value));
  return *this;
}

Statement& Statement::bind(int at, double value) {
  database_->check(sqlite3_bind_double(handle_, at, value));
  return *this;
}

Statement& Statement::bind(int at, std::string_view value) {
  // The address of an empty view may be null, which would bind NULL.
  database_->check(sqlite3_bind_text64(handle_, at, value.empty() ? "" : value.data(), value.size(),
                                       SQLITE_TRANSIENT, SQLITE_UTF8));
  return *this;
}

bool Statement::step() {
  const int code = sqlite3_step(handle_);
  if (code == SQLITE_ROW)
    return true;
  if (code == SQLITE_DONE)
    return false;
  sqlite3_reset(handle_);
  database_->fail(code);
}

void Statement::run() {
  while (step()) {
  }
  reset();
}

void Statement::reset() {
  sqlite3_reset(handle_);
}

void Statement::clear() {
  sqlite3_clear_bindings(handle_);
}

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(handle_, column);
}

double Statement::real(int column) const {
  return sqlite3_column_double(handle_, column);
}

std::string Statement::text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(handle_, column));
  const int length = sqlite3_column_bytes(handle_, column);
  return text == nullptr ? std::string() : std::string(text, static_cast<std::size_t>(length));
}

Transaction::Transaction(Database& database, Kind kind) : database_(database) {
  database.execute(kind == Kind::write ? "BEGIN IMMEDIATE" : "BEGIN");
}

Transaction::~Transaction() {
  // After some failures SQLite has rolled back already; then this call has no effect.
  if (open_)
    sqlite3_exec(database_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void Transaction::commit() {
  database_.execute("COMMIT");
  open_ = false;
}

} // namespace monet::sqlite
