// Two types of one name in one namespace compile and link, and then the functions of one are called
// for the other. Where headers define them nobody notices: the linker takes either.
#include "monet/base/files.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <regex>
#include <sstream>

namespace monet {
namespace {

namespace fs = std::filesystem;

/// Types that the text defines, with their namespaces. Headers of ours open one namespace, at the
/// beginning of a line, and define types there or at the beginning of one.
std::vector<std::string> types_of(const std::string& text) {
  static const std::regex kNamespace("^namespace ([a-z_:]+) \\{");
  static const std::regex kType(
      "^(?:struct|class|enum class|enum) (\\w+)(?: final)?(?: : .*)? \\{.*");
  std::vector<std::string> types;
  std::string space;
  std::istringstream lines(text);
  std::smatch match;
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_search(line, match, kNamespace))
      space = match[1];
    else if (std::regex_match(line, match, kType))
      types.push_back(space + "::" + match[1].str());
  }
  return types;
}

TEST(Types, AreFoundWhereTheyAreDefined) {
  EXPECT_EQ(
      types_of("namespace monet::a {\nstruct X {\n  struct Y {\nclass Z;\nclass B final : A {};\n"
               "enum class E : int { a };\n"),
      (std::vector<std::string>{"monet::a::X", "monet::a::B", "monet::a::E"}));
}

TEST(Types, HaveNamesOfTheirOwn) {
  std::map<std::string, std::string> where;
  for (const char* folder : {"include", "src", "apps"}) {
    for (const auto& entry :
         fs::recursive_directory_iterator(std::string(MONET_SOURCE_DIR "/") + folder)) {
      if (entry.path().extension() != ".hpp")
        continue;
      const std::string file = entry.path().string();
      for (const std::string& type : types_of(read_file(file))) {
        const auto [other, is_new] = where.emplace(type, file);
        EXPECT_TRUE(is_new) << type << " in " << file << " and " << other->second;
      }
    }
  }
  EXPECT_GT(where.size(), 300U);
}

} // namespace
} // namespace monet
