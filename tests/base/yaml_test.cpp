#include "base/shared/yaml_overlay.hpp"

#include "monet/base/yaml.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace monet {
namespace {

YamlNode parse(std::string_view text) {
  return parse_yaml(text, "f.yaml");
}

std::string error_of(std::string_view text) {
  try {
    parse(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::string joined(const ProblemList& problems) {
  std::string text;
  for (const InputProblem& problem : problems.problems())
    text += problem.to_string() + "\n";
  return text;
}

std::optional<std::int64_t> integer(std::string_view text) {
  ProblemList problems;
  const auto value = as_integer(parse(text), problems);
  EXPECT_EQ(value.has_value(), problems.empty()) << text;
  return value;
}

std::optional<double> number(std::string_view text) {
  ProblemList problems;
  const auto value = as_number(parse(text), problems);
  EXPECT_EQ(value.has_value(), problems.empty()) << text;
  return value;
}

std::string repeated(std::string_view part, int times) {
  std::string text;
  for (int i = 0; i < times; ++i)
    text += part;
  return text;
}

TEST(ParseYaml, KeepsLocationsOfValuesAndKeys) {
  const YamlNode root = parse("a: 1\nb:\n  - x\n  - {c: y}\n");
  ASSERT_EQ(root.entries.size(), 2U);
  EXPECT_EQ(root.where.to_string(), "f.yaml:1:1");
  EXPECT_EQ(root.entries[0].key_where.to_string(), "f.yaml:1:1");
  EXPECT_EQ(root.entries[0].value.where.to_string(), "f.yaml:1:4");
  const YamlNode& list = root.entries[1].value;
  EXPECT_EQ(list.items.at(1).entries.at(0).value.where.to_string(), "f.yaml:4:9");
}

TEST(ParseYaml, KeepsDuplicateKeysInOrder) {
  const YamlNode root = parse("a: 1\na: 2\n");
  ASSERT_EQ(root.entries.size(), 2U);
  EXPECT_EQ(root.entries[0].value.scalar, "1");
  EXPECT_EQ(root.entries[1].value.scalar, "2");
}

TEST(ParseYaml, TellsQuotedFromPlain) {
  const YamlNode root = parse("[1, '1', \"1\", ~, ]");
  ASSERT_EQ(root.items.size(), 4U);
  EXPECT_FALSE(root.items[0].quoted);
  EXPECT_TRUE(root.items[1].quoted);
  EXPECT_TRUE(root.items[2].quoted);
  EXPECT_EQ(root.items[3].kind, YamlNode::Kind::null);
}

TEST(ParseYaml, ExpandsAliases) {
  const YamlNode root = parse("a: &list [1, 2]\nb: *list\n");
  ASSERT_EQ(root.entries[1].value.items.size(), 2U);
  EXPECT_EQ(root.entries[1].value.items[1].scalar, "2");
}

TEST(ParseYaml, NothingIsNull) {
  EXPECT_EQ(parse("").kind, YamlNode::Kind::null);
  EXPECT_EQ(parse("# only a comment\n").kind, YamlNode::Kind::null);
  EXPECT_EQ(parse("").where.to_string(), "f.yaml:1:1");
}

TEST(ParseYaml, RejectsBadText) {
  EXPECT_EQ(error_of("a: 1\nb: [1, 2\n").substr(0, 8), "f.yaml:3");
  EXPECT_EQ(error_of("a: \x01"), "f.yaml:1:4: control byte 0x01: this is not a text file");
  EXPECT_EQ(error_of(std::string_view("a\n\0", 3)),
            "f.yaml:2:1: control byte 0x00: this is not a text file");
  EXPECT_EQ(error_of("a: \xff"), "f.yaml:1:4: not UTF-8 text");
  EXPECT_EQ(error_of("a: \xed\xa0\x80"), "f.yaml:1:4: not UTF-8 text"); // a surrogate
  EXPECT_EQ(error_of("a: \xc3\xa9"), "no error");
  EXPECT_EQ(error_of("a: 1\n---\nb: 2\n"),
            "f.yaml:2:1: a second document starts here; a file holds one");
  EXPECT_EQ(error_of("- a\nb: c\n"),
            "f.yaml:2:1: this line does not continue the previous lines (check the indentation)");
  EXPECT_EQ(error_of("[a]: 1"), "f.yaml:1:1: the key of a map must be a name or a number");
  EXPECT_EQ(error_of("a: !python/object x"),
            "f.yaml:1:4: the tag '!python/object' is not supported");
  EXPECT_EQ(error_of("a: &x [*x]"), "f.yaml:1:8: this alias is inside the value that it refers to");
  EXPECT_EQ(error_of("a: *x").substr(0, 10), "f.yaml:1:4");
}

TEST(ParseYaml, LimitsDepthOnBothSidesOfTheEdge) {
  EXPECT_EQ(error_of(repeated("[", 64) + repeated("]", 64)), "no error");
  EXPECT_EQ(error_of(repeated("[", 65) + repeated("]", 65)),
            "f.yaml:1:65: nested deeper than 64 levels");
  // An alias brings its own depth along: 40 + 40 levels.
  const std::string deep = repeated("[", 40) + repeated("]", 40);
  EXPECT_EQ(error_of("- &a " + deep + "\n- " + repeated("[", 40) + "*a" + repeated("]", 40)),
            "f.yaml:2:43: nested deeper than 64 levels");
}

TEST(ParseYaml, SurvivesEndlessNesting) {
  for (const char* opening : {"[", "- ", "{a: ", "? ", "[{a: ", "&a [", "!!seq ["}) {
    EXPECT_NE(error_of(repeated(opening, 100'000)), "no error") << opening;
  }
}

TEST(ParseYaml, LimitsWhatAliasesExpandTo) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string alias = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" +
            repeated(alias + ", ", 9) + alias + "]\n";
  }
  EXPECT_NE(error_of(text).find("more than 1000000 values, aliases expanded"), std::string::npos)
      << error_of(text);
}

TEST(Scalars, IntegersAreDecimal) {
  EXPECT_EQ(integer("42"), 42);
  EXPECT_EQ(integer("-7"), -7);
  EXPECT_EQ(integer("+7"), 7);
  EXPECT_EQ(integer("010"), 10); // yaml-cpp: 8
  EXPECT_EQ(integer("16_777_216"), 16'777'216);
  EXPECT_EQ(integer("1e9"), 1'000'000'000);
  EXPECT_EQ(integer("2.5e1"), 25);
  EXPECT_EQ(integer("1.0"), 1);
  EXPECT_EQ(integer("1e16"), 10'000'000'000'000'000);
  EXPECT_EQ(integer("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(integer("-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
}

TEST(Scalars, RejectsWhatIsNoInteger) {
  for (const char* text : {"1.5",  "1e-1",        "0x10",
                           "'1'",  "abc",         "~",
                           "[1]",  "_1",          "1_",
                           "1__0", "1e",          "e1",
                           "-",    ".",           "9223372036854775808",
                           "1e19", "1e999999999", "1e99999999999",
                           "1 2",  "nan",         ".inf"}) {
    EXPECT_EQ(integer(text), std::nullopt) << text;
  }
}

TEST(Scalars, Numbers) {
  EXPECT_EQ(number("0.095"), 0.095);
  EXPECT_EQ(number("1e-3"), 1e-3);
  EXPECT_EQ(number(".5"), 0.5);
  EXPECT_EQ(number("32_000"), 32000.0);
  EXPECT_EQ(number("-2.5E+2"), -250.0);
  EXPECT_EQ(number("0e999999"), 0.0);
  for (const char* text : {"nan", "inf", ".nan", ".inf", "1e400", "'1.0'", "1.2.3", "~"}) {
    EXPECT_EQ(number(text), std::nullopt) << text;
  }
}

TEST(Scalars, MessagesNameWhatWasFound) {
  ProblemList problems;
  as_integer(parse("'12'"), problems);
  as_integer(parse("1e30"), problems);
  as_number(parse("{a: 1}"), problems);
  as_boolean(parse("1"), problems);
  as_string(parse("~"), problems);
  as_integers(parse("[1, x]"), problems);
  EXPECT_EQ(joined(problems), "f.yaml:1:1: expected an integer, found the text '12'\n"
                              "f.yaml:1:1: '1e30' does not fit in 64 bits\n"
                              "f.yaml:1:1: expected a number, found a map\n"
                              "f.yaml:1:1: expected true or false, found '1'\n"
                              "f.yaml:1:1: expected a text, found nothing\n"
                              "f.yaml:1:5: expected an integer, found 'x'\n");
}

TEST(Scalars, BooleansAndLists) {
  ProblemList problems;
  EXPECT_EQ(as_boolean(parse("True"), problems), true);
  EXPECT_EQ(as_boolean(parse("no"), problems), false);
  EXPECT_EQ(as_strings(parse("[a, 'b']"), problems), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(as_strings(parse("a"), problems, true), (std::vector<std::string>{"a"}));
  EXPECT_TRUE(problems.empty());
  as_strings(parse("a"), problems);
  EXPECT_EQ(joined(problems), "f.yaml:1:1: expected a list, found 'a'\n");
}

TEST(YamlMapTest, ReportsAllProblemsInOneRun) {
  const YamlNode root = parse("size: big\nsizes: 3\nname: x\nname: y\n");
  ProblemList problems;
  YamlMap map(root, problems);
  EXPECT_EQ(map.require_integer("size", 7), 7);
  EXPECT_EQ(map.require_string("kind"), "");
  map.ignore("name");
  map.finish();
  EXPECT_EQ(joined(problems), "f.yaml:4:1: key 'name' is given twice (first at line 3)\n"
                              "f.yaml:1:7: key 'size': expected an integer, found 'big'\n"
                              "f.yaml:1:1: key 'kind' is missing\n"
                              "f.yaml:2:1: unknown key 'sizes' (did you mean 'size'?)\n");
}

TEST(YamlMapTest, LastOfDuplicatesWinsWhenAskedTo) {
  const YamlNode root = parse("a: 1\na: 2\n");
  ProblemList problems;
  YamlMap map(root, problems, YamlMap::Duplicates::last_wins);
  EXPECT_EQ(map.require_integer("a"), 2);
  map.finish();
  EXPECT_TRUE(problems.empty());
}

TEST(YamlMapTest, DefaultsStandForAbsentKeysOnly) {
  const YamlNode root = parse("a: 1\nb: true\nc: 2.5\nd: text\n");
  ProblemList problems;
  YamlMap map(root, problems);
  EXPECT_EQ(map.integer_or("a", 9), 1);
  EXPECT_EQ(map.integer_or("z", 9), 9);
  EXPECT_TRUE(map.boolean_or("b", false));
  EXPECT_EQ(map.number_or("c", 0), 2.5);
  EXPECT_EQ(map.string_or("d", "x"), "text");
  EXPECT_TRUE(map.has("a"));
  EXPECT_FALSE(map.has("z"));
  map.finish();
  EXPECT_TRUE(problems.empty());
}

TEST(YamlMapTest, WhatIsNoMapIsReportedOnce) {
  const YamlNode root = parse("[1]");
  ProblemList problems;
  YamlMap map(root, problems);
  map.require("a");
  map.finish();
  EXPECT_EQ(joined(problems), "f.yaml:1:1: expected a map, found a list\n");
}

TEST(YamlQuoted, IsReadBackWhateverTheTextIs) {
  for (const std::string text : {"", "plain", "a: [b, {c}] # d", "\"quoted\\ \x1B[2J\n\r\t\x7F",
                                 "\xE5\xBC\xA0 \xE2\x80\xAE"}) {
    const YamlNode read = parse("key: " + yaml_quoted(text) + "\n");
    EXPECT_EQ(read.entries.at(0).value.scalar, text);
  }
}

} // namespace
} // namespace monet
