// Reading whole files, and writing them so that they appear whole or not at all.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// Bytes of a file where its reader states no smaller limit: 2 GiB, as much as an ONNX file may
/// have.
inline constexpr std::size_t kMaxFileBytes = std::size_t{1} << 31;

/// The file's bytes; InputError naming the file when it cannot be read, is larger than `max_bytes`
/// or is no regular file: devices and pipes have no end.
std::string read_file(const std::string& path, std::size_t max_bytes = kMaxFileBytes);

/// The same for a file's first bytes, fewer where it is shorter.
std::string read_beginning(const std::string& path, std::size_t bytes);

/// There is a regular file, or a text that stands for one.
bool is_file(const std::string& path);

/// Texts that stand for files of these names, for whatever this thread reads while the object
/// lives: they come before files, and are never written. The innermost counts where several live.
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

/// Writes aside in the same folder, then renames; follows a symbolic link, and writes straight into
/// what is no regular file, such as /dev/null or a pipe. OutputError naming the path when it
/// cannot.
void write_file_atomically(const std::string& path, std::string_view contents);

/// Writes to an open pipe, terminal or device and waits for its reader. Once a stop flag of this
/// thread is set (is_stop_flag_set()), throws Stopped if nothing can be written for a quarter of a
/// second. Returns 0, or the errno of a failed write.
int write_to_reader(int file, std::string_view contents);

/// OutputError where write_file_atomically() could not write now. Leaves no trace.
void try_to_write(const std::string& path);

/// A folder that this process writes results into, while the object lives. Other processes are kept
/// from it by a lock on a file in it, which the kernel frees however the process ends; where the
/// file system has no locks they are not.
class LockedFolder {
public:
  /// Makes the folder, and those above it, where they are not there. OutputError when it cannot be
  /// made or written, or when another process holds it, which the message names.
  explicit LockedFolder(const std::string& path);
  /// What was made and is empty still goes again.
  ~LockedFolder();
  LockedFolder(const LockedFolder&) = delete;
  LockedFolder& operator=(const LockedFolder&) = delete;

private:
  void make_folders();
  void take_lock();
  void give_up();

  std::string path_;
  std::string lock_;              ///< file in the folder
  std::vector<std::string> made_; ///< folders, the highest first
  int file_ = -1;
};

/// `path` seen from the folder that holds `file`, as paths in an experiment file are.
std::string resolve_beside(const std::string& file, const std::string& path);

} // namespace monet
