#include "report/hand_made_step.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace monet::test {
namespace MONET_TEST_FILE {

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    ++found;
  return found;
}

std::string data_of(const std::string& html) {
  const std::string open = "<script type=\"application/json\" id=\"monet-data\">";
  const std::size_t begin = html.find(open) + open.size();
  return html.substr(begin, html.find("</script>", begin) - begin);
}

TEST(ReportHtml, CarriesTheWholeResult) {
  const auto json = hand_made_step().json();
  const std::string html = report_html(json);
  EXPECT_EQ(nlohmann::ordered_json::parse(data_of(html)), json);
  EXPECT_EQ(html.find("<!--MONET_"), std::string::npos);
  EXPECT_NE(html.find("<style>"), std::string::npos);
  EXPECT_NE(html.find("by hand\n</title>"), std::string::npos);
}

TEST(ReportHtml, NeedsNothingFromElsewhere) {
  const std::string html = report_html(hand_made_step().json());
  for (const char* reference : {"src=\"", "href=\"http", "@import", "url(http"}) {
    EXPECT_EQ(html.find(reference), std::string::npos) << reference;
  }
}

TEST(ReportHtml, HostileNamesAddNoMarkup) {
  const std::string plain = report_html(hand_made_step().json());
  const std::string name = "</title></script><img src=x onerror=alert(1)><!--MONET_SCRIPT-->";
  const std::string html = report_html(hand_made_step(name).json(name));
  for (const char* markup : {"<script", "</script", "<img", "</title", "<!--"}) {
    EXPECT_EQ(count(html, markup), count(plain, markup)) << markup;
  }
  EXPECT_EQ(nlohmann::json::parse(data_of(html)).at("layers").at(0).at("name"), name);
}

} // namespace MONET_TEST_FILE
} // namespace monet::test
