#include "report/shared/text.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <rapidcheck/gtest.h>

namespace monet {
namespace {

constexpr const char* kReplaced = "\xEF\xBF\xBD";

TEST(ValidUtf8, KeepsWhatIsWellFormed) {
  for (const char* text : {"", "plain", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80",
                           "\xED\x9F\xBF", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_EQ(valid_utf8(text), text);
  }
}

TEST(ValidUtf8, ReplacesWhatIsNot) {
  EXPECT_EQ(valid_utf8("a\xFFz"), std::string("a") + kReplaced + "z");
  EXPECT_EQ(valid_utf8("\xC3"), kReplaced); // cut short
  // Overlong '/', a surrogate, and one past U+10FFFF: each byte is a bad sequence of its own.
  EXPECT_EQ(valid_utf8("\xC0\xAF"), std::string(kReplaced) + kReplaced);
  EXPECT_EQ(valid_utf8("\xED\xA0\x80"), std::string(kReplaced) + kReplaced + kReplaced);
  EXPECT_EQ(valid_utf8("\xF4\x90\x80\x80").size(), 12U);
}

TEST(Printable, RemovesControlCharacters) {
  EXPECT_EQ(printable("a\x1B[31m\tb\x7F"),
            std::string("a") + kReplaced + "[31m" + kReplaced + "b" + kReplaced);
  EXPECT_EQ(printable("\xC2\x9B"), kReplaced); // U+009B, the one-character form of ESC [
  EXPECT_EQ(printable("a\nb"), std::string("a") + kReplaced + "b");
  EXPECT_EQ(printable("a\nb", true), "a\nb");
}

TEST(Printable, RemovesWhatCannotBeSeenOrTurnsTheText) {
  for (const char* hidden : {"\xE2\x80\xAE", "\xE2\x81\xA6", "\xE2\x80\x8B", "\xE2\x80\xA8",
                             "\xD8\x9C", "\xEF\xBB\xBF", "\xF3\xA0\x80\x81"})
    EXPECT_EQ(printable(hidden), kReplaced);
  const std::string seen =
      "\xD7\xA9\xD7\x9C \xE5\xBC\xA0 e\xCC\x81 \xF0\x9F\x98\x80"; // Hebrew, Han, a mark, a face
  EXPECT_EQ(printable(seen), seen);
}

TEST(Clipped, KeepsBothEnds) {
  EXPECT_EQ(clipped("abcdefg", 7), "abcdefg");
  EXPECT_EQ(clipped("abcdefgh", 7), "ab..fgh");
  // Three wide characters and a narrow one, and marks that take no column.
  EXPECT_EQ(terminal_columns("\xE5\xBC\xA0\xE5\xBC\xA0\xE5\xBC\xA0z"), 7U);
  EXPECT_EQ(terminal_columns("e\xCC\x81"), 1U);
  EXPECT_EQ(clipped("\xE5\xBC\xA0\xE5\xBC\xA0\xE5\xBC\xA0yz", 7), "\xE5\xBC\xA0..yz");
}

RC_GTEST_PROP(Clipped, IsPrintableAndFits, (std::string bytes)) {
  const std::string text = clipped(printable(bytes), 7);
  RC_ASSERT(terminal_columns(text) <= 7);
  RC_ASSERT(printable(text) == text);
}

TEST(HtmlEscaped, LeavesNoMarkup) {
  EXPECT_EQ(html_escaped("<a href=\"x\">&'"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;");
}

TEST(ScriptJson, EscapesWhatCouldEndTheScript) {
  const nlohmann::ordered_json value = {"</script>&\xE2\x80\xA8\xE2\x80\xA9\xE2\x82\xAC"};
  EXPECT_EQ(script_json(value), "[\"\\u003c/script\\u003e\\u0026\\u2028\\u2029\xE2\x82\xAC\"]");
}

// JSON that a browser would read back is the same whatever bytes a name has.
RC_GTEST_PROP(ScriptJson, ReadsBackTheSame, (std::string bytes)) {
  const nlohmann::ordered_json value = {valid_utf8(bytes)};
  const std::string text = script_json(value);
  RC_ASSERT(text.find_first_of("<>&") == std::string::npos);
  RC_ASSERT(nlohmann::ordered_json::parse(text) == value);
}

RC_GTEST_PROP(ValidUtf8, IsWhatTheJsonLibraryAccepts, (std::string bytes)) {
  const nlohmann::json value = valid_utf8(bytes);
  value.dump(); // throws on ill-formed UTF-8
  RC_ASSERT(valid_utf8(value.get<std::string>()) == value.get<std::string>());
}

TEST(JsonText, DoublesReadBackTheSame) {
  const nlohmann::ordered_json value = {0.1, 1.0 / 3.0, 1e300, 550.25};
  EXPECT_EQ(json_text(value), "[0.1,0.3333333333333333,1e+300,550.25]");
}

TEST(AlignedTable, AlignsByCodePointsAndTrimsLines) {
  EXPECT_EQ(aligned_table({{"name", "n"}, {"\xC3\xA9t\xC3\xA9", "12"}, {"longer", ""}}),
            "name     n\n----------\n\xC3\xA9t\xC3\xA9     12\nlonger\n");
  EXPECT_EQ(aligned_table({{"name", "n"}, {"a\nb\x1B", "12"}, {"\xE5\xBC\xA0", "1"}}),
            "name   n\n--------\na\xEF\xBF\xBD"
            "b\xEF\xBF\xBD  12\n\xE5\xBC\xA0     1\n");
  const std::string wide = aligned_table({{std::string(5000, 'x'), "n"}});
  EXPECT_EQ(wide.substr(0, 104), std::string(49, 'x') + ".." + std::string(49, 'x') + "  n\n");
}

TEST(HumanEnergy, ChoosesThePrefix) {
  EXPECT_EQ(human_energy(0), "0 pJ");
  EXPECT_EQ(human_energy(999.5), "999.5 pJ");
  EXPECT_EQ(human_energy(1000), "1 nJ");
  EXPECT_EQ(human_energy(1.23456789e9), "1.2346 mJ");
  EXPECT_EQ(human_energy(5e15), "5000 J");
}

} // namespace
} // namespace monet
