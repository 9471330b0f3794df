// The places that a command writes its results to: tried before any work is done for them.
#pragma once

#include "monet/base/files.hpp"

#include <map>
#include <string>

namespace monet::cli {

/// Folders are this command's alone while it lives.
class Outputs {
public:
  /// OutputError where the file cannot be written; standard output is "-", none "".
  void file(const std::string& path);
  /// OutputError where the folder cannot be made or written, or another run writes into it; none
  /// "".
  void folder(const std::string& path);

private:
  std::map<std::string, HeldFolder> folders_; ///< two options may name the same
};

} // namespace monet::cli
