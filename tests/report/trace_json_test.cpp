#include "report/hand_made_step.hpp"
#include "report/trace_rules.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <set>

namespace monet::test {
namespace {

using Json = nlohmann::json;
using Lines = std::vector<std::string>;

Json trace_of(const nlohmann::ordered_json& result) {
  return Json::parse(trace_json(result));
}
Json trace_of(const HandMade& made) {
  return trace_of(made.json());
}

std::vector<Json> slices_of(const Json& trace, int process) {
  std::vector<Json> slices;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X" && event.at("pid") == process)
      slices.push_back(event);
  }
  return slices;
}

std::map<std::int64_t, std::string> thread_names(const Json& trace, int process) {
  std::map<std::int64_t, std::string> names;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("name") == "thread_name" && event.at("pid") == process)
      names[event.at("tid").get<std::int64_t>()] = event.at("args").at("name").get<std::string>();
  }
  return names;
}

TEST(TraceJson, EveryEventHasWhatItsKindNeeds) {
  const Json trace = trace_of(hand_made_step());
  EXPECT_EQ(trace_violations(trace), Lines{});
  std::map<std::string, int> kinds;
  for (const Json& event : trace.at("traceEvents"))
    ++kinds[event.at("ph").get<std::string>()];
  // Name and place of 6 processes and of 3 cores, 2 links, 1 port, the path, and the counters of
  // the step and of 2 memories; 3 runs, 4 link uses, 2 uses of the port, 7 segments of the critical
  // path; 5 samples, 5 of each of 2 memories.
  EXPECT_EQ(kinds, (std::map<std::string, int>{{"M", 2 * (6 + 10)}, {"X", 16}, {"C", 15}}));
}

// The chip runs at 1 GHz: a cycle is a nanosecond.
TEST(TraceJson, RunsAreOnTheirCoreInMicroseconds) {
  const Json trace = trace_of(hand_made_step());
  const std::map<std::int64_t, std::string> cores = thread_names(trace, 1);
  for (const Json& slice : slices_of(trace, 1)) {
    if (slice.at("name") != "fc/dw")
      continue;
    EXPECT_EQ(cores.at(slice.at("tid").get<std::int64_t>()), "pe");
    EXPECT_EQ(slice.at("cat"), "backward");
    EXPECT_EQ(slice.at("ts").get<double>(), 0.040);
    EXPECT_EQ(slice.at("dur").get<double>(), 0.030);
    EXPECT_EQ(trace.at("otherData").at("time_unit"), "microseconds");
    EXPECT_EQ(trace.at("otherData").at("frequency_hz"), 1e9);
    return;
  }
  FAIL() << "no run of fc/dw";
}

TEST(TraceJson, WithoutAFrequencyACycleIsShownAsAMicrosecond) {
  HandMade made = hand_made_step();
  made.chip.frequency_hz = 0;
  const Json trace = trace_of(made);
  EXPECT_EQ(trace_violations(trace), Lines{});
  EXPECT_EQ(trace.at("otherData").at("time_unit"), "cycles: 1 us shown = 1 cycle");
  EXPECT_FALSE(trace.at("otherData").contains("frequency_hz"));
  double end = 0;
  for (const Json& slice : slices_of(trace, 5))
    end = std::max(end, slice.at("ts").get<double>() + slice.at("dur").get<double>());
  EXPECT_EQ(end, 90);
}

TEST(TraceJson, NamesAreData) {
  const std::string hostile = "\"},{\"ph\":\"X\"\\\n\x01\xFF";
  HandMade made = hand_made_step(hostile);
  for (Core& core : made.chip.cores)
    core.name = hostile + core.name;
  const Json trace = trace_of(made);
  EXPECT_EQ(trace_violations(trace), Lines{});
  EXPECT_EQ(trace["traceEvents"].size(), trace_of(hand_made_step())["traceEvents"].size());
}

struct Bar {
  std::int64_t start = 0;
  std::int64_t end = 0;
};

/// The hand-made step's result with these transfers alone, all over both links.
nlohmann::ordered_json with_transfers(const std::vector<Bar>& bars, double frequency) {
  HandMade made = hand_made_step();
  made.chip.frequency_hz = frequency;
  nlohmann::ordered_json result = made.json();
  auto& rows = result["timeline"]["transfers"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < bars.size(); ++i) {
    rows.push_back({0, {0, 1}, 0, bars[i].start, bars[i].end, i, 2, 0, 0}); // `bits` tells which
    result["latency_cycles"] = std::max(result["latency_cycles"].get<std::int64_t>(), bars[i].end);
  }
  return result;
}

std::size_t max_at_once(const std::vector<Bar>& bars) {
  std::size_t most = 0;
  for (const Bar& at : bars) {
    most = std::max<std::size_t>(most, std::count_if(bars.begin(), bars.end(), [&](const Bar& bar) {
                                   return bar.start <= at.start && at.start < bar.end;
                                 }));
  }
  return most;
}

// Overlap, inclusion, equality and touching, at clocks whose cycle is a whole number of
// nanoseconds, or not, or less than one.
TEST(TraceJson, OverlappingTransfersHaveLanesOfTheirOwn) {
  std::mt19937 random(19);
  for (int round = 0; round < 60; ++round) {
    const double frequency = std::array{0.0, 216e6, 940e6, 1e9, 3e9}.at(random() % 5);
    std::vector<Bar> bars;
    const std::size_t count = 1 + random() % 40;
    for (std::size_t i = 0; i < count; ++i) {
      const auto start = static_cast<std::int64_t>(random() % 60);
      bars.push_back({start, start + 1 + static_cast<std::int64_t>(random() % 12)});
    }
    const Json trace = trace_of(with_transfers(bars, frequency));
    ASSERT_EQ(trace_violations(trace), Lines{}) << "round " << round;
    EXPECT_EQ(trace, trace_of(with_transfers(bars, frequency)));
    std::multiset<std::pair<std::int64_t, std::size_t>> shown; // start in ns, which
    for (const Json& slice : slices_of(trace, 2)) {
      const auto bar = slice.at("args").at("bits").get<std::size_t>();
      const double us = frequency > 0 ? 1e6 / frequency : 1.0;
      EXPECT_NEAR(slice.at("ts").get<double>(), static_cast<double>(bars.at(bar).start) * us,
                  0.00051);
      EXPECT_NEAR(slice.at("dur").get<double>(),
                  static_cast<double>(bars.at(bar).end - bars.at(bar).start) * us, 0.00102);
      shown.insert({0, bar});
    }
    for (std::size_t bar = 0; bar < bars.size(); ++bar)
      EXPECT_EQ(shown.count({0, bar}), 2U);
    if (frequency <= 1e9) { // a cycle is a nanosecond at least: nothing is made longer
      EXPECT_EQ(thread_names(trace, 2).size(), 2 * max_at_once(bars)) << "round " << round;
    }
  }
}

TEST(TraceJson, LanesSayWhichTheyAre) {
  const Json trace = trace_of(with_transfers({{0, 10}, {5, 15}, {10, 20}}, 0));
  std::set<std::string> names;
  for (const auto& [thread, name] : thread_names(trace, 2))
    names.insert(name);
  EXPECT_EQ(names, (std::set<std::string>{"0-1 (1 of 2)", "0-1 (2 of 2)", "dram (1 of 2)",
                                          "dram (2 of 2)"}));
}

// A time of more nanoseconds than a JSON number holds exactly is left in cycles.
TEST(TraceJson, TimesBeyondExactNumbersStayCycles) {
  const std::int64_t far = std::int64_t{1} << 52;
  const Json trace = trace_of(with_transfers({{far - 1, far}, {far - 2, far - 1}}, 1e6));
  EXPECT_EQ(trace.at("otherData").at("time_unit"), "cycles: 1 us shown = 1 cycle");
  EXPECT_EQ(slices_of(trace, 2).front().at("ts"), far - 2);
}

// The checker sees each rule broken.
TEST(TraceRules, EachIsSeenBroken) {
  using Break = std::function<void(Json&)>;
  const auto event = [](const char* kind, const char* name = nullptr) {
    return [kind, name](Json& trace) -> Json& {
      return *std::find_if(
          trace["traceEvents"].begin(), trace["traceEvents"].end(),
          [&](const Json& e) { return e["ph"] == kind && (name == nullptr || e["name"] == name); });
    };
  };
  const auto slice = event("X");
  const auto copy = [&](Json& trace, double later, double longer) {
    Json other = slice(trace);
    other["ts"] = other["ts"].get<double>() + later;
    other["dur"] = other["dur"].get<double>() + longer;
    trace["traceEvents"].push_back(other);
  };
  const std::vector<std::pair<std::string, Break>> breaks{
      {"slices nest or lie apart", [&](Json& t) { copy(t, 0.001, 0); }},
      {"slices do not overlap", [&](Json& t) { copy(t, 0.001, -0.002); }},
      {"a slice lasts a nanosecond or more", [&](Json& t) { slice(t)["dur"] = 0.0004; }},
      {"ts is a number from 0 on", [&](Json& t) { slice(t)["ts"] = "0"; }},
      {"ts is a number from 0 on", [&](Json& t) { event("C")(t)["ts"] = -1; }},
      {"an event has ph, name, pid and tid", [&](Json& t) { slice(t).erase("tid"); }},
      {"an event is a slice, a counter or metadata", [&](Json& t) { slice(t)["ph"] = "Q"; }},
      {"a counter has numbers", [&](Json& t) { event("C")(t)["args"]["bytes"] = "1"; }},
      {"a name is text", [&](Json& t) { event("M", "thread_name")(t)["args"]["name"] = 1; }},
      {"a thread with slices has a name", [&](Json& t) { slice(t)["tid"] = 999; }},
      {"a thread with slices has a place", [&](Json& t) { slice(t)["tid"] = 999; }},
      {"threads have places of their own",
       [&](Json& t) {
         Json other = event("M", "thread_sort_index")(t);
         other["tid"] = 999;
         t["traceEvents"].push_back(other);
       }},
      {"a thread is named once",
       [&](Json& t) { t["traceEvents"].push_back(Json(event("M", "thread_name")(t))); }},
      {"a place is a whole number",
       [&](Json& t) { event("M", "thread_sort_index")(t)["args"]["sort_index"] = "1"; }},
      {"a process has a name", [&](Json& t) { slice(t)["pid"] = 50; }},
      {"a thread's number is of one process", [&](Json& t) { slice(t)["pid"] = 50; }},
      {"no thread has a process's number", [&](Json& t) { slice(t)["tid"] = 2; }},
      {"no thread has an idle processor's number", [&](Json& t) { slice(t)["tid"] = 0; }},
      {"metadata is of a known kind", [&](Json& t) { event("M")(t)["name"] = "thread"; }},
      {"displayTimeUnit is ms or ns", [&](Json& t) { t["displayTimeUnit"] = "us"; }},
      {"a trace is an object with traceEvents", [&](Json& t) { t.erase("traceEvents"); }},
  };
  const Json right = trace_of(hand_made_step());
  ASSERT_EQ(trace_violations(right), Lines{});
  for (const auto& [rule, breaks_it] : breaks) {
    Json trace = right;
    breaks_it(trace);
    const Lines lines = trace_violations(trace);
    EXPECT_TRUE(std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
      return line.rfind(rule + " (", 0) == 0;
    })) << rule;
  }
}

} // namespace
} // namespace monet::test
