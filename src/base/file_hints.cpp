// Names existing files near a missing one (shared/hints.hpp), for the messages of files.cpp and of
// readers of files that name others.
#include "base/shared/hints.hpp"
#include "base/shared/text.hpp"

#include "monet/base/files.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <filesystem>

namespace monet {

namespace {

namespace fs = std::filesystem;

/// Files of a folder in alphabetical order; at most `kMaxFiles` entries of it are looked at.
std::vector<fs::path> files_in(const fs::path& folder) {
  constexpr std::size_t kMaxFiles = 10'000;
  std::vector<fs::path> files;
  std::error_code error;
  std::size_t seen = 0;
  for (fs::directory_iterator at(folder.empty() ? "." : folder, error), end;
       !error && at != end && seen < kMaxFiles; at.increment(error), ++seen) {
    if (at->is_regular_file(error) && !at->path().filename().string().starts_with('.'))
      files.push_back(folder / at->path().filename());
  }
  std::ranges::sort(files);
  return files;
}

/// File with the same name and another extension, or a near name and the same extension.
std::string nearest_in(const fs::path& folder, const fs::path& name) {
  constexpr std::array kReadable{".yaml", ".yml", ".onnx", ".json", ".csv", ".npy"};
  const std::string extension = name.extension().string();
  std::vector<std::string> stems;
  std::vector<fs::path> of_stems;
  for (const fs::path& file : files_in(folder)) {
    const std::string other = file.extension().string();
    const bool readable = std::ranges::find(kReadable, other) != kReadable.end();
    if (readable && (file.stem() == name.stem() || file.stem() == name.filename()))
      return file.string();
    if (readable && (other == extension || extension.empty())) {
      stems.push_back(file.stem().string());
      of_stems.push_back(file);
    }
  }
  constexpr std::size_t kShortest = 3; // any two shorter names are near
  const std::string stem = name.stem().string();
  const auto nearest = stem.size() < kShortest ? std::nullopt : nearest_name(stem, stems);
  return nearest ? of_stems[*nearest].string() : std::string();
}

} // namespace

std::string missing_file_hint(const std::string& path) {
  constexpr std::array kShipped{"data/training", "data/hardware", "data/hardware/cores",
                                "data/workload", "data/spaces",   "data/cluster"};
  const fs::path given(path);
  if (given.filename().empty())
    return {};
  std::string found = nearest_in(given.parent_path(), given.filename());
  for (const char* folder : kShipped) {
    if (found.empty() && !given.has_parent_path())
      found = nearest_in(folder, given.filename());
  }
  return found.empty() ? "" : fmt::format("did you mean '{}'?", found);
}

void require_file(const std::string& path, const SourceLoc& where, ProblemList& problems) {
  std::error_code error;
  if (!is_file(path) && !fs::exists(path, error))
    problems.add(where, fmt::format("'{}' cannot be opened: No such file or directory", path),
                 missing_file_hint(path));
}

std::string named_file(const YamlNode& node, const std::string& file, ProblemList& problems) {
  const std::string path = resolve_beside(file, node.scalar);
  require_file(path, node.where, problems);
  return path;
}

} // namespace monet
