// The tables of searches, as documents repeat them, and the parts that all searches run through.
#include "monet/base/files.hpp"
#include "monet/optimise/search.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

namespace monet {

namespace {

TEST(Searches, DocumentsHaveTheirTables) {
  const std::string page =
      read_file(std::string(MONET_SOURCE_DIR) + "/docs/explanation/searches.md");
  for (const SearchInfo& search : searches()) {
    EXPECT_FALSE(search.options.empty()) << search.name;
    for (const std::string& row :
         {fmt::format("| {} | {} | {} |\n", search.decides, search.exact, search.bound),
          fmt::format("| `{}` | {} | {} |\n", search.name, search.evaluation, search.method)})
      EXPECT_NE(page.find(row), std::string::npos) << row;
  }
}

TEST(Searches, LimitsEndImprovementButNotTheStart) {
  std::atomic<bool> stop = true;
  SearchControl control;
  control.stop = &stop;
  std::vector<std::string> ran;
  const auto run = [&](std::string_view part) {
    return [&, part] {
      ran.emplace_back(part);
      if (part != "start")
        check_stop();
    };
  };
  EXPECT_FALSE(run_search({run("start"), {}, run("improve")}, control));
  EXPECT_EQ(ran, (std::vector<std::string>{"start", "improve"}));
  stop = false;
  ran.clear();
  EXPECT_TRUE(run_search({run("start"), run("bound"), run("improve")}, control));
  EXPECT_EQ(ran, (std::vector<std::string>{"start", "bound", "improve"}));
}

TEST(Searches, BatchesEndWhenDoneStoppedOrEmpty) {
  std::atomic<bool> stop = false;
  SearchControl control;
  control.stop = &stop;
  std::vector<int> judged;
  int next = 0;
  const auto run = [&](int end, int last, int stops_at) {
    judged.clear();
    next = 0;
    stop = false;
    run_batches(
        control, [&] { return next == end; },
        [&] { return next == last ? std::vector<int>{} : std::vector<int>{++next}; },
        [&](const std::vector<int>& batch) {
          judged.push_back(batch.front());
          stop = next == stops_at;
        });
    return judged;
  };
  EXPECT_EQ(run(2, 9, 9), (std::vector<int>{1, 2}));
  EXPECT_EQ(run(9, 3, 9), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(run(9, 9, 1), (std::vector<int>{1}));
}

} // namespace

} // namespace monet
