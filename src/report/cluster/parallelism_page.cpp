// The page of a plan: what was found, as time against memory.
#include "report/cluster/cluster_text.hpp"

#include "monet/base/text.hpp"
#include "monet/report/parallelism_result.hpp"
#include "monet/report/text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace monet {

namespace {

using Json = nlohmann::ordered_json;
using namespace cluster_text;

std::string safe(const Json& text) {
  return html_escaped(printable(text.get<std::string>()));
}

std::string head_section(const Json& result) {
  const Json& best = result.at("best_strategy");
  const auto row = [](const std::string& label, const std::string& text) {
    return fmt::format("<tr><td>{}</td><td>{}</td></tr>", label, text);
  };
  std::string html =
      "<table>" +
      row("devices", fmt::format("{} of {}", group_digits(result.at("devices").get<std::int64_t>()),
                                 safe(result.at("cluster")))) +
      row("best strategy", fmt::format("<a href=\"best/report.html\">{}</a>",
                                       safe(best.at("strategy").at("text")))) +
      row("time of a step", human_nanoseconds(best.at("time_ns").get<std::int64_t>()));
  if (!best.at("tokens_per_second").is_null())
    html += row("tokens a second", human_rate(best.at("tokens_per_second").get<double>()));
  html +=
      row("memory of a device, at most", human_bytes(best.at("memory_bytes").get<std::int64_t>()));
  if (!best.at("energy_pj").is_null())
    html += row("energy", human_energy(best.at("energy_pj").get<double>()));
  const Json& gap = result.at("gap");
  return html +
         row("gap to the bound",
             gap.is_null() ? "unknown" : fmt::format("{:.2f} %", 100 * gap.get<double>())) +
         "</table>";
}

/// Times to the right, bytes upward, both from nought.
class Scatter {
public:
  Scatter(double most_time, double most_bytes) : time_(most_time), bytes_(most_bytes) {
    svg_ = fmt::format("<line x1=\"{0}\" y1=\"{1}\" x2=\"{2}\" y2=\"{1}\" stroke=\"#888\"/>"
                       "<line x1=\"{0}\" y1=\"0\" x2=\"{0}\" y2=\"{1}\" stroke=\"#888\"/>"
                       "<text x=\"{2}\" y=\"{3}\" text-anchor=\"end\">time of a step, to {4}</text>"
                       "<text x=\"{5}\" y=\"12\">memory of a device, to {6}</text>\n",
                       kLeft, kHigh, kLeft + kWide, kHigh + 16,
                       human_nanoseconds(static_cast<std::int64_t>(most_time)), kLeft + 6,
                       human_bytes(static_cast<std::int64_t>(most_bytes)));
  }
  void add(const Json& row, const char* colour, double radius) {
    svg_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\" "
                        "fill-opacity=\"0.75\"><title>{}: {}, {}</title></circle>\n",
                        kLeft + kWide * row.at("time_ns").get<double>() / time_,
                        y(row.at("memory_bytes").get<double>()), radius, colour,
                        safe(row.at("strategy").at("text")),
                        human_nanoseconds(row.at("time_ns").get<std::int64_t>()),
                        human_bytes(row.at("memory_bytes").get<std::int64_t>()));
  }
  void limit(double bytes) {
    svg_ +=
        fmt::format("<line x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" "
                    "stroke=\"#d00\"><title>a device has {3}</title></line>\n",
                    kLeft, kLeft + kWide, y(bytes), human_bytes(static_cast<std::int64_t>(bytes)));
  }
  std::string svg() const {
    return fmt::format("<svg width=\"{}\" height=\"{}\" font-size=\"12\" role=\"img\">{}</svg>",
                       kLeft + kWide + 20, kHigh + 22, svg_);
  }

private:
  double y(double bytes) const { return kHigh - (kHigh - 24) * bytes / bytes_; }

  static constexpr double kLeft = 20, kWide = 900, kHigh = 320;
  double time_, bytes_;
  std::string svg_;
};

std::string scatter_section(const Json& result) {
  double time = 1;
  double bytes = 1;
  for (const char* key : {"front", "runners_up"}) {
    for (const Json& row : result.at(key)) {
      time = std::max(time, row.at("time_ns").get<double>());
      bytes = std::max(bytes, row.at("memory_bytes").get<double>());
    }
  }
  const Json& best = result.at("best_strategy");
  time = std::max(time, best.at("time_ns").get<double>());
  bytes = std::max(bytes, best.at("memory_bytes").get<double>());
  const Json& limit = result.at("memory_limit_bytes");
  if (!limit.is_null())
    bytes = std::max(bytes, limit.get<double>());
  Scatter scatter(1.02 * time, 1.02 * bytes);
  for (const Json& row : result.at("runners_up"))
    scatter.add(row, "#999999", 4);
  for (const Json& row : result.at("front"))
    scatter.add(row, "#0072b2", 5);
  scatter.add(best, "#d55e00", 6);
  if (!limit.is_null())
    scatter.limit(limit.get<double>());
  return "<h2>Time and memory</h2><p><span class=\"key\" style=\"background:#d55e00\"></span>best"
         "<span class=\"key\" style=\"background:#0072b2\"></span>no other is better in all"
         "<span class=\"key\" style=\"background:#999999\"></span>next best</p><div "
         "class=\"wide\">" +
         scatter.svg() + "</div>";
}

std::string counts_section(const Json& result) {
  const Json& counts = result.at("strategies");
  std::string html = "<h2>What became of the strategies</h2><table>";
  for (const auto& [key, label] : {std::pair{"all", "all"}, std::pair{"modelled", "modelled"},
                                   std::pair{"modelled_too_large", "modelled, and too large"},
                                   std::pair{"beaten_by_bound", "no better by their bounds"},
                                   std::pair{"too_large_by_bound", "too large by their bounds"},
                                   std::pair{"impossible", "cannot divide the network"},
                                   std::pair{"left", "not looked at: the search was ended"}})
    html += fmt::format("<tr><td>{}</td><td>{}</td></tr>", label,
                        group_digits(counts.at(key).get<std::int64_t>()));
  return html + "</table>";
}

std::string list_section(const Json& list, const char* title) {
  if (list.empty())
    return {};
  std::string html = fmt::format("<h2>{}</h2><div class=\"wide\"><table><tr><th></th><th>time</th>"
                                 "<th>memory</th><th>energy</th></tr>",
                                 title);
  for (const Json& row : list)
    html += fmt::format(
        "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
        safe(row.at("strategy").at("text")),
        human_nanoseconds(row.at("time_ns").get<std::int64_t>()),
        human_bytes(row.at("memory_bytes").get<std::int64_t>()),
        row.at("energy_pj").is_null() ? "-" : human_energy(row.at("energy_pj").get<double>()));
  return html + "</table></div>";
}

} // namespace

std::string parallelism_html(const Json& result) {
  const std::string title = safe(result.at("name"));
  return fmt::format("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                     "<title>{}</title><style>{}</style></head><body><h1>{}</h1>\n",
                     title, kClusterStyle, title) +
         head_section(result) + scatter_section(result) + counts_section(result) +
         list_section(result.at("front"), "No other is better in all of these") +
         list_section(result.at("runners_up"), "Next best of those modelled") + "</body></html>\n";
}

} // namespace monet
