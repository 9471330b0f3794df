// Every number of README.md has a source in this repository, and is that source's.
#include "base/shared/text.hpp"

#include "monet/base/files.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace monet {
namespace MONET_TEST_FILE {

namespace fs = std::filesystem;

const fs::path kRoot = MONET_SOURCE_DIR;

std::string text_of(const std::string& file) {
  return read_file((kRoot / file).string());
}

std::vector<fs::path> files_in(const std::string& folder, const std::string& ending) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(kRoot / folder)) {
    if (entry.path().extension() == ending)
      files.push_back(entry.path());
  }
  return files;
}

/// The groups of the first match of `expression` in `file`.
std::vector<std::string> match_in(const std::string& file, const std::string& expression) {
  const std::string text = text_of(file);
  std::smatch found;
  if (!std::regex_search(text, found, std::regex(expression))) {
    ADD_FAILURE() << file << " has no '" << expression << "'";
    return {"?", "?", "?"};
  }
  return {std::next(found.begin()), found.end()};
}

std::int64_t number_of(std::string digits) {
  std::erase(digits, ',');
  return std::stoll(digits);
}

/// The cases of all fixtures in `folder` for which `counts` is true.
template <class Predicate>
std::size_t cases_in(const std::string& folder, Predicate counts) {
  std::size_t found = 0;
  for (const fs::path& file : files_in(folder, ".json")) {
    const auto family = nlohmann::json::parse(read_file(file.string()));
    if (family.contains("cases"))
      found += static_cast<std::size_t>(std::ranges::count_if(family.at("cases"), counts));
  }
  return found;
}

/// Ours as a part of the published figure, in percent, of a row of docs/validation.md.
std::string percent_of_published(const std::string& row) {
  const auto cells =
      match_in("docs/validation.md", "\\| " + row + " \\| ([0-9,]+) \\| ([0-9,]+) \\|");
  return fmt::format("{:.0f}", 100.0 * static_cast<double>(number_of(cells[1])) /
                                   static_cast<double>(number_of(cells[0])));
}

std::string replaced(const std::string& text, const char* expression, const char* by) {
  return std::regex_replace(text, std::regex(expression), by);
}

/// README.md in one line, without targets of links, names in code and commands; their comments
/// stay.
std::string statements() {
  std::istringstream lines(text_of("README.md"));
  std::string text;
  std::string block;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) {
      block = block.empty() ? line.size() > 3 ? line.substr(3) : "output" : "";
      continue;
    }
    if (block == "sh") {
      const std::size_t comment = line.find(" #");
      text += " " + (comment == std::string::npos ? "" : line.substr(comment));
    } else if (block.empty()) {
      text += " " + replaced(replaced(line, "\\]\\([^)]*\\)", "]"), "`[^`]*`", "``");
    }
  }
  return replaced(text, " +", " ");
}

class Readme {
public:
  /// Expects `phrase` with `number` in its place once, and strikes it out.
  template <class Number>
  void has(const std::string& phrase, const Number& number) {
    const std::string wanted = fmt::format(fmt::runtime(phrase), number);
    const std::size_t at = left_.find(wanted);
    if (at == std::string::npos) {
      ADD_FAILURE() << "README.md has no '" << wanted << "'";
      return;
    }
    left_.erase(at, wanted.size());
    EXPECT_EQ(left_.find(wanted), std::string::npos) << wanted << ", twice";
  }

  /// The numbers that are neither struck out nor part of a name, each with the words around it.
  std::vector<std::string> without_source() const {
    const std::string rest = replaced(left_,
                                      "ResNet-[0-9]+|GPT-[0-9]|CIFAR-10|A100|Debian 12"
                                      "|array of 4x4|python3",
                                      "");
    std::vector<std::string> found;
    const std::regex expression(".{0,30}[0-9]+.{0,30}");
    for (std::sregex_iterator at(rest.begin(), rest.end(), expression), end; at != end; ++at)
      found.push_back(at->str());
    return found;
  }

private:
  std::string left_ = statements();
};

void expect_fixtures(Readme& readme) {
  const auto networks =
      match_in("docs/reference/networks.md", "([0-9]+) networks: ([0-9]+) load, ([0-9]+) train");
  EXPECT_EQ(networks, std::vector<std::string>(3, networks[0]));
  readme.has("[{} networks]", networks[0]);
  const std::size_t cases =
      cases_in("tests/fixtures/gradients", [](const nlohmann::json&) { return true; });
  readme.has("({} cases)", group_digits(static_cast<std::int64_t>(cases)));
  readme.has("training steps of {} networks", files_in("tests/fixtures/networks", ".json").size());
}

void expect_validation(Readme& readme) {
  readme.has("products of an A100 are met to {} % on average",
             match_in("docs/validation.md",
                      "\\| waves, host and sustained rate \\| 14 \\| 0 \\| ([0-9.]+) % \\|")[0]);
  readme.has("to {} % of its cycles", percent_of_published("Jia's 4x4: ours, fused"));
  readme.has("DIANA to {} %", percent_of_published("DIANA: ours, fused"));
  readme.has("equals ZigZag {} in every figure",
             match_in("docs/validation.md", "\n## ZigZag ([0-9.]+)\n")[0]);
  // A test of the planner counts them.
  readme.has("Which of {} ways to divide",
             match_in("docs/explanation/parallelism-search.md", "has ([0-9,]+) strategies")[0]);
}

TEST(ReadmeNumbers, are_those_of_their_sources) {
  Readme readme;
  expect_fixtures(readme);
  expect_validation(readme);
  EXPECT_EQ(readme.without_source(), std::vector<std::string>{});
}

} // namespace MONET_TEST_FILE
} // namespace monet
