// Reading whole files, atomic writing of files, and locked result folders.
// Example:
//   void keep_copy(const std::string& folder) {
//     const LockedFolder locked(folder); // excludes other processes
//     const std::string chip = read_file("data/hardware/edge_tpu.yaml");
//     write_file_atomically(folder + "/edge_tpu.yaml", chip);
//   }
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// Default maximum file size of read_file(), in bytes: 2 GiB, the maximum size of an ONNX file.
inline constexpr std::size_t kMaxFileBytes = std::size_t{1} << 31;

/// Reads a whole file. Throws InputError naming the file if it cannot be read, is larger than
/// `max_bytes`, or is not a regular file: devices and pipes have no end.
std::string read_file(const std::string& path, std::size_t max_bytes = kMaxFileBytes);

/// Reads the first `bytes` bytes of a file, or all of a shorter file. Errors as read_file().
std::string read_beginning(const std::string& path, std::size_t bytes);

/// Whether `path` is a regular file or has a text in an enclosing GivenFiles scope.
bool is_file(const std::string& path);

/// A scope with in-memory files: `texts` maps paths to contents. While the object lives, this
/// thread reads these texts instead of the files on disk. They are never written. Only the
/// innermost scope is used.
class GivenFiles {
public:
  explicit GivenFiles(std::map<std::string, std::string> texts);
  ~GivenFiles();
  GivenFiles(const GivenFiles&) = delete;
  GivenFiles& operator=(const GivenFiles&) = delete;

private:
  std::map<std::string, std::string> texts_;
  const std::map<std::string, std::string>* before_;
};

/// Writes a file atomically: into a temporary file in the same folder, which is then renamed.
/// Follows a symbolic link, and writes directly into anything that is not a regular file, such as
/// /dev/null or a pipe. Throws OutputError naming the path if it cannot.
void write_file_atomically(const std::string& path, std::string_view contents);

/// Writes to an open pipe, terminal or device and waits for its reader. Once a stop flag of this
/// thread is set (is_stop_flag_set()), throws Stopped if nothing can be written for a quarter of a
/// second. Returns 0, or the errno of a failed write.
int write_to_reader(int file, std::string_view contents);

/// Checks that write_file_atomically() could write `path` now; throws OutputError if not. Leaves no
/// file behind.
void try_to_write(const std::string& path);

/// A folder of results that this process locks while the object lives. The lock is on a file in the
/// folder and excludes other processes; the kernel releases it however the process ends. On a file
/// system without locks, other processes are not excluded.
class LockedFolder {
public:
  /// Creates and locks the folder and its missing parents. Throws OutputError if the folder cannot
  /// be created or written, or if another process holds the lock; the message names that process.
  explicit LockedFolder(const std::string& path);
  /// Releases the lock and removes the created folders that are still empty.
  ~LockedFolder();
  LockedFolder(const LockedFolder&) = delete;
  LockedFolder& operator=(const LockedFolder&) = delete;

private:
  void make_folders();
  void take_lock();
  void give_up();

  std::string path_;
  std::string lock_;              ///< path of the lock file in the folder
  std::vector<std::string> made_; ///< created folders, outermost first
  int file_ = -1;
};

/// Resolves `path` relative to the folder that contains `file`, as for paths in an experiment file.
std::string resolve_beside(const std::string& file, const std::string& path);

} // namespace monet
