// Draws the loss and accuracy curves of `monet train` as an SVG document.
#include "report/shared/text.hpp"
#include "report/shared/train_result.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace monet {

namespace {

constexpr double kWidth = 400, kHeight = 240;
constexpr double kLeft = 56, kTop = 64, kGap = 90, kBottom = 48;
constexpr std::size_t kMaxPoints = 200; ///< maximum per curve; longer runs are averaged
constexpr int kTicks = 4;
/// Colours that people with colour blindness can distinguish (Okabe and Ito).
constexpr std::array<const char*, 7> kColours{"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                              "#e69f00", "#56b4e9", "#000000"};

using Curve = std::vector<std::pair<double, double>>;

/// Loss curve: means over equal parts of the run; a mean that is not finite leaves a gap.
Curve losses(const RunHistory& history) {
  Curve curve;
  const std::size_t count = history.steps.size();
  const std::size_t width = (count + kMaxPoints - 1) / kMaxPoints;
  for (std::size_t first = 0; first < count; first += width) {
    const std::size_t last = std::min(first + width, count);
    double sum = 0;
    for (std::size_t i = first; i < last; ++i)
      sum += history.steps[i].loss;
    curve.emplace_back(static_cast<double>(first + last + 1) / 2,
                       sum / static_cast<double>(last - first));
  }
  return curve;
}

Curve accuracies(const RunHistory& history) {
  Curve curve;
  for (const TestRecord& test : history.tests)
    curve.emplace_back(static_cast<double>(test.step), 100 * test.accuracy);
  return curve;
}

struct Panel {
  std::string title;
  double left = 0;
  double max_x = 1, max_y = 1;                       ///< both axes begin at 0
  std::vector<std::pair<std::size_t, Curve>> curves; ///< with the variant's number

  void fit(double min_y) {
    max_y = min_y;
    for (const auto& [variant, curve] : curves) {
      for (const auto& [x, y] : curve) {
        max_x = std::max(max_x, x);
        if (std::isfinite(y))
          max_y = std::max(max_y, y);
      }
    }
  }

  std::string axes() const {
    std::string text = fmt::format("<text x=\"{}\" y=\"{}\" font-weight=\"bold\">{}</text>\n", left,
                                   kTop - 10, title);
    for (int i = 0; i <= kTicks; ++i) {
      const double share = static_cast<double>(i) / kTicks;
      const double y = kTop + kHeight * (1 - share);
      const double x = left + kWidth * share;
      text += fmt::format("<path d=\"M{} {}h{}\" stroke=\"#ddd\"/>"
                          "<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:.3g}</text>"
                          "<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:.4g}</text>\n",
                          left, y, kWidth, left - 6, y + 4, max_y * share, x, kTop + kHeight + 16,
                          max_x * share);
    }
    return text + fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">steps</text>\n",
                              left + kWidth / 2, kTop + kHeight + 34);
  }

  std::string lines() const {
    std::string text;
    for (const auto& [variant, curve] : curves) {
      std::string path;
      bool draws = false;
      for (const auto& [x, y] : curve) {
        const bool known = std::isfinite(y);
        if (known)
          path += fmt::format("{}{:.1f} {:.1f}", draws ? "L" : "M", left + kWidth * x / max_x,
                              kTop + kHeight * (1 - y / max_y));
        draws = known;
      }
      text += fmt::format(
          "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\" opacity=\"0.8\"/>\n",
          path, kColours.at(variant % kColours.size()));
    }
    return text;
  }
};

} // namespace

std::string curves_svg(const std::string& name, std::span<const TrainedVariant> variants) {
  Panel loss{"loss of the steps", kLeft, 1, 1, {}};
  Panel accuracy{"accuracy of the tests, %", kLeft + kWidth + kGap, 1, 1, {}};
  std::string legend;
  double at = kLeft;
  for (std::size_t v = 0; v < variants.size(); ++v) {
    for (const TrainedRun& run : variants[v].runs) {
      loss.curves.emplace_back(v, losses(run.history));
      accuracy.curves.emplace_back(v, accuracies(run.history));
    }
    const std::string& label = variants[v].setup->recipe->name;
    legend += fmt::format("<text x=\"{}\" y=\"40\" fill=\"{}\">{}</text>\n", at,
                          kColours.at(v % kColours.size()), html_escaped(printable(label)));
    at += 20 + 7 * static_cast<double>(label.size());
  }
  loss.fit(1e-3);
  accuracy.fit(100);
  loss.max_x = accuracy.max_x = std::max(loss.max_x, accuracy.max_x);
  const double width = std::max(accuracy.left + kWidth + 30, at);
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" "
      "fill=\"#fff\"/>\n<text x=\"{2}\" y=\"22\" font-size=\"15\" "
      "font-weight=\"bold\">{3}</text>\n",
      width, kTop + kHeight + kBottom, kLeft, html_escaped(printable(name)));
  for (const Panel& panel : {loss, accuracy})
    text += panel.axes() + panel.lines();
  return text + legend + "</svg>\n";
}

} // namespace monet
