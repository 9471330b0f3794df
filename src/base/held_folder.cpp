// Folders for results, each locked by one process at a time; commands that write several files use
// them.
#include "monet/base/errors.hpp"
#include "monet/base/files.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

namespace monet {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& path, const char* doing, int reason) {
  throw OutputError(path, fmt::format("cannot be {}: {}", doing, std::strerror(reason)));
}

/// Host and process that hold a folder, for the error message of a second process.
std::string own_name() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0)
    host[0] = '\0';
  return fmt::format("process {} on {}", ::getpid(), host.data());
}

std::string holder_in(int file) {
  std::array<char, 300> text{};
  const ssize_t got = ::pread(file, text.data(), text.size(), 0);
  return {text.data(), static_cast<std::size_t>(got < 0 ? 0 : got)};
}

/// Removes temporary files that write_file_atomically() of a killed process left in its folder. The
/// process's name is still in its lock file.
void remove_unfinished(const std::string& folder, std::string_view holder) {
  constexpr std::string_view kProcess = "process ";
  if (!holder.starts_with(kProcess))
    return;
  holder.remove_prefix(kProcess.size());
  const std::string ending = fmt::format(".{}.tmp", holder.substr(0, holder.find(' ')));
  std::error_code error;
  std::vector<fs::path> left;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (at->path().filename().string().ends_with(ending) && at->is_regular_file(error))
      left.push_back(at->path());
  }
  for (const fs::path& file : left)
    fs::remove(file, error);
}

/// Whether the path still names the open file.
bool is_at(int file, const std::string& path) {
  struct stat open {};
  struct stat there {};
  return ::fstat(file, &open) == 0 && ::lstat(path.c_str(), &there) == 0 &&
         open.st_dev == there.st_dev && open.st_ino == there.st_ino;
}

} // namespace

LockedFolder::LockedFolder(const std::string& path)
    : path_(path), lock_((fs::path(path) / ".monet.lock").string()) {
  try {
    make_folders();
    take_lock();
  } catch (...) {
    give_up();
    throw;
  }
}

LockedFolder::~LockedFolder() {
  if (is_at(file_, lock_))
    ::unlink(lock_.c_str());
  give_up();
}

void LockedFolder::make_folders() {
  fs::path folder;
  for (const fs::path& part : fs::path(path_)) {
    folder /= part;
    std::error_code error;
    if (fs::create_directory(folder, error))
      made_.push_back(folder.string());
    if (error == std::errc::file_exists) // exists, but is not a folder
      fail(path_, "created", ENOTDIR);
    if (error)
      fail(path_, "created", error.value());
  }
}

void LockedFolder::take_lock() {
  constexpr mode_t kAll = 0666; // reduced by the user's umask
  for (;;) {
    file_ = ::open(lock_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, kAll);
    if (file_ < 0)
      fail(path_, "written", errno);
    if (::flock(file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      const std::string holder = holder_in(file_);
      throw OutputError(
          path_, fmt::format("is in use by another run{}{}", holder.empty() ? "" : ": ", holder));
    }
    if (is_at(file_, lock_))
      break;
    ::close(file_); // the previous holder has just removed it
  }
  remove_unfinished(path_, holder_in(file_));
  const std::string name = own_name();
  if (::ftruncate(file_, 0) != 0 ||
      ::pwrite(file_, name.data(), name.size(), 0) != static_cast<ssize_t>(name.size())) {
    const int reason = errno;
    ::unlink(lock_.c_str());
    fail(path_, "written", reason);
  }
}

void LockedFolder::give_up() {
  if (file_ >= 0)
    ::close(file_);
  for (auto folder = made_.rbegin(); folder != made_.rend(); ++folder)
    ::rmdir(folder->c_str());
}

} // namespace monet
