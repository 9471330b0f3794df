// Reading whole files, and writing them so that they appear whole or not at all.
#pragma once

#include <string>
#include <string_view>

namespace monet {

/// The file's bytes; InputError naming the file when it cannot be read or is larger than
/// `max_bytes`.
std::string read_file(const std::string& path, std::size_t max_bytes = std::size_t{1} << 31);

/// Writes aside in the same folder, then renames; follows a symbolic link, and writes straight into
/// what is no regular file, such as /dev/null or a pipe. Throws InputError naming the path when it
/// cannot.
void write_file_atomically(const std::string& path, std::string_view contents);

/// `path` seen from the folder that holds `file`, as paths in an experiment file are.
std::string resolve_beside(const std::string& file, const std::string& path);

} // namespace monet
