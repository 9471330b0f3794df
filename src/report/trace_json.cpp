// Writes trace.json from result.json in Trace Event Format, for Perfetto and chrome://tracing. It
// is written as text, since a timeline has millions of numbers and few names.
//
// Requirements of the viewers: times are microseconds, which Perfetto stores as whole nanoseconds.
// Slices of a thread must nest or be disjoint; a partly overlapping slice is dropped. Slices here
// never nest, so concurrent slices of a link or port are spread over lanes, each with a separate
// thread.
//
// A thread's number is unique in the trace and differs from every process number and 0. Perfetto
// treats a thread with its process's number as the main thread, and thread 0 as an idle processor.
//
// Source: perfetto.dev, "Visualizing external trace formats" and the FAQ on overlapping events;
// Trace Event Format, "Duration Events" and "Complete Events".
#include "report/shared/text.hpp"
#include "report/timeline_json.hpp"

#include "monet/report/result.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>

namespace monet {

namespace {

using Json = nlohmann::ordered_json;

enum Process { kCores = 1, kLinks = 2, kMemory = 3, kPorts = 4, kPath = 5, kCoreMemories = 6 };
constexpr std::size_t kFirstThread = 101; ///< above every process number

/// Converts cycles to whole nanoseconds if the chip has a frequency; otherwise a tick is a cycle.
class Clock {
public:
  explicit Clock(const Json& result) : frequency_hz_(result.value("frequency_hz", 0.0)) {
    // A JSON number beyond 2^53 no longer represents whole nanoseconds.
    constexpr double kExact = 9007199254740992.0;
    if (frequency_hz_ <= 0 ||
        result.at("latency_cycles").get<double>() / frequency_hz_ * 1e9 > kExact)
      frequency_hz_ = 0;
  }
  std::int64_t ticks(std::int64_t cycle) const {
    return frequency_hz_ > 0 ? std::llround(static_cast<double>(cycle) * (1e9 / frequency_hz_))
                             : cycle;
  }
  /// Value for a field that the format defines in microseconds.
  std::string microseconds(std::int64_t ticks) const {
    if (frequency_hz_ <= 0)
      return fmt::format("{}", ticks);
    return fmt::format("{}.{:03}", ticks / 1000, ticks % 1000);
  }
  Json describe() const {
    if (frequency_hz_ <= 0)
      return {{"time_unit", "cycles: 1 us shown = 1 cycle"}};
    return {{"time_unit", "microseconds"}, {"frequency_hz", frequency_hz_}};
  }
  const char* display_unit() const { return frequency_hz_ > 0 ? "ns" : "ms"; }

private:
  double frequency_hz_;
};

/// Bar [start, end) in ticks; `row` identifies the row that it represents.
struct Slice {
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::size_t row = 0;
};

/// Named list of slices that may overlap.
struct Track {
  std::string name; ///< JSON text, quotes included
  std::vector<Slice> slices;
};

/// Distributes slices over lanes without overlap: each goes to the first lane that is free at its
/// start. The number of lanes is at most the maximum number of concurrent slices.
std::vector<std::vector<Slice>> in_lanes(std::vector<Slice> slices) {
  std::stable_sort(slices.begin(), slices.end(),
                   [](const Slice& a, const Slice& b) { return a.start < b.start; });
  std::vector<std::vector<Slice>> lanes;
  for (const Slice& slice : slices) {
    const auto free = std::find_if(lanes.begin(), lanes.end(), [&](const std::vector<Slice>& lane) {
      return lane.back().end <= slice.start;
    });
    if (free == lanes.end())
      lanes.push_back({slice});
    else
      free->push_back(slice);
  }
  return lanes;
}

class TraceWriter {
public:
  explicit TraceWriter(const Clock& clock) : clock_(clock) {}

  /// Names a process. Must be called before add_thread() for its first thread, whose number it
  /// uses.
  void name_process(int pid, std::string_view name) {
    add(R"("ph":"M","name":"process_name","pid":{},"tid":{},"args":{{"name":"{}"}})", pid, thread_,
        name);
    add(R"("ph":"M","name":"process_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}})", pid,
        thread_, pid);
  }
  /// Adds a thread, displayed after earlier threads, and returns its number. `name` is JSON text,
  /// quotes included.
  std::size_t add_thread(int pid, std::string_view name) {
    add(R"("ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}})", pid, thread_,
        name);
    add(R"("ph":"M","name":"thread_sort_index","pid":{0},"tid":{1},"args":{{"sort_index":{1}}})",
        pid, thread_);
    return thread_++;
  }
  Slice slice(const Json& row, std::size_t start, std::size_t end, std::size_t index) const {
    const std::int64_t from = clock_.ticks(row.at(start).get<std::int64_t>());
    // Cycles shorter than 1 ns may round to 0, and Perfetto stacks slices without length.
    return {from, std::max(clock_.ticks(row.at(end).get<std::int64_t>()), from + 1), index};
  }
  /// Writes a process with its tracks. `describe` returns the name, category and arguments of a row
  /// as JSON members.
  template <class Describe>
  void write(int pid, std::string_view process, const std::vector<Track>& tracks,
             const Describe& describe) {
    if (!tracks.empty())
      name_process(pid, process);
    for (const Track& track : tracks) {
      const std::vector<std::vector<Slice>> lanes = in_lanes(track.slices);
      for (std::size_t i = 0; i < std::max<std::size_t>(lanes.size(), 1); ++i) {
        const std::size_t thread = add_thread(pid, lane_name(track.name, i, lanes.size()));
        if (i < lanes.size())
          write_lane(pid, thread, lanes[i], describe);
      }
    }
  }
  /// Adds a value of a counter; `values` are JSON members.
  void count(int pid, std::size_t thread, std::string_view name, std::int64_t cycle,
             std::string_view values) {
    add(R"("ph":"C","name":"{}","pid":{},"tid":{},"ts":{},"args":{{{}}})", name, pid, thread,
        clock_.microseconds(clock_.ticks(cycle)), values);
  }
  std::string take() { return std::move(text_); }

private:
  static std::string lane_name(const std::string& name, std::size_t lane, std::size_t lanes) {
    if (lanes <= 1)
      return name;
    return fmt::format("{} ({} of {})\"", std::string_view(name).substr(0, name.size() - 1),
                       lane + 1, lanes);
  }
  template <class Describe>
  void write_lane(int pid, std::size_t thread, const std::vector<Slice>& lane,
                  const Describe& describe) {
    for (const Slice& slice : lane)
      add(R"("ph":"X",{},"pid":{},"tid":{},"ts":{},"dur":{})", describe(slice.row), pid, thread,
          clock_.microseconds(slice.start), clock_.microseconds(slice.end - slice.start));
  }
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    text_ += first_ ? "\n{" : ",\n{";
    first_ = false;
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '}';
  }

  const Clock& clock_;
  std::string text_;
  std::size_t thread_ = kFirstThread;
  bool first_ = true;
};

std::vector<std::string> quoted(const Json& list, const char* key) {
  std::vector<std::string> names;
  for (const Json& entry : list)
    names.push_back(json_text(key == nullptr ? entry : entry.at(key)));
  return names;
}

std::vector<Track> tracks_of(const Json& list) {
  std::vector<Track> tracks;
  for (std::string& name : quoted(list, "name"))
    tracks.push_back({std::move(name), {}});
  return tracks;
}

/// Names in a result's lists, as JSON text.
struct Names {
  std::vector<std::string> layers;
  std::vector<std::string> phases; ///< phase of each layer
  std::vector<std::string> tensors;
};

void write_runs(TraceWriter& trace, const Json& result, const Names& names) {
  const Json& runs = result.at("timeline").at("runs");
  std::vector<Track> cores = tracks_of(result.at("cores"));
  for (std::size_t i = 0; i < runs.size(); ++i)
    cores.at(runs[i].at(run_column::core).get<std::size_t>())
        .slices.push_back(trace.slice(runs[i], run_column::start, run_column::end, i));
  trace.write(kCores, "cores", cores, [&](std::size_t row) {
    const auto layer = runs[row].at(run_column::layer).get<std::size_t>();
    return fmt::format(R"("name":{},"cat":{})", names.layers.at(layer), names.phases.at(layer));
  });
}

/// Name, category and arguments of a transfer.
std::string transfer_text(const Json& transfer, std::string_view kind, const Names& names) {
  return fmt::format(R"("name":{},"cat":"{}","args":{{"bits":{},"layer":{}}})",
                     names.tensors.at(transfer.at(transfer_column::tensor).get<std::size_t>()),
                     kind, transfer.at(transfer_column::bits).get<std::int64_t>(),
                     names.layers.at(transfer.at(transfer_column::layer).get<std::size_t>()));
}

/// Writes every transfer on the tracks of all links that it passes.
void write_transfers(TraceWriter& trace, const Json& result, const Names& names) {
  constexpr std::array kKinds{"fetch", "stream", "write_back", "spill"};
  const Json& transfers = result.at("timeline").at("transfers");
  std::vector<Track> links = tracks_of(result.at("links"));
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    const Slice slice = trace.slice(transfers[i], transfer_column::start, transfer_column::end, i);
    for (const Json& link : transfers[i].at(transfer_column::links))
      links.at(link.get<std::size_t>()).slices.push_back(slice);
  }
  trace.write(kLinks, "links", links, [&](std::size_t row) {
    const auto kind = transfers[row].at(transfer_column::kind).get<std::size_t>();
    return transfer_text(transfers[row], kKinds.at(kind), names);
  });
}

/// Writes every transfer from or to the off-chip memory on the track of its port.
void write_ports(TraceWriter& trace, const Json& result, const Names& names) {
  std::vector<Track> ports = tracks_of(result.at("ports"));
  if (ports.empty())
    return;
  const Json& transfers = result.at("timeline").at("transfers");
  const std::size_t offchip = result.at("cores").size() - 1;
  const auto reads = [&](std::size_t row) {
    return transfers[row].at(transfer_column::from).get<std::size_t>() == offchip;
  };
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    if (reads(i) || transfers[i].at(transfer_column::to).get<std::size_t>() == offchip)
      (reads(i) ? ports.front() : ports.back())
          .slices.push_back(
              trace.slice(transfers[i], transfer_column::start, transfer_column::end, i));
  }
  trace.write(kPorts, "memory ports", ports, [&](std::size_t row) {
    return transfer_text(transfers[row], reads(row) ? "read" : "write", names);
  });
}

/// Writes the critical path: what limits the step, segment by segment.
void write_path(TraceWriter& trace, const Json& path, const Names& names) {
  constexpr std::array kLimitNames{"compute", "link", "offchip", "capacity", "order"};
  const Json& segments = path.at("segments");
  Track track{R"("critical path")", {}};
  for (std::size_t i = 0; i < segments.size(); ++i)
    track.slices.push_back(trace.slice(segments[i], segment_column::start, segment_column::end, i));
  trace.write(kPath, "critical path", {track}, [&](std::size_t row) {
    const Json& layer = segments[row].at(segment_column::layer);
    return fmt::format(R"("name":"{}","cat":"critical path","args":{{"layer":{}}})",
                       kLimitNames.at(segments[row].at(segment_column::limit).get<std::size_t>()),
                       layer.is_null() ? R"("")" : names.layers.at(layer.get<std::size_t>()));
  });
}

/// Writes one counter per core memory.
void write_memories(TraceWriter& trace, const Json& onchip) {
  const Json& cycles = onchip.at("cycles");
  if (!onchip.at("memories").empty())
    trace.name_process(kCoreMemories, "memories of cores");
  for (const Json& memory : onchip.at("memories")) {
    const std::string name = fmt::format("memory of core {}", memory.at("core").get<std::size_t>());
    const std::size_t thread = trace.add_thread(kCoreMemories, '"' + name + '"');
    for (std::size_t i = 0; i < cycles.size(); ++i) {
      trace.count(kCoreMemories, thread, name, cycles[i].get<std::int64_t>(),
                  fmt::format(R"("bytes":{})", memory.at("bytes").at(i).get<std::int64_t>()));
    }
  }
}

void write_memory(TraceWriter& trace, const Json& memory) {
  const Json& cycles = memory.at("cycles");
  trace.name_process(kMemory, "memory");
  const std::size_t thread = trace.add_thread(kMemory, R"("live bytes")");
  for (std::size_t i = 0; i < cycles.size(); ++i) {
    std::string values;
    for (const auto& [key, bytes] : memory.items()) {
      if (key == "cycles")
        continue;
      const std::string owner = key.substr(0, key.rfind("_bytes"));
      values += fmt::format(R"({}"{}":{})", values.empty() ? "" : ",", owner,
                            bytes.at(i).get<std::int64_t>());
    }
    trace.count(kMemory, thread, "live bytes", cycles[i].get<std::int64_t>(), values);
  }
}

} // namespace

std::string trace_json(const Json& result) {
  const Clock clock(result);
  TraceWriter trace(clock);
  const Json& layers = result.at("layers");
  const Names names{quoted(layers, "name"), quoted(layers, "phase"),
                    quoted(result.at("timeline").at("tensors"), nullptr)};
  write_runs(trace, result, names);
  write_transfers(trace, result, names);
  write_ports(trace, result, names);
  write_memory(trace, result.at("timeline").at("memory"));
  write_memories(trace, result.at("timeline").at("onchip"));
  write_path(trace, result.at("critical_path"), names);

  Json other = clock.describe();
  other["name"] = result.at("name");
  other["kind"] = result.at("kind");
  return fmt::format("{{\"displayTimeUnit\":\"{}\",\"otherData\":{},\"traceEvents\":[{}\n]}}\n",
                     clock.display_unit(), json_text(other), trace.take());
}

} // namespace monet
