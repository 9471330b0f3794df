// Reads and writes whole files; writing is atomic for regular files. Every reader of input files
// and writer of results uses it.
#include "monet/base/files.hpp"

#include "base/shared/amounts.hpp"
#include "base/shared/hints.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/stop.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <filesystem>
#include <utility>

namespace monet {

namespace fs = std::filesystem;

namespace {

/// Description of a file that is not a regular one, for error messages.
std::string_view kind_of(mode_t mode) {
  if (S_ISDIR(mode))
    return "a folder";
  if (S_ISFIFO(mode))
    return "a pipe";
  return S_ISSOCK(mode) ? "a socket" : "a device";
}

/// File that is open for reading; closed when destroyed.
class InputFile {
public:
  explicit InputFile(const std::string& path) : path_(path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0)
      fail();
    check(status); // before opening, which may wait for a writer or wake a device
    file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file_ < 0)
      fail();
    if (::fstat(file_, &status) != 0 || !S_ISREG(status.st_mode)) {
      ::close(file_);
      check(status);
      fail();
    }
    size_ = static_cast<std::size_t>(status.st_size);
  }
  ~InputFile() { ::close(file_); }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  /// File size in bytes as the file system reports it; 0 for files of /proc.
  std::size_t size() const { return size_; }

  /// Reads up to `bytes` more bytes; returns fewer only at the end of the file.
  std::string read(std::size_t bytes) {
    constexpr std::size_t kBlock = std::size_t{1} << 16;
    std::string contents;
    contents.reserve(std::min(bytes, size_ + kBlock));
    while (contents.size() < bytes) {
      const std::size_t before = contents.size();
      contents.resize(before + std::min(kBlock, bytes - before));
      const ssize_t got = ::read(file_, contents.data() + before, contents.size() - before);
      if (got < 0 && errno != EINTR)
        throw InputError({path_}, fmt::format("cannot be read: {}", std::strerror(errno)));
      contents.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
      if (got == 0)
        break;
    }
    return contents;
  }

private:
  void check(const struct stat& status) const {
    if (!S_ISREG(status.st_mode))
      throw InputError({path_}, fmt::format("is {}, not a file", kind_of(status.st_mode)));
  }
  [[noreturn]] void fail() const {
    const int reason = errno;
    throw InputError({path_}, fmt::format("cannot be opened: {}", std::strerror(reason)),
                     reason == ENOENT ? missing_file_hint(path_) : "");
  }

  std::string path_;
  int file_ = -1;
  std::size_t size_ = 0;
};

/// Contents by path that replace files for this thread; null if there are no replacements.
thread_local const std::map<std::string, std::string>* given_files = nullptr;

const std::string* given_file(const std::string& path) {
  if (given_files == nullptr)
    return nullptr;
  const auto found = given_files->find(path);
  return found == given_files->end() ? nullptr : &found->second;
}

} // namespace

GivenFiles::GivenFiles(std::map<std::string, std::string> texts)
    : texts_(std::move(texts)), before_(given_files) {
  given_files = &texts_;
}

GivenFiles::~GivenFiles() {
  given_files = before_;
}

bool is_file(const std::string& path) {
  std::error_code ignored;
  return given_file(path) != nullptr || fs::is_regular_file(path, ignored);
}

std::string read_file(const std::string& path, std::size_t max_bytes) {
  if (const std::string* const given = given_file(path)) {
    if (given->size() > max_bytes)
      throw InputError({path},
                       "is larger than " + both_bytes(static_cast<std::int64_t>(max_bytes)));
    return *given;
  }
  InputFile file(path);
  std::string contents;
  if (file.size() <= max_bytes)
    contents = file.read(max_bytes + 1);
  if (file.size() > max_bytes || contents.size() > max_bytes)
    throw InputError({path}, "is larger than " + both_bytes(static_cast<std::int64_t>(max_bytes)));
  return contents;
}

std::string read_beginning(const std::string& path, std::size_t bytes) {
  if (const std::string* const given = given_file(path))
    return given->substr(0, bytes);
  return InputFile(path).read(bytes);
}

namespace {

/// Failed step of writing a file, with its errno.
struct Failure {
  const char* doing = "";
  int reason = 0; ///< errno; 0 if nothing failed
};

void throw_if(const Failure& failure, const std::string& path) {
  if (failure.reason != 0)
    throw OutputError(
        path, fmt::format("cannot be {}: {}", failure.doing, std::strerror(failure.reason)));
}

Failure write_all(int file, std::string_view contents) {
  while (!contents.empty()) {
    const ssize_t written = ::write(file, contents.data(), contents.size());
    if (written < 0 && errno != EINTR)
      return {"written", errno};
    contents.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
  }
  return {};
}

/// Creates the file, writes the contents and closes it.
Failure write_new(const std::string& path, std::string_view contents) {
  constexpr mode_t kAll = 0666; // reduced by the user's umask
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_CREAT | O_EXCL, kAll);
  if (file < 0)
    return {"created", errno};
  Failure failure = write_all(file, contents);
  if (::close(file) != 0 && failure.reason == 0)
    failure = {"written", errno};
  return failure;
}

constexpr int kPollMilliseconds = 20;
constexpr std::chrono::milliseconds kReaderGrace{250};

/// Throws Stopped if a stop flag is set and nothing was written for `kReaderGrace` since
/// `progress`.
void check_reader(std::chrono::steady_clock::time_point progress) {
  if (is_stop_flag_set() && std::chrono::steady_clock::now() - progress >= kReaderGrace)
    throw Stopped("stopped while waiting for a reader of the output");
}

/// Opens a pipe once it has a reader; any other file at once. Returns -1 and sets errno on failure.
int open_for_reader(const std::string& path) {
  const auto begin = std::chrono::steady_clock::now();
  for (;;) {
    const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (file >= 0 || (errno != ENXIO && errno != EINTR))
      return file;
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0 || !S_ISFIFO(status.st_mode)) {
      errno = ENXIO;
      return -1;
    }
    check_reader(begin);
    ::poll(nullptr, 0, kPollMilliseconds);
  }
}

Failure write_to_special(const std::string& path, std::string_view contents) {
  const int file = open_for_reader(path);
  if (file < 0)
    return {"created", errno};
  int reason = 0;
  try {
    reason = write_to_reader(file, contents);
  } catch (...) {
    ::close(file);
    throw;
  }
  if (::close(file) != 0 && reason == 0)
    reason = errno;
  return {"written", reason};
}

/// Path of the file that `path` refers to, with symbolic links resolved.
std::string target_of(const std::string& path) {
  std::error_code error;
  if (!fs::is_symlink(path, error))
    return path;
  const fs::path target = fs::weakly_canonical(path, error);
  return error ? path : target.string();
}

std::string aside_of(const std::string& target) {
  return fmt::format("{}.{}.tmp", target, ::getpid());
}

/// Writes a file that did not exist before; never follows a link that another user put in its
/// place.
Failure write_aside(const std::string& aside, std::string_view contents) {
  ::unlink(aside.c_str()); // left by a killed process that had this process number
  return write_new(aside, contents);
}

/// Whether a target must be written in place, since it is a device or a pipe.
bool is_special(const std::string& target, const std::string& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(target, ignored);
  if (fs::is_directory(status))
    throw OutputError(path, "is a folder, not a file");
  return fs::exists(status) && !fs::is_regular_file(status);
}

} // namespace

int write_to_reader(int file, std::string_view contents) {
  auto progress = std::chrono::steady_clock::now();
  while (!contents.empty()) {
    pollfd waiting{file, POLLOUT, 0};
    const int ready = ::poll(&waiting, 1, kPollMilliseconds);
    if (ready < 0 && errno != EINTR)
      return errno;
    if (ready <= 0) {
      check_reader(progress);
      continue;
    }
    // A write of at most PIPE_BUF bytes does not block if the pipe is ready.
    const ssize_t written =
        ::write(file, contents.data(), std::min<std::size_t>(contents.size(), PIPE_BUF));
    if (written < 0 && errno != EINTR && errno != EAGAIN)
      return errno;
    if (written <= 0) {
      check_reader(progress);
      continue;
    }
    progress = std::chrono::steady_clock::now();
    contents.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

void write_file_atomically(const std::string& path, std::string_view contents) {
  const std::string target = target_of(path);
  if (is_special(target, path)) { // a rename would replace the device or pipe itself
    throw_if(write_to_special(target, contents), path);
    return;
  }
  const std::string aside = aside_of(target);
  Failure failure = write_aside(aside, contents);
  if (failure.reason == 0 && std::rename(aside.c_str(), target.c_str()) != 0)
    failure = {"put in place", errno};
  if (failure.reason != 0)
    ::unlink(aside.c_str());
  throw_if(failure, path);
}

void try_to_write(const std::string& path) {
  const std::string target = target_of(path);
  if (is_special(target, path)) { // opening a pipe would wait for its reader
    if (::access(target.c_str(), W_OK) != 0)
      throw_if({"written", errno}, path);
    return;
  }
  const std::string aside = aside_of(target);
  const Failure failure = write_aside(aside, "."); // on a full disk, even one byte fails
  ::unlink(aside.c_str());
  throw_if(failure, path);
}

std::string resolve_beside(const std::string& file, const std::string& path) {
  const fs::path given(path);
  if (given.is_absolute())
    return path;
  return (fs::path(file).parent_path() / given).lexically_normal().string();
}

} // namespace monet
