// The page of a study: tables and bars, without scripts.
#include "monet/base/text.hpp"
#include "monet/report/backward_study_result.hpp"
#include "monet/report/text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>

namespace monet {

namespace {

using Json = nlohmann::ordered_json;

/// Colours that people with colour-blindness tell apart (Okabe and Ito).
constexpr const char* kPaperColour = "#999999";
constexpr const char* kOursColour = "#0072b2";
constexpr const char* kRangeColour = "#d55e00";
struct TensorColour {
  const char* key;
  const char* name;
  const char* colour;
};
constexpr std::array<TensorColour, 5> kTensorColours{{{"dy", "dY", "#d55e00"},
                                                      {"w", "W", "#0072b2"},
                                                      {"x", "X", "#56b4e9"},
                                                      {"dx", "dX", "#009e73"},
                                                      {"dw", "dW", "#cc79a7"}}};

constexpr const char* kStudyStyle =
    "body{font:15px/1.45 system-ui,sans-serif;max-width:1100px;margin:2em auto;padding:0 1em;"
    "color:#222;background:#fff}h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em}"
    "table{border-collapse:collapse;margin:.6em 0}td,th{padding:.2em .7em;text-align:right;"
    "border-bottom:1px solid #ddd}td:first-child,th:first-child{text-align:left}"
    "svg{display:block}.yes{color:#00714f}.no{color:#b34700;font-weight:bold}"
    "details{margin:.5em 0}.key{display:inline-block;width:.8em;height:.8em;margin:0 .3em 0 1em}"
    "@media(prefers-color-scheme:dark){body{background:#15181c;color:#ddd}td,th{border-color:#444}"
    ".yes{color:#4cc9a0}.no{color:#ff9a5a}svg text{fill:#ddd}}";

std::string safe(const Json& text) {
  return html_escaped(printable(text.get<std::string>()));
}

std::string shown(const Json& number, bool is_factor) {
  if (number.is_null())
    return "–";
  return is_factor ? fmt::format("{:.2f}×", number.get<double>())
                   : fmt::format("{:.1f}", number.get<double>());
}

std::string key(const char* colour, const char* name) {
  return fmt::format("<span class=\"key\" style=\"background:{}\"></span>{}", colour, name);
}

std::string rect(double x, double y, double width, double height, const char* colour,
                 const std::string& title) {
  return fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
                     "fill=\"{}\"><title>{}</title></rect>",
                     x, y, std::max(0.0, width), height, colour, title);
}

/// The paper's bar, ours, and the range of ours, from `least` to `most` on 360 pixels.
std::string figure_bars(const Json& figure, double least, double most) {
  constexpr double kWidth = 360;
  constexpr double kHeight = 26;
  const bool is_factor = figure.at("unit") == "factor";
  const auto at = [&](double value) { return kWidth * (value - least) / (most - least); };
  std::string svg = fmt::format("<svg width=\"{}\" height=\"{}\" role=\"img\">", kWidth, kHeight);
  const auto bar = [&](const char* which, double y, const char* colour) {
    const Json& number = figure.at(which);
    if (number.is_null())
      return;
    const double zero = at(0);
    const double end = at(number.get<double>());
    svg += rect(std::min(zero, end), y, std::abs(end - zero), 9, colour,
                fmt::format("{}: {}", which, shown(number, is_factor)));
  };
  bar("paper", 2, kPaperColour);
  bar("ours", 13, kOursColour);
  if (!figure.at("lowest").is_null() && !figure.at("highest").is_null()) {
    const double from = at(figure.at("lowest").get<double>());
    const double to = at(figure.at("highest").get<double>());
    svg += rect(from, 16.5, std::max(1.0, to - from), 2, kRangeColour,
                fmt::format("{} to {}", shown(figure.at("lowest"), is_factor),
                            shown(figure.at("highest"), is_factor)));
  }
  return svg + "</svg>";
}

/// Of all figures of a unit, 0 included.
std::pair<double, double> extent_of(const Json& study, const std::string& unit) {
  double least = 0;
  double most = 1;
  for (const Json& figure : study.at("figures")) {
    if (figure.at("unit") != unit)
      continue;
    for (const char* which : {"paper", "ours", "lowest", "highest"}) {
      if (figure.at(which).is_null())
        continue;
      least = std::min(least, figure.at(which).get<double>());
      most = std::max(most, figure.at(which).get<double>());
    }
  }
  return {least, most};
}

std::string figures_section(const Json& study) {
  std::string html =
      "<h2>The paper’s figures and ours</h2><p>Reductions of the time of forward and backward pass "
      "in percent, averages over the networks; shares in percent." +
      key(kPaperColour, "paper") + key(kOursColour, "ours") +
      key(kRangeColour, "ours with every other assumption") +
      "</p><table><tr><th></th><th>paper</th><th>ours</th><th>lowest</th><th>highest</th>"
      "<th></th></tr>";
  for (const Json& figure : study.at("figures")) {
    const bool is_factor = figure.at("unit") == "factor";
    const auto [least, most] = extent_of(study, figure.at("unit").get<std::string>());
    html += fmt::format("<tr><td>{}</td>", safe(figure.at("text")));
    for (const char* which : {"paper", "ours", "lowest", "highest"})
      html += fmt::format("<td>{}</td>", shown(figure.at(which), is_factor));
    html += fmt::format("<td>{}</td></tr>\n", figure_bars(figure, least, most));
  }
  return html + "</table>";
}

std::string statements_section(const Json& study) {
  std::string html = "<h2>What the paper finds</h2><table>";
  for (const Json& one : study.at("statements")) {
    const Json& holds = one.at("holds");
    const char* word = holds.is_null() ? "unknown" : holds.get<bool>() ? "yes" : "no";
    html += fmt::format("<tr><td>{}</td><td class=\"{}\">{}</td></tr>", safe(one.at("text")), word,
                        word);
  }
  return html + "</table>";
}

std::string assumptions_section(const Json& study) {
  std::string html = "<h2>What the paper leaves open</h2><table><tr><th></th><th>here</th>"
                     "<th>tried besides</th></tr>";
  for (const Json& one : study.at("ambiguities")) {
    std::string others;
    for (const Json& other : one.at("others"))
      others += (others.empty() ? "" : "; ") + safe(other);
    html += fmt::format("<tr><td>({}) {}</td><td>{}</td><td>{}</td></tr>", safe(one.at("letter")),
                        safe(one.at("what")), safe(one.at("ours")), others);
  }
  html += "</table><details><summary>Every figure with every assumption</summary><table><tr><th>"
          "</th><th>ours</th>";
  const Json& figures = study.at("figures");
  if (!figures.empty()) {
    for (const Json& one : figures.at(0).at("assumptions"))
      html += fmt::format("<th>({}) {}</th>", safe(one.at("ambiguity")), safe(one.at("says")));
  }
  html += "</tr>";
  for (const Json& figure : figures) {
    const bool is_factor = figure.at("unit") == "factor";
    html += fmt::format("<tr><td>{}</td><td>{}</td>", safe(figure.at("text")),
                        shown(figure.at("ours"), is_factor));
    for (const Json& one : figure.at("assumptions"))
      html += fmt::format("<td>{}</td>", shown(one.at("value"), is_factor));
    html += "</tr>\n";
  }
  return html + "</table></details>";
}

std::string network_table(const Json& study) {
  std::string html = "<h2>Network by network</h2><table><tr><th></th><th>NPU</th>"
                     "<th>interleave</th><th>algorithm-1</th><th>best of three</th>"
                     "<th>with partition</th><th>best sequential</th><th>joint</th></tr>";
  for (const Json& network : study.at("networks")) {
    html += fmt::format("<tr><td>{}</td><td>{}</td>", safe(network.at("name")),
                        safe(network.at("machine")));
    const Json& techniques = network.at("techniques");
    const auto cell = [&](const Json& number) {
      html += fmt::format("<td>{}</td>", shown(number, false));
    };
    for (const char* name : {"interleave", "algorithm-1", "best-of-three"})
      cell(techniques.at(name).at("reduction_percent"));
    cell(network.at("partition").at("reduction_percent"));
    for (const char* name : {"best-sequential", "joint"})
      cell(techniques.contains(name) ? techniques.at(name).at("reduction_percent") : Json(nullptr));
    html += "</tr>\n";
  }
  return html + "</table>";
}

/// Bytes of the five tensors by technique, the longest bar of the network as wide as the picture.
std::string bytes_picture(const Json& network) {
  constexpr double kLeft = 130;
  constexpr double kWidth = 560;
  constexpr double kRow = 20;
  const Json& techniques = network.at("techniques");
  double most = 1;
  for (const auto& [name, technique] : techniques.items())
    most = std::max(most, technique.at("dram_bytes").get<double>());
  std::string svg =
      fmt::format("<svg width=\"{}\" height=\"{}\" font-size=\"12\" role=\"img\">",
                  kLeft + kWidth + 90, kRow * static_cast<double>(techniques.size()) + 4);
  double y = 2;
  for (const auto& [name, technique] : techniques.items()) {
    svg += fmt::format("<text x=\"0\" y=\"{}\">{}</text>", y + 13, html_escaped(name));
    double x = kLeft;
    for (const TensorColour& tensor : kTensorColours) {
      const Json& bytes = technique.at("tensor_bytes").at(tensor.key);
      const double width = kWidth * bytes.get<double>() / most;
      svg += rect(x, y, width, kRow - 4, tensor.colour,
                  fmt::format("{} {}", tensor.name, human_bytes(bytes.get<std::int64_t>())));
      x += width;
    }
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\">{}</text>", x + 6, y + 13,
                       human_bytes(technique.at("dram_bytes").get<std::int64_t>()));
    y += kRow;
  }
  return svg + "</svg>";
}

std::string bytes_section(const Json& study) {
  std::string html = "<h2>What crosses between chip and DRAM in the backward pass</h2><p>";
  for (const TensorColour& tensor : kTensorColours)
    html += key(tensor.colour, tensor.name);
  html += "</p>";
  for (const Json& network : study.at("networks")) {
    html +=
        fmt::format("<details><summary>{}, {} NPU</summary>{}</details>\n",
                    safe(network.at("name")), safe(network.at("machine")), bytes_picture(network));
  }
  return html;
}

} // namespace

std::string backward_study_html(const Json& study) {
  const std::string title = safe(study.at("name"));
  std::string html = fmt::format("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                                 "<title>{}</title><style>{}</style></head><body><h1>{}</h1>\n",
                                 title, kStudyStyle, title);
  html += "<p>Kim, Na, Lee, Lee, Huh, “Improving Data Reuse in NPU On-chip Memory with Interleaved "
          "Gradient Order for DNN Training”, MICRO 2023.</p>";
  for (const Json& one : study.at("infeasible"))
    html += fmt::format("<p class=\"no\">Infeasible on the {} NPU: {}</p>", safe(one.at("machine")),
                        safe(one.at("why")));
  html += figures_section(study) + statements_section(study) + network_table(study) +
          bytes_section(study) + assumptions_section(study);
  return html + "</body></html>\n";
}

} // namespace monet
