// Trace Event Format (Chrome, Perfetto). Written as text: a timeline has millions of numbers and
// few names.
#include "report/timeline_json.hpp"

#include "monet/report/result.hpp"
#include "monet/report/text.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <iterator>

namespace monet {

namespace {

using Json = nlohmann::ordered_json;

enum Process { kCores = 1, kLinks = 2, kMemory = 3, kPorts = 4, kPath = 5, kCoreMemories = 6 };

class TraceWriter {
public:
  void name_process(int pid, std::string_view name) {
    add(R"("ph":"M","name":"process_name","pid":{},"tid":0,"args":{{"name":"{}"}})", pid, name);
    add(R"("ph":"M","name":"process_sort_index","pid":{},"tid":0,"args":{{"sort_index":{}}})", pid,
        pid);
  }
  /// `name` is JSON text, quotes included.
  void name_thread(int pid, std::size_t tid, std::string_view name) {
    add(R"("ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}})", pid, tid, name);
  }
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    text_ += first_ ? "\n{" : ",\n{";
    first_ = false;
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '}';
  }
  std::string take() { return std::move(text_); }

private:
  std::string text_;
  bool first_ = true;
};

std::vector<std::string> quoted(const Json& list, const char* key) {
  std::vector<std::string> names;
  for (const Json& entry : list)
    names.push_back(json_text(key == nullptr ? entry : entry.at(key)));
  return names;
}

void write_threads(TraceWriter& trace, int pid, const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < names.size(); ++i)
    trace.name_thread(pid, i, names[i]);
}

void write_runs(TraceWriter& trace, const Json& result, const std::vector<std::string>& layers) {
  for (const Json& run : result.at("timeline").at("runs")) {
    const auto layer = run.at(run_column::layer).get<std::size_t>();
    const auto start = run.at(run_column::start).get<std::int64_t>();
    trace.add(R"("ph":"X","name":{},"cat":{},"pid":{},"tid":{},"ts":{},"dur":{})", layers.at(layer),
              json_text(result.at("layers").at(layer).at("phase")), static_cast<int>(kCores),
              run.at(run_column::core).get<std::size_t>(), start,
              run.at(run_column::end).get<std::int64_t>() - start);
  }
}

/// A transfer as a bar on a row.
void write_transfer(TraceWriter& trace, const Json& transfer, Process pid, std::size_t row,
                    std::string_view kind, const std::vector<std::string>& tensors,
                    const std::vector<std::string>& layers) {
  const auto start = transfer.at(transfer_column::start).get<std::int64_t>();
  trace.add(
      R"("ph":"X","name":{},"cat":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{"bits":{},"layer":{}}})",
      tensors.at(transfer.at(transfer_column::tensor).get<std::size_t>()), kind,
      static_cast<int>(pid), row, start,
      transfer.at(transfer_column::end).get<std::int64_t>() - start,
      transfer.at(transfer_column::bits).get<std::int64_t>(),
      layers.at(transfer.at(transfer_column::layer).get<std::size_t>()));
}

/// On the rows of all links it passes.
void write_transfers(TraceWriter& trace, const Json& result,
                     const std::vector<std::string>& layers) {
  constexpr std::array kKinds{"fetch", "stream", "write_back", "spill"};
  const std::vector<std::string> tensors = quoted(result.at("timeline").at("tensors"), nullptr);
  for (const Json& transfer : result.at("timeline").at("transfers")) {
    for (const Json& link : transfer.at(transfer_column::links))
      write_transfer(trace, transfer, kLinks, link.get<std::size_t>(),
                     kKinds.at(transfer.at(transfer_column::kind).get<std::size_t>()), tensors,
                     layers);
  }
}

/// Every transfer from or to the off-chip memory on the row of the port it passes.
void write_ports(TraceWriter& trace, const Json& result, const std::vector<std::string>& layers) {
  const std::size_t ports = result.at("ports").size();
  if (ports == 0)
    return;
  const std::vector<std::string> tensors = quoted(result.at("timeline").at("tensors"), nullptr);
  const std::size_t offchip = result.at("cores").size() - 1;
  for (const Json& transfer : result.at("timeline").at("transfers")) {
    const bool reads = transfer.at(transfer_column::from).get<std::size_t>() == offchip;
    if (reads || transfer.at(transfer_column::to).get<std::size_t>() == offchip)
      write_transfer(trace, transfer, kPorts, reads ? 0 : ports - 1, reads ? "read" : "write",
                     tensors, layers);
  }
}

/// What bounds the step, segment by segment.
void write_path(TraceWriter& trace, const Json& path, const std::vector<std::string>& layers) {
  constexpr std::array kLimitNames{"compute", "link", "offchip", "capacity", "order"};
  for (const Json& segment : path.at("segments")) {
    const auto start = segment.at(segment_column::start).get<std::int64_t>();
    const std::string layer = segment.at(segment_column::layer).is_null()
                                  ? std::string(R"("")")
                                  : layers.at(segment.at(segment_column::layer).get<std::size_t>());
    trace.add(
        R"("ph":"X","name":"{}","cat":"critical path","pid":{},"tid":0,"ts":{},"dur":{},"args":{{"layer":{}}})",
        kLimitNames.at(segment.at(segment_column::limit).get<std::size_t>()),
        static_cast<int>(kPath), start, segment.at(segment_column::end).get<std::int64_t>() - start,
        layer);
  }
}

/// One counter per core's memory.
void write_memories(TraceWriter& trace, const Json& onchip) {
  const Json& cycles = onchip.at("cycles");
  for (const Json& memory : onchip.at("memories")) {
    const auto core = memory.at("core").get<std::size_t>();
    for (std::size_t i = 0; i < cycles.size(); ++i) {
      trace.add(
          R"("ph":"C","name":"memory of core {}","pid":{},"tid":{},"ts":{},"args":{{"bytes":{}}})",
          core, static_cast<int>(kCoreMemories), core, cycles[i].get<std::int64_t>(),
          memory.at("bytes").at(i).get<std::int64_t>());
    }
  }
}

void write_memory(TraceWriter& trace, const Json& memory) {
  const Json& cycles = memory.at("cycles");
  for (std::size_t i = 0; i < cycles.size(); ++i) {
    std::string values;
    for (const auto& [key, bytes] : memory.items()) {
      if (key == "cycles")
        continue;
      const std::string owner = key.substr(0, key.rfind("_bytes"));
      values += fmt::format(R"({}"{}":{})", values.empty() ? "" : ",", owner,
                            bytes.at(i).get<std::int64_t>());
    }
    trace.add(R"("ph":"C","name":"live bytes","pid":{},"tid":0,"ts":{},"args":{{{}}})",
              static_cast<int>(kMemory), cycles[i].get<std::int64_t>(), values);
  }
}

} // namespace

std::string trace_json(const Json& result) {
  TraceWriter trace;
  trace.name_process(kCores, "cores");
  trace.name_process(kLinks, "links");
  trace.name_process(kMemory, "memory");
  trace.name_process(kPorts, "memory ports");
  trace.name_process(kPath, "critical path");
  trace.name_process(kCoreMemories, "memories of cores");
  const std::vector<std::string> layers = quoted(result.at("layers"), "name");
  write_threads(trace, kCores, quoted(result.at("cores"), "name"));
  write_threads(trace, kLinks, quoted(result.at("links"), "name"));
  write_threads(trace, kPorts, quoted(result.at("ports"), "name"));
  write_runs(trace, result, layers);
  write_transfers(trace, result, layers);
  write_ports(trace, result, layers);
  write_memory(trace, result.at("timeline").at("memory"));
  write_memories(trace, result.at("timeline").at("onchip"));
  write_path(trace, result.at("critical_path"), layers);

  const Json other = {{"time_unit", "1 us shown = 1 cycle"},
                      {"name", result.at("name")},
                      {"kind", result.at("kind")}};
  return fmt::format("{{\"displayTimeUnit\":\"ms\",\"otherData\":{},\"traceEvents\":[{}\n]}}\n",
                     json_text(other), trace.take());
}

} // namespace monet
