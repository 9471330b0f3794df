#include "monet/base/files.hpp"

#include "monet/base/errors.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace monet {

namespace fs = std::filesystem;

std::string read_file(const std::string& path, std::size_t max_bytes) {
  std::error_code error;
  if (fs::is_directory(path, error))
    throw InputError({path}, "is a folder, not a file");
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw InputError({path}, fmt::format("cannot be opened: {}", std::strerror(errno)));
  std::string contents;
  constexpr std::size_t kBlock = std::size_t{1} << 16;
  std::string block(kBlock, '\0');
  while (file.read(block.data(), kBlock), file.gcount() > 0) {
    contents.append(block, 0, static_cast<std::size_t>(file.gcount()));
    if (contents.size() > max_bytes) {
      throw InputError({path}, fmt::format("is larger than {} bytes", max_bytes));
    }
  }
  if (file.bad())
    throw InputError({path}, "cannot be read to its end");
  return contents;
}

namespace {

[[noreturn]] void fail_to_write(const std::string& path, const char* doing, int reason) {
  throw InputError({path}, fmt::format("cannot be {}: {}", doing, std::strerror(reason)));
}

/// Writes and closes `path`; the reason when it cannot.
int write_in_place(const std::string& path, std::string_view contents, const char*& doing) {
  doing = "created";
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr)
    return errno;
  doing = "written";
  int reason = 0;
  if (std::fwrite(contents.data(), 1, contents.size(), file) != contents.size())
    reason = errno;
  if (std::fclose(file) != 0 && reason == 0)
    reason = errno;
  return reason;
}

/// The file that `path` names, through symbolic links.
std::string target_of(const std::string& path) {
  std::error_code error;
  if (!fs::is_symlink(path, error))
    return path;
  const fs::path target = fs::weakly_canonical(path, error);
  return error ? path : target.string();
}

} // namespace

void write_file_atomically(const std::string& path, std::string_view contents) {
  const std::string target = target_of(path);
  std::error_code ignored;
  const fs::file_status status = fs::status(target, ignored);
  if (fs::is_directory(status))
    throw InputError({path}, "is a folder, not a file");
  const char* doing = "written";
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    // A rename would replace the device or pipe itself.
    if (const int reason = write_in_place(target, contents, doing))
      fail_to_write(path, doing, reason);
    return;
  }
  const std::string aside = fmt::format("{}.{}.tmp", target, ::getpid());
  int reason = write_in_place(aside, contents, doing);
  if (reason == 0 && std::rename(aside.c_str(), target.c_str()) != 0) {
    reason = errno;
    doing = "put in place";
  }
  if (reason != 0) {
    fs::remove(aside, ignored);
    fail_to_write(path, doing, reason);
  }
}

std::string resolve_beside(const std::string& file, const std::string& path) {
  const fs::path given(path);
  if (given.is_absolute())
    return path;
  return (fs::path(file).parent_path() / given).lexically_normal().string();
}

} // namespace monet
