#include "report/trace_rules.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace monet::test {

namespace {

using Json = nlohmann::json;
using Thread = std::pair<std::int64_t, std::int64_t>; // process, thread

struct Slice {
  std::int64_t start = 0; // nanoseconds
  std::int64_t end = 0;
  const Json* event = nullptr;
};

class Rules {
public:
  void hold(bool held, const char* rule, const Json& event) {
    if (held)
      return;
    Broken& broken = broken_[rule];
    if (broken.count++ == 0)
      broken.first = event.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  std::vector<std::string> lines() const {
    std::vector<std::string> lines;
    for (const auto& [rule, broken] : broken_)
      lines.push_back(fmt::format("{} ({}, first {})", rule, broken.count, broken.first));
    return lines;
  }

private:
  struct Broken {
    std::size_t count = 0;
    std::string first;
  };
  std::map<std::string, Broken> broken_;
};

/// As the importer rounds.
std::int64_t nanoseconds(const Json& microseconds) {
  return std::llround(microseconds.get<double>() * 1000.0);
}

bool is_number(const Json& event, const char* key) {
  return event.contains(key) && event[key].is_number();
}

struct Trace {
  std::map<Thread, std::vector<Slice>> slices;
  std::map<std::int64_t, std::set<std::int64_t>> processes_of_thread;
  std::set<Thread> named_threads;
  std::map<Thread, std::int64_t> thread_places;
  std::set<std::int64_t> processes;
  std::set<std::int64_t> named_processes;
  std::set<std::int64_t> placed_processes;
};

void take_metadata(Rules& rules, Trace& trace, const Json& event, Thread thread) {
  const Json args = event.value("args", Json::object());
  const auto what = event.value("name", std::string());
  const bool names = what == "process_name" || what == "thread_name";
  const bool places = what == "process_sort_index" || what == "thread_sort_index";
  rules.hold(names || places, "metadata is of a known kind", event);
  if (names) {
    rules.hold(args.contains("name") && args["name"].is_string(), "a name is text", event);
    if (what == "process_name")
      trace.named_processes.insert(thread.first);
    else
      rules.hold(trace.named_threads.insert(thread).second, "a thread is named once", event);
  } else if (places) {
    const bool whole = args.contains("sort_index") && args["sort_index"].is_number_integer();
    rules.hold(whole, "a place is a whole number", event);
    if (what == "process_sort_index")
      trace.placed_processes.insert(thread.first);
    else if (whole)
      trace.thread_places[thread] = args["sort_index"].get<std::int64_t>();
  }
}

void take_event(Rules& rules, Trace& trace, const Json& event) {
  const bool whole = event.is_object() && event.contains("ph") && event["ph"].is_string() &&
                     event.contains("name") && event["name"].is_string() && event.contains("pid") &&
                     event["pid"].is_number_integer() && event.contains("tid") &&
                     event["tid"].is_number_integer();
  rules.hold(whole, "an event has ph, name, pid and tid", event);
  if (!whole)
    return;
  const Thread thread{event["pid"].get<std::int64_t>(), event["tid"].get<std::int64_t>()};
  trace.processes.insert(thread.first);
  trace.processes_of_thread[thread.second].insert(thread.first);
  const auto kind = event["ph"].get<std::string>();
  if (kind == "M")
    return take_metadata(rules, trace, event, thread);
  const bool timed = is_number(event, "ts") && event["ts"].get<double>() >= 0;
  rules.hold(timed, "ts is a number from 0 on", event);
  if (kind == "X") {
    const bool lasts = timed && is_number(event, "dur") && nanoseconds(event["dur"]) > 0;
    rules.hold(lasts, "a slice lasts a nanosecond or more", event);
    if (lasts) {
      const std::int64_t start = nanoseconds(event["ts"]);
      trace.slices[thread].push_back({start, start + nanoseconds(event["dur"]), &event});
    }
  } else if (kind == "C") {
    const Json args = event.value("args", Json::object());
    const bool counts = !args.empty() && std::all_of(args.begin(), args.end(),
                                                     [](const Json& v) { return v.is_number(); });
    rules.hold(counts, "a counter has numbers", event);
  } else {
    rules.hold(false, "an event is a slice, a counter or metadata", event);
  }
}

void check_slices(Rules& rules, std::vector<Slice> slices) {
  std::stable_sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) {
    return a.start != b.start ? a.start < b.start : a.end > b.end;
  });
  std::vector<std::int64_t> open; // ends of the slices that the next may lie in
  for (const Slice& slice : slices) {
    while (!open.empty() && open.back() <= slice.start)
      open.pop_back();
    rules.hold(open.empty() || slice.end <= open.back(), "slices nest or lie apart", *slice.event);
    rules.hold(open.empty(), "slices do not overlap", *slice.event);
    open.push_back(open.empty() ? slice.end : std::min(slice.end, open.back()));
  }
}

void check_threads(Rules& rules, const Trace& trace) {
  for (const auto& [thread, slices] : trace.slices) {
    const Json& event = *slices.front().event;
    rules.hold(trace.named_threads.contains(thread), "a thread with slices has a name", event);
    rules.hold(trace.thread_places.contains(thread), "a thread with slices has a place", event);
    rules.hold(trace.named_processes.contains(thread.first), "a process has a name", event);
    rules.hold(trace.placed_processes.contains(thread.first), "a process has a place", event);
    check_slices(rules, slices);
  }
  for (const auto& [thread, processes] : trace.processes_of_thread) {
    rules.hold(processes.size() == 1, "a thread's number is of one process", thread);
    rules.hold(thread != 0, "no thread has an idle processor's number", thread);
    rules.hold(!trace.processes.contains(thread), "no thread has a process's number", thread);
  }
  std::set<Thread> places; // process, place
  for (const auto& [thread, place] : trace.thread_places)
    rules.hold(places.insert({thread.first, place}).second, "threads have places of their own",
               thread.second);
}

} // namespace

std::vector<std::string> trace_violations(const Json& json) {
  Rules rules;
  const bool holds =
      json.is_object() && json.contains("traceEvents") && json["traceEvents"].is_array();
  rules.hold(holds, "a trace is an object with traceEvents", holds ? Json() : json);
  if (!holds)
    return rules.lines();
  const Json unit = json.value("displayTimeUnit", Json("ms"));
  rules.hold(unit == "ms" || unit == "ns", "displayTimeUnit is ms or ns", unit);
  Trace trace;
  for (const Json& event : json["traceEvents"])
    take_event(rules, trace, event);
  check_threads(rules, trace);
  return rules.lines();
}

} // namespace monet::test
