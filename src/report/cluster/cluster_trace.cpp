// Writes the trace of a step on a cluster from cluster.json, in Trace Event Format; trace_json.cpp
// describes the viewers' requirements. Slices of a thread do not overlap and last at least 1 ns. A
// pass without length delays the slices after it; a send without length is left out.
#include "report/cluster/cluster_text.hpp"
#include "report/shared/cluster_result.hpp"
#include "report/shared/text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>
#include <map>

namespace monet {

namespace {

using Json = nlohmann::ordered_json;
using namespace cluster_text;

enum ClusterProcess { kStageProcess = 1, kSendProcess = 2 };
constexpr int kFirstClusterThread = 101;

class ClusterTrace {
public:
  void begin_process(int process, std::string_view name) {
    process_ = process;
    add(R"("ph":"M","name":"process_name","pid":{},"tid":{},"args":{{"name":"{}"}})", process_,
        thread_ + 1, name);
    add(R"("ph":"M","name":"process_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}})",
        process_, thread_ + 1, process_);
  }
  void begin_thread(std::string_view name) {
    ++thread_;
    free_ = 0;
    add(R"("ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"{}"}})", process_,
        thread_, name);
    add(R"("ph":"M","name":"thread_sort_index","pid":{0},"tid":{1},"args":{{"sort_index":{1}}})",
        process_, thread_);
  }
  /// Adds a slice to the current thread, after its earlier slices. `arguments` are JSON members.
  void slice(std::string_view name, std::string_view category, std::int64_t start, std::int64_t end,
             std::string_view arguments = {}) {
    const std::int64_t from = std::max(start, free_);
    free_ = std::max(end, from + 1);
    add(R"("ph":"X","name":"{}","cat":"{}","args":{{{}}},"pid":{},"tid":{},"ts":{},"dur":{})", name,
        category, arguments, process_, thread_, microseconds(from), microseconds(free_ - from));
  }
  std::string take() { return std::move(text_); }

private:
  static std::string microseconds(std::int64_t nanoseconds) {
    return fmt::format("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
  }
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    text_ += text_.empty() ? "\n{" : ",\n{";
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '}';
  }

  std::string text_;
  int process_ = 0;
  int thread_ = kFirstClusterThread - 1;
  std::int64_t free_ = 0; ///< end of the thread's last slice
};

void write_pass(ClusterTrace& trace, const Json& row, std::int64_t chunks) {
  constexpr std::array kPassNames{"forward", "backward", "weight gradient"};
  trace.slice(pass_name(row, chunks), kPassNames.at(row.at(pass_column::pass).get<std::size_t>()),
              row.at(pass_column::start), row.at(pass_column::end),
              fmt::format(R"("micro_batch":{},"chunk":{})",
                          row.at(pass_column::micro_batch).get<std::int64_t>(),
                          row.at(pass_column::chunk).get<std::int64_t>()));
}

/// Writes the slices after the last pass: gradients that no pass hides, then the update at the end.
void write_tail(ClusterTrace& trace, const Json& times, const Json& share) {
  const auto end = times.at("end_ns").get<std::int64_t>();
  const auto finish = times.at("finish_ns").get<std::int64_t>();
  const std::int64_t update = finish - share.at("update_ns").get<std::int64_t>();
  const std::int64_t gradients =
      std::min(update, end + share.at("gradients_ns").get<std::int64_t>());
  if (gradients > end)
    trace.slice("gradients", "gradients", end, gradients);
  if (finish > update)
    trace.slice("update", "update", update, finish);
}

void write_stages(ClusterTrace& trace, const Json& result) {
  const Json& timeline = result.at("timeline");
  const std::int64_t chunks = chunks_of(timeline.at("passes"));
  std::vector<std::vector<const Json*>> passes(timeline.at("stages").size());
  for (const Json& row : timeline.at("passes"))
    passes.at(row.at(pass_column::stage).get<std::size_t>()).push_back(&row);
  trace.begin_process(kStageProcess, "stages");
  for (std::size_t i = 0; i < passes.size(); ++i) {
    trace.begin_thread(fmt::format("stage {}", i));
    for (const Json* row : passes[i])
      write_pass(trace, *row, chunks);
    write_tail(trace, timeline.at("stages").at(i), result.at("stages").at(i).at("share"));
  }
}

void write_sends(ClusterTrace& trace, const Json& sends) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<const Json*>> links;
  for (const Json& row : sends) {
    if (row.at(send_column::end) > row.at(send_column::start))
      links[{row.at(send_column::from), row.at(send_column::to)}].push_back(&row);
  }
  if (links.empty())
    return;
  trace.begin_process(kSendProcess, "sends");
  for (auto& [stages, rows] : links) {
    trace.begin_thread(fmt::format("{} to {}", stages.first, stages.second));
    std::ranges::stable_sort(
        rows, {}, [](const Json* row) { return row->at(send_column::start).get<std::int64_t>(); });
    for (const Json* row : rows) {
      const bool is_gradient = row->at(send_column::gradient).get<int>() != 0;
      const auto micro_batch = row->at(send_column::micro_batch).get<std::int64_t>();
      trace.slice(fmt::format("{}{}", is_gradient ? "dX" : "X", micro_batch),
                  is_gradient ? "gradient" : "activation", row->at(send_column::start),
                  row->at(send_column::end),
                  fmt::format(R"("micro_batch":{},"part":{})", micro_batch,
                              row->at(send_column::part).get<std::int64_t>()));
    }
  }
}

} // namespace

std::string cluster_trace(const Json& result) {
  ClusterTrace trace;
  write_stages(trace, result);
  write_sends(trace, result.at("timeline").at("sends"));
  const Json other{{"name", result.at("name")},
                   {"kind", result.at("kind")},
                   {"strategy", result.at("strategy").at("text")},
                   {"time_unit", "microseconds"}};
  return fmt::format("{{\"displayTimeUnit\":\"ns\",\"otherData\":{},\"traceEvents\":[{}\n]}}\n",
                     json_text(other), trace.take());
}

} // namespace monet
