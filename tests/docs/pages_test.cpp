// The documents' form: short lines, pages and sentences, no dead links, and two clicks at most from
// the index.
#include "monet/base/files.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>

namespace monet {
namespace MONET_TEST_FILE {

namespace fs = std::filesystem;

constexpr std::size_t kMaxColumns = 119;
constexpr int kMaxLines = 300;
constexpr double kMaxMeanWords = 25;

/// Pages that tools write: long, and with the tools' wording.
const std::set<std::string> kGenerated{"results.md", "validation.md"};

struct Page {
  std::vector<std::string> problems;
  std::set<fs::path> links; ///< pages
};

/// The file that a link of a page leads to; empty for addresses and for parts of the same page.
fs::path target(const fs::path& page, const std::string& link) {
  static const std::regex kElsewhere{"^([a-z]+:|#).*"};
  if (std::regex_match(link, kElsewhere))
    return {};
  return (page.parent_path() / link.substr(0, link.find('#'))).lexically_normal();
}

/// The mean number of words of a sentence of a page's prose, without tables, headings and code.
double mean_words(const std::string& text) {
  static const std::regex kBlock{"^ *(\\||#|!\\[|```)"};
  static const std::regex kItem{"^ *([-*]|[0-9]+\\.) "};
  static const std::regex kSentence{"[.!?:;]( |$)"};
  static const std::regex kWord{"[^ ]*[A-Za-z0-9][^ ]*"};
  std::string prose;
  bool fenced = false;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const bool block = line.empty() || std::regex_search(line, kBlock);
    fenced ^= line.find("```") != std::string::npos;
    if (!fenced && (block || std::regex_search(line, kItem)))
      prose += ". "; // ends a sentence
    if (!fenced && !block)
      prose += line + " ";
  }
  const auto words = std::distance(std::sregex_iterator(prose.begin(), prose.end(), kWord), {});
  std::int64_t sentences = 0;
  for (std::sregex_token_iterator at(prose.begin(), prose.end(), kSentence, -1), end; at != end;
       ++at)
    sentences += std::regex_search(at->first, at->second, kWord);
  return static_cast<double>(words) / static_cast<double>(std::max<std::int64_t>(sentences, 1));
}

Page read_page(const fs::path& path) {
  static const std::regex kLink{"\\]\\(([^)\\s]+)\\)"};
  Page page;
  const bool generated = kGenerated.contains(path.filename().string());
  const std::string content = read_file(path.string());
  if (const double words = mean_words(content); !generated && words > kMaxMeanWords)
    page.problems.push_back(fmt::format("{}: {:.1f} words a sentence", path.string(), words));
  std::istringstream text(content);
  int number = 0;
  for (std::string line; std::getline(text, line);) {
    const std::string where = fmt::format("{}:{}", path.string(), ++number);
    if (!generated && !line.starts_with("|") && line.size() > kMaxColumns)
      page.problems.push_back(fmt::format("{}: {} columns", where, line.size()));
    for (std::sregex_iterator at(line.begin(), line.end(), kLink), end; at != end; ++at) {
      const fs::path file = target(path, (*at)[1]);
      if (file.empty())
        continue;
      if (!fs::exists(file))
        page.problems.push_back(where + ": dead link " + file.string());
      page.links.insert(file);
    }
  }
  if (!generated && number > kMaxLines)
    page.problems.push_back(fmt::format("{}: {} lines", path.string(), number));
  return page;
}

TEST(Pages, CountsWordsOfSentences) {
  EXPECT_EQ(
      mean_words("# A title\n\nOne two three. Four\nfive.\n\n- six\n- seven eight\n| no | words |\n"
                 "```sh\nnot these\n```\n"),
      2);
}

TEST(Pages, AreShortAndTwoClicksFromTheIndex) {
  const fs::path root = fs::path(MONET_SOURCE_DIR) / "docs";
  std::map<fs::path, Page> pages;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (entry.path().extension() == ".md")
      pages[entry.path()] = read_page(entry.path());
  }
  EXPECT_GE(pages.size(), 100U);
  std::set<fs::path> reached{root / "README.md"};
  for (int click = 0; click < 2; ++click) {
    for (const fs::path& page : std::set<fs::path>(reached)) {
      if (const auto found = pages.find(page); found != pages.end())
        reached.insert(found->second.links.begin(), found->second.links.end());
    }
  }
  std::vector<std::string> problems;
  for (const auto& [path, page] : pages) {
    problems.insert(problems.end(), page.problems.begin(), page.problems.end());
    if (!reached.contains(path))
      problems.push_back(path.string() + ": more than two clicks from docs/README.md");
  }
  EXPECT_EQ(problems, std::vector<std::string>{});
}

} // namespace MONET_TEST_FILE
} // namespace monet
