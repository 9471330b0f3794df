// Builds report.html: the embedded viewer (page.hpp) with the JSON of a result inserted.
#include "report/page.hpp"
#include "report/shared/text.hpp"

#include "monet/base/errors.hpp"
#include "monet/report/result.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <array>

namespace monet {

std::string report_html(const nlohmann::ordered_json& result) {
  const std::string title =
      html_escaped(printable(result.at("name").get_ref<const std::string&>()));
  const std::string data =
      "<script type=\"application/json\" id=\"monet-data\">" + script_json(result) + "</script>";
  const std::string style = fmt::format("<style>{}</style>", page::kStyle);
  const std::string script = fmt::format("<script>{}</script>", page::kScript);
  const std::array<std::pair<std::string_view, const std::string*>, 4> parts{
      {{"<!--MONET_TITLE-->", &title},
       {"<!--MONET_STYLE-->", &style},
       {"<!--MONET_DATA-->", &data},
       {"<!--MONET_SCRIPT-->", &script}}};

  // Placeholders are replaced in one pass in the template's order, so that data that look like a
  // placeholder are not replaced.
  std::string html;
  html.reserve(page::kTemplate.size() + data.size() + style.size() + script.size());
  std::string_view rest = page::kTemplate;
  for (const auto& [placeholder, text] : parts) {
    const std::size_t at = rest.find(placeholder);
    internal_check(at != std::string_view::npos, "the page's template lacks a placeholder");
    html += rest.substr(0, at);
    html += *text;
    rest.remove_prefix(at + placeholder.size());
  }
  html += rest;
  return html;
}

} // namespace monet
