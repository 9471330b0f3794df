#include "monet/base/files.hpp"

#include "monet/base/errors.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
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

void write_file_atomically(const std::string& path, std::string_view contents) {
  const std::string aside = fmt::format("{}.{}.tmp", path, ::getpid());
  const auto fail = [&](const char* doing) {
    const int reason = errno;
    std::error_code ignored;
    fs::remove(aside, ignored);
    throw InputError({path}, fmt::format("cannot be {}: {}", doing, std::strerror(reason)));
  };
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(aside.c_str(), "wb"),
                                                       &std::fclose);
  if (!file)
    fail("created");
  if (std::fwrite(contents.data(), 1, contents.size(), file.get()) != contents.size()) {
    fail("written");
  }
  if (std::fclose(file.release()) != 0)
    fail("written");
  if (std::rename(aside.c_str(), path.c_str()) != 0)
    fail("put in place");
}

std::string content_hash(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : bytes) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3ULL;
  }
  return fmt::format("{:016x}", hash);
}

std::string resolve_beside(const std::string& file, const std::string& path) {
  const fs::path given(path);
  if (given.is_absolute())
    return path;
  return (fs::path(file).parent_path() / given).lexically_normal().string();
}

} // namespace monet
