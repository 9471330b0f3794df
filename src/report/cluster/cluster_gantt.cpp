#include "report/cluster/cluster_gantt.hpp"

#include "report/cluster/cluster_text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

namespace monet {

namespace {

using Json = nlohmann::ordered_json;
using namespace cluster_text;

constexpr double kGanttLeft = 70, kGanttWidth = 1000, kGanttRow = 22, kGanttTop = 4;
constexpr double kMostRects = 20'000;    ///< of a picture, about
constexpr std::size_t kMostLines = 2000; ///< for sends
constexpr int kGanttTicks = 5;

/// By pass, then gradients and update.
constexpr std::array<ClusterPart, 5> kBars{{{"F", "forward", "#0072b2"},
                                            {"B", "backward", "#e69f00"},
                                            {"W", "weight gradient", "#009e73"},
                                            {"", "gradients", "#f0e442"},
                                            {"", "update", "#444444"}}};
constexpr std::size_t kGradientsBar = 3, kUpdateBar = 4;

struct GanttBar {
  double start = 0, end = 0;
  std::size_t kind = 0;    ///< of kBars
  double opacity = 1;      ///< by chunk
  std::string name, label; ///< the label stands in it where there is room
};

class GanttDrawing {
public:
  GanttDrawing(const Json& result, const GanttPicture& picture)
      : result_(result), picture_(picture), chunks_(chunks_of(timeline().at("passes"))),
        pixels_per_ns_(kGanttWidth / std::max(1.0, picture.to_ns - picture.from_ns)),
        least_pixels_(
            std::max(0.4, kGanttWidth * static_cast<double>(picture.stages.size()) / kMostRects)),
        rows_(timeline().at("stages").size()) {
    for (std::size_t i = 0; i < picture.stages.size(); ++i)
      rows_.at(picture.stages[i]) = i;
  }

  std::string draw() {
    const double height = kGanttTop + kGanttRow * static_cast<double>(picture_.stages.size()) + 18;
    svg_ = fmt::format("<svg width=\"{}\" height=\"{}\" font-size=\"11\" role=\"img\">",
                       kGanttLeft + kGanttWidth + 60, height);
    add_axis(height);
    std::vector<std::vector<GanttBar>> bars(picture_.stages.size());
    for (const Json& row : timeline().at("passes")) {
      if (const auto at = rows_.at(row.at(pass_column::stage).get<std::size_t>()))
        bars[*at].push_back(pass_bar(row));
    }
    for (std::size_t i = 0; i < bars.size(); ++i) {
      add_tail(bars[i], picture_.stages[i]);
      svg_ +=
          fmt::format("<text x=\"0\" y=\"{}\">stage {}</text>", top_of(i) + 14, picture_.stages[i]);
      add_row(bars[i], top_of(i));
      svg_ += '\n';
    }
    if (picture_.with_sends)
      add_sends();
    return svg_ + "</svg>";
  }

private:
  const Json& timeline() const { return result_.at("timeline"); }
  static double top_of(std::size_t row) { return kGanttTop + kGanttRow * static_cast<double>(row); }
  double x_of(double time) const {
    return kGanttLeft + std::clamp((time - picture_.from_ns) * pixels_per_ns_, 0.0, kGanttWidth);
  }

  void add_axis(double height) {
    for (int i = 0; i <= kGanttTicks; ++i) {
      const double time = picture_.from_ns + (picture_.to_ns - picture_.from_ns) * i / kGanttTicks;
      svg_ += fmt::format("<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"0\" y2=\"{1}\" "
                          "stroke=\"#8888\"/><text x=\"{2:.1f}\" y=\"{3}\">{4}</text>",
                          x_of(time), height - 14, x_of(time) + 3, height - 3,
                          human_nanoseconds(std::llround(time)));
    }
    svg_ += '\n';
  }

  GanttBar pass_bar(const Json& row) const {
    GanttBar bar;
    bar.start = row.at(pass_column::start).get<double>();
    bar.end = row.at(pass_column::end).get<double>();
    bar.kind = row.at(pass_column::pass).get<std::size_t>();
    bar.opacity = 1 - 0.5 * row.at(pass_column::chunk).get<double>() / static_cast<double>(chunks_);
    bar.name = pass_name(row, chunks_);
    bar.label = std::to_string(row.at(pass_column::micro_batch).get<std::int64_t>());
    return bar;
  }

  void add_tail(std::vector<GanttBar>& bars, std::size_t stage) const {
    const Json& times = timeline().at("stages").at(stage);
    const Json& share = result_.at("stages").at(stage).at("share");
    const auto end = times.at("end_ns").get<double>();
    const auto finish = times.at("finish_ns").get<double>();
    const double update = finish - share.at("update_ns").get<double>();
    const double gradients = std::min(update, end + share.at("gradients_ns").get<double>());
    if (gradients > end)
      bars.push_back({end, gradients, kGradientsBar, 1, "gradients", ""});
    if (finish > update)
      bars.push_back({update, finish, kUpdateBar, 1, "update", ""});
  }

  /// Bars in their order; neighbours that are too narrow alone become one group.
  void add_row(const std::vector<GanttBar>& bars, double y) {
    std::vector<const GanttBar*> group;
    const auto flush = [&] {
      add_group(group, y);
      group.clear();
    };
    for (const GanttBar& bar : bars) {
      if (bar.end <= picture_.from_ns || bar.start >= picture_.to_ns)
        continue;
      const bool is_wide = (bar.end - bar.start) * pixels_per_ns_ >= least_pixels_;
      if (is_wide)
        flush();
      group.push_back(&bar);
      if (is_wide || (bar.end - group.front()->start) * pixels_per_ns_ >= least_pixels_)
        flush();
    }
    flush();
  }

  void add_group(const std::vector<const GanttBar*>& group, double y) {
    if (group.empty())
      return;
    if (group.size() == 1)
      return add_bar(*group.front(), y);
    std::array<double, kBars.size()> times{};
    for (const GanttBar* bar : group)
      times.at(bar->kind) += bar->end - bar->start;
    GanttBar part;
    part.name =
        fmt::format("{} passes, {} to {}", group.size(), group.front()->name, group.back()->name);
    part.end = group.front()->start;
    for (part.kind = 0; part.kind < kBars.size(); ++part.kind) {
      part.start = part.end;
      part.end += times[part.kind];
      if (part.end > part.start)
        add_bar(part, y);
    }
  }

  void add_bar(const GanttBar& bar, double y) {
    const double left = x_of(bar.start);
    const double width = x_of(bar.end) - left;
    svg_ += fmt::format("<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\" "
                        "opacity=\"{:.2f}\"><title>{}: {} from {}</title></rect>",
                        left, y, width, kGanttRow - 4, kBars.at(bar.kind).colour, bar.opacity,
                        bar.name, human_nanoseconds(std::llround(bar.end - bar.start)),
                        human_nanoseconds(std::llround(bar.start)));
    if (!bar.label.empty() && width > 6 + 7 * static_cast<double>(bar.label.size()))
      svg_ += fmt::format("<text class=\"in\" x=\"{:.1f}\" y=\"{}\">{}</text>", left + 3, y + 13,
                          bar.label);
  }

  void add_sends() {
    std::string lines;
    std::size_t count = 0;
    for (const Json& row : timeline().at("sends")) {
      const auto from = rows_.at(row.at(send_column::from).get<std::size_t>());
      const auto to = rows_.at(row.at(send_column::to).get<std::size_t>());
      const auto start = row.at(send_column::start).get<double>();
      const auto end = row.at(send_column::end).get<double>();
      if (!from || !to || start < picture_.from_ns || end > picture_.to_ns)
        continue;
      ++count;
      lines += fmt::format("<line x1=\"{:.1f}\" y1=\"{}\" x2=\"{:.1f}\" y2=\"{}\" class=\"send\"/>",
                           x_of(start), top_of(*from) + 9, x_of(end), top_of(*to) + 9);
    }
    if (count <= kMostLines)
      svg_ += lines;
  }

  const Json& result_;
  const GanttPicture& picture_;
  std::int64_t chunks_;
  double pixels_per_ns_;
  double least_pixels_;                          ///< of a bar of its own
  std::vector<std::optional<std::size_t>> rows_; ///< of each stage that is drawn
  std::string svg_;
};

} // namespace

std::string gantt_svg(const Json& result, const GanttPicture& picture) {
  return GanttDrawing(result, picture).draw();
}

std::string gantt_key() {
  std::string html;
  for (const ClusterPart& bar : kBars)
    html +=
        fmt::format("<span class=\"key\" style=\"background:{}\"></span>{}", bar.colour, bar.name);
  return html;
}

} // namespace monet
