#include "outputs.hpp"

#include <filesystem>

namespace monet::cli {

void Outputs::file(const std::string& path) {
  if (!path.empty() && path != "-")
    try_to_write(path);
}

void Outputs::folder(const std::string& path) {
  if (path.empty())
    return;
  std::error_code error;
  const std::filesystem::path real =
      std::filesystem::weakly_canonical(std::filesystem::absolute(path), error);
  folders_.try_emplace(error ? path : (real / "").string(), path);
}

} // namespace monet::cli
