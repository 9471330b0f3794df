#include "report/hand_made_step.hpp"

#include <gtest/gtest.h>

#include <map>

namespace monet::test {
namespace {

using Json = nlohmann::json;

Json trace_of(const HandMade& made) {
  return Json::parse(trace_json(made.json()));
}

TEST(TraceJson, EveryEventHasWhatItsKindNeeds) {
  const Json trace = trace_of(hand_made_step());
  ASSERT_TRUE(trace.at("traceEvents").is_array());
  std::map<std::pair<int, int>, std::int64_t> last;
  std::map<std::string, int> kinds;
  for (const Json& event : trace["traceEvents"]) {
    const auto kind = event.at("ph").get<std::string>();
    ++kinds[kind];
    EXPECT_TRUE(event.at("name").is_string());
    const std::pair thread{event.at("pid").get<int>(), event.at("tid").get<int>()};
    if (kind == "M") {
      EXPECT_TRUE(event.at("args").is_object());
      continue;
    }
    const auto time = event.at("ts").get<std::int64_t>();
    EXPECT_GE(time, last[thread]) << event.dump();
    last[thread] = time;
    if (kind == "X") {
      EXPECT_GT(event.at("dur").get<std::int64_t>(), 0);
    } else {
      EXPECT_EQ(event.at("args").size(), event.at("pid") == 3 ? 5U : 1U);
    }
  }
  // 6 processes with name and place, 3 cores, 2 links, 1 port; 3 runs, 4 link uses, 2 uses of the
  // port, 7 segments of the critical path; 5 samples, 5 of each of 2 memories.
  EXPECT_EQ(kinds, (std::map<std::string, int>{{"M", 18}, {"X", 16}, {"C", 15}}));
  EXPECT_EQ(trace.at("otherData").at("time_unit"), "1 us shown = 1 cycle");
}

TEST(TraceJson, RunsAreOnTheirCore) {
  const Json trace = trace_of(hand_made_step());
  for (const Json& event : trace["traceEvents"]) {
    if (event.at("name") != "fc/dw" || event.at("ph") != "X")
      continue;
    EXPECT_EQ(event.dump(),
              R"({"cat":"backward","dur":30,"name":"fc/dw","ph":"X","pid":1,"tid":0,"ts":40})");
    return;
  }
  FAIL() << "no run of fc/dw";
}

TEST(TraceJson, NamesAreData) {
  const std::string hostile = "\"},{\"ph\":\"X\"\\\n\x01\xFF";
  const Json trace = trace_of(hand_made_step(hostile));
  EXPECT_EQ(trace["traceEvents"].size(), trace_of(hand_made_step())["traceEvents"].size());
}

} // namespace
} // namespace monet::test
