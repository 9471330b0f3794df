// What Markdown files say about where things are.
#include "monet/base/files.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <set>
#include <sstream>

namespace monet {
namespace MONET_TEST_FILE {

namespace fs = std::filesystem;

const fs::path kRoot = MONET_SOURCE_DIR;

std::vector<fs::path> markdown_files() {
  std::vector<fs::path> files;
  const auto add = [&](const fs::path& path) {
    if (path.extension() == ".md" && path.filename() != "CHANGELOG.md")
      files.push_back(path);
  };
  for (const char* folder : {"", "tools", "web", "tests", "fuzz/corpus"}) {
    for (const auto& entry : fs::directory_iterator(kRoot / folder))
      add(entry.path());
  }
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / "docs"))
    add(entry.path());
  return files;
}

std::vector<std::string> words(const std::string& line, const std::regex& expression) {
  std::vector<std::string> found;
  for (std::sregex_iterator at(line.begin(), line.end(), expression), end; at != end; ++at)
    found.push_back((*at)[1]);
  return found;
}

std::string last_cell(const std::string& row) {
  const std::size_t end = row.rfind('|');
  return row.substr(row.rfind('|', end - 1), end);
}

bool is_there(const fs::path& path) {
  for (const char* ending : {"", ".cpp", ".hpp"}) {
    if (fs::exists(fs::path(path.string() + ending)))
      return true;
  }
  return false;
}

/// Every source file with its folders, so that "/gradients/linear.cpp" ends one of them.
std::string all_sources() {
  std::string all;
  for (const char* folder :
       {"src", "include", "apps", "python", "tests", "bench", "fuzz", "examples"}) {
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder))
      all += entry.path().string() + "\n";
  }
  return all;
}

class Reader {
public:
  void read(const fs::path& file) {
    std::istringstream text(read_file(file.string()));
    fs::path column; // the folder that the last cells of the table at hand are in
    int number = 0;
    for (std::string line; std::getline(text, line);) {
      const std::string where = file.string() + ":" + std::to_string(++number) + ": ";
      for (const std::string& path : words(line, path_))
        expect(is_there(kRoot / path) || is_there(file.parent_path() / path), where + path);
      for (const std::string& name : words(line, source_))
        expect(sources_.find("/" + name + "\n") != std::string::npos, where + name);
      if (!line.starts_with("|")) {
        column.clear();
        continue;
      }
      const std::vector<std::string> folder = words(last_cell(line), folder_);
      if (!folder.empty())
        column = kRoot / folder.front();
      else if (!column.empty()) {
        for (const std::string& name : words(last_cell(line), name_)) {
          expect(is_there(column / name), where + name);
          in_tables.insert((column / name).string());
        }
      }
    }
  }

  int seen = 0;
  std::vector<std::string> missing;
  std::set<std::string> in_tables; ///< files without ending; folders of families end with '/'

private:
  void expect(bool there, const std::string& what) {
    ++seen;
    if (!there)
      missing.push_back(what);
  }

  const std::string sources_ = all_sources();
  const std::regex path_{"(?:^|[^\\w/.-])((?:src|include|apps|tests|bench|fuzz)/[\\w./-]*\\w)"};
  const std::regex source_{"(?:^|[^\\w/.*<-])([\\w/-]+\\.[ch]pp)\\b"};
  const std::regex folder_{"file in `(src/[\\w/]+)/`"};
  const std::regex name_{"`([\\w/]+)`"};
};

TEST(DocumentedPaths, exist_and_every_source_file_has_its_step) {
  Reader reader;
  for (const fs::path& file : markdown_files())
    reader.read(file);
  EXPECT_EQ(reader.missing, std::vector<std::string>{});
  EXPECT_GE(reader.seen, 300);
  std::vector<std::string> missing;
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / "src")) {
    const fs::path& file = entry.path();
    const bool family = reader.in_tables.contains(file.parent_path().string() + "/");
    if (file.extension() == ".cpp" && !family &&
        !reader.in_tables.contains(fs::path(file).replace_extension().string()))
      missing.push_back(file.string());
  }
  EXPECT_EQ(missing, std::vector<std::string>{});
}

} // namespace MONET_TEST_FILE
} // namespace monet
