// The page of a step on a cluster: pictures and tables, without scripts.
#include "report/cluster/cluster_gantt.hpp"
#include "report/cluster/cluster_text.hpp"

#include "monet/base/text.hpp"
#include "monet/report/cluster_result.hpp"
#include "monet/report/text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <span>

namespace monet {

namespace {

using Json = nlohmann::ordered_json;
using namespace cluster_text;

constexpr std::size_t kMostDrawnStages = 64;
/// Of the step, at most: else its beginning and its end are not drawn apart.
constexpr double kMostDetail = 0.5;

std::string safe_text(const Json& text) {
  return html_escaped(printable(text.get<std::string>()));
}

std::string bytes_text(const Json& bytes) {
  return human_bytes(bytes.get<std::int64_t>());
}

std::string time_text(const Json& time) {
  return human_nanoseconds(time.get<std::int64_t>());
}

std::string row_of(const std::string& label, const std::string& text) {
  return fmt::format("<tr><td>{}</td><td>{}</td></tr>", label, text);
}

std::string summary_section(const Json& result) {
  const Json& cluster = result.at("cluster");
  const Json& memory = result.at("memory");
  std::string html = "<table>";
  html +=
      row_of("devices",
             fmt::format("{} of {} ({})", group_digits(cluster.at("devices").get<std::int64_t>()),
                         safe_text(cluster.at("name")), safe_text(cluster.at("device"))));
  html += row_of("strategy", safe_text(result.at("strategy").at("text")));
  html += row_of("time of a step", time_text(result.at("time_ns")));
  html += row_of("samples a second", human_rate(result.at("samples_per_second").get<double>()));
  if (!result.at("tokens_per_second").is_null())
    html += row_of("tokens a second", human_rate(result.at("tokens_per_second").get<double>()));
  for (const auto& [key, label] : {std::pair{"mfu", "MFU"}, std::pair{"hfu", "HFU"}}) {
    if (!result.at(key).is_null())
      html += row_of(label, fmt::format("{:.2f} %", 100 * result.at(key).get<double>()));
  }
  if (!result.at("energy_pj").is_null())
    html += row_of("energy", human_energy(result.at("energy_pj").get<double>()));
  if (memory.at("host_bytes").get<std::int64_t>() > 0)
    html += row_of("host's memory of a device, at most", bytes_text(memory.at("host_bytes")));
  std::string text = bytes_text(memory.at("largest_bytes"));
  if (!memory.at("limit_bytes").is_null())
    text += " of " + bytes_text(memory.at("limit_bytes"));
  if (!memory.at("fits").get<bool>())
    text = fmt::format("<span class=\"no\">{}: does not fit</span>", text);
  return html + row_of("memory of a device, at most", text) + "</table>";
}

/// All, or as many as are drawn, evenly from the first to the last.
std::vector<std::size_t> drawn_stages(const Json& result) {
  const std::size_t count = result.at("stages").size();
  const std::size_t drawn = std::min(count, kMostDrawnStages);
  std::vector<std::size_t> stages;
  for (std::size_t i = 0; i < drawn; ++i)
    stages.push_back(drawn == count ? i : i * (count - 1) / (drawn - 1));
  return stages;
}

/// To a bit behind stage 0's first backward pass: until there the pipeline fills.
double detail_of(const Json& timeline) {
  for (const Json& row : timeline.at("passes")) {
    if (row.at(pass_column::stage) == 0 && row.at(pass_column::pass) == 1)
      return 1.5 * row.at(pass_column::end).get<double>();
  }
  return timeline.at("makespan_ns").get<double>();
}

std::string timeline_section(const Json& result, const std::vector<std::size_t>& stages) {
  const Json& timeline = result.at("timeline");
  const auto whole = timeline.at("makespan_ns").get<double>();
  const auto listed = timeline.at("listed_until_ns").get<double>();
  std::string html = "<h2>Stages over time</h2><p>" + gantt_key() + "</p>";
  if (listed < whole)
    html += fmt::format("<p class=\"no\">A step of so many passes is drawn until {} only.</p>",
                        time_text(timeline.at("listed_until_ns")));
  const auto add = [&](const GanttPicture& picture) {
    html += "<div class=\"wide\">" + gantt_svg(result, picture) + "</div>\n";
  };
  add({stages, 0, whole, false});
  const double detail = detail_of(timeline);
  if (detail < kMostDetail * whole) {
    html += "<h2>Its beginning</h2>";
    add({stages, 0, detail, true});
    if (listed >= whole) {
      html += "<h2>Its end</h2>";
      add({stages, whole - detail, whole, true});
    }
  }
  return html;
}

std::string parts_key(std::span<const ClusterPart> parts) {
  std::string html = "<p>";
  for (const ClusterPart& part : parts)
    html += fmt::format("<span class=\"key\" style=\"background:{}\"></span>{}", part.colour,
                        part.name);
  return html + "</p>";
}

/// A bar a stage, of parts that lie end to end; `most` is as wide as the picture.
class StackedBars {
public:
  StackedBars(std::span<const ClusterPart> parts, double most) : parts_(parts), most_(most) {}

  template <class Show>
  void add(std::size_t stage, const Json& values, const std::string& text, Show show) {
    bars_ += fmt::format("<text x=\"0\" y=\"{}\">stage {}</text>", y_ + 13, stage);
    double x = kLeft;
    for (const ClusterPart& part : parts_) {
      const Json& value = values.at(part.key);
      const double width = kWidth * value.template get<double>() / most_;
      if (width > 0)
        bars_ += fmt::format("<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" "
                             "fill=\"{}\"><title>{} {}</title></rect>",
                             x, y_, width, kRow - 4, part.colour, part.name, show(value));
      x += width;
    }
    bars_ += fmt::format("<text x=\"{:.1f}\" y=\"{}\">{}</text>\n", x + 6, y_ + 13, text);
    y_ += kRow;
  }
  /// A line across all bars.
  void mark(double value, const std::string& title) {
    bars_ += fmt::format("<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"0\" y2=\"{1}\" "
                         "stroke=\"#d00\"><title>{2}</title></line>",
                         kLeft + kWidth * value / most_, y_, title);
  }
  std::string svg() const {
    return fmt::format("<svg width=\"{}\" height=\"{}\" font-size=\"12\" role=\"img\">{}</svg>",
                       kLeft + kWidth + 110, y_ + 2, bars_);
  }

private:
  static constexpr double kLeft = 70, kWidth = 880, kRow = 20;
  std::span<const ClusterPart> parts_;
  double most_;
  double y_ = 2;
  std::string bars_;
};

std::string share_section(const Json& result, const std::vector<std::size_t>& stages) {
  const auto time = result.at("time_ns").get<std::int64_t>();
  StackedBars bars(kShares, std::max(1.0, static_cast<double>(time)));
  for (const std::size_t stage : stages)
    bars.add(stage, result.at("stages").at(stage).at("share"), "", [&](const Json& part) {
      return fmt::format("{}, {} %", time_text(part), share_percent(part, time));
    });
  return "<h2>Where the time goes</h2>" + parts_key(kShares) + bars.svg();
}

std::string memory_section(const Json& result, const std::vector<std::size_t>& stages) {
  const Json& memory = result.at("memory");
  const Json& limit = memory.at("limit_bytes");
  double most = std::max(1.0, memory.at("largest_bytes").get<double>());
  if (!limit.is_null())
    most = std::max(most, limit.get<double>());
  StackedBars bars(kOwners, most);
  for (const std::size_t stage : stages) {
    const Json& kept = result.at("stages").at(stage).at("memory");
    bars.add(stage, kept, bytes_text(kept.at("total_bytes")), bytes_text);
  }
  if (!limit.is_null())
    bars.mark(limit.get<double>(), "a device has " + bytes_text(limit));
  return "<h2>Memory of a device, by stage and owner</h2>" + parts_key(kOwners) + bars.svg();
}

std::string blocks_section(const Json& result) {
  std::string html =
      "<h2>Blocks</h2><p>Of one micro-batch on one device; collectives, host and offload are parts "
      "of the passes.</p><div class=\"wide\"><table><tr><th></th><th>count</th><th>forward</th>"
      "<th>backward input</th><th>backward weight</th><th>recompute</th><th>collectives</th>"
      "<th>host</th><th>offload</th><th>update</th><th>kernels</th><th>parameters</th><th>stored</"
      "th></tr>";
  for (const Json& block : result.at("blocks")) {
    html += fmt::format("<tr><td>{}</td><td>{}</td>", safe_text(block.at("name")),
                        block.at("count").get<std::int64_t>());
    for (const char* key : {"forward_ns", "backward_input_ns", "backward_weight_ns", "recompute_ns",
                            "collectives_ns", "host_ns", "offload_ns", "update_ns"})
      html += fmt::format("<td>{}</td>", time_text(block.at(key)));
    html += fmt::format("<td>{}</td><td>{}</td><td>{}</td></tr>\n",
                        group_digits(block.at("kernels").get<std::int64_t>()),
                        group_digits(block.at("parameters").get<std::int64_t>()),
                        bytes_text(block.at("stored_activations_bytes")));
  }
  return html + "</table></div>";
}

} // namespace

std::string cluster_html(const Json& result) {
  const std::string title = safe_text(result.at("name"));
  const std::vector<std::size_t> stages = drawn_stages(result);
  std::string html = fmt::format("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                                 "<title>{}</title><style>{}</style></head><body><h1>{}</h1>\n",
                                 title, kClusterStyle, title);
  html += summary_section(result);
  if (stages.size() < result.at("stages").size())
    html +=
        fmt::format("<p>{} of {} stages are drawn.</p>", stages.size(), result.at("stages").size());
  html += timeline_section(result, stages) + share_section(result, stages) +
          memory_section(result, stages) + blocks_section(result);
  return html + "</body></html>\n";
}

} // namespace monet
