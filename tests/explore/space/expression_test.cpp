#include "explore/space/expression.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace monet {
namespace MONET_TEST_FILE {

ParameterValue name_value(const std::string& text) {
  return {false, 0, text};
}

ParameterValue evaluated(const std::string& text) {
  ProblemList problems;
  const Expression expression =
      Expression::parse(text, {"space.yaml", 3, 7, ""}, {"x", "y", "kind"}, problems);
  problems.throw_if_any();
  return expression.evaluate({number_value(6), number_value(4), name_value("big")});
}

double number(const std::string& text) {
  return evaluated(text).number;
}

std::string problem_of(const std::string& text) {
  try {
    evaluated(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Expression, FollowsTheUsualPrecedence) {
  EXPECT_EQ(number("1 + 2 * 3"), 7);
  EXPECT_EQ(number("(1 + 2) * 3"), 9);
  EXPECT_EQ(number("8 - 3 - 2"), 3);
  EXPECT_EQ(number("16 / 4 / 2"), 2);
  EXPECT_EQ(number("-2 ^ 2"), -4);
  EXPECT_EQ(number("2 ^ 3 ^ 2"), 512);
  EXPECT_EQ(number("2 ^ -1"), 0.5);
  EXPECT_EQ(number("7 % 4 + 1"), 4);
  EXPECT_EQ(number("-7 % 4"), 1) << "as the place of -7 on a ring of 4";
  EXPECT_EQ(number("1 + 1 == 2 and 3 < 4"), 1);
  EXPECT_EQ(number("1 == 2 or not 3 < 2"), 1);
  EXPECT_EQ(number("not not 5"), 1);
  EXPECT_EQ(number("1 < 2 or 1 / 0"), 1) << "what is decided is not looked at";
}

TEST(Expression, ReadsParametersAndCallsFunctions) {
  EXPECT_EQ(number("x * y"), 24);
  EXPECT_EQ(number("min(x, y, 5)"), 4);
  EXPECT_EQ(number("max(x, y, 5)"), 6);
  EXPECT_EQ(number("ceil(x / y) + floor(x / y) + round(2.6) + abs(-1)"), 7);
  EXPECT_EQ(number("sqrt(y) + log2(8)"), 5);
  EXPECT_EQ(number("if(kind == 'big', x, y)"), 6);
  EXPECT_EQ(evaluated("if(x > y, kind, 'small')").text, "big");
  EXPECT_EQ(number("kind != 'small'"), 1);
}

TEST(Expression, PrintsNumbersAsPeopleWriteThem) {
  EXPECT_EQ(evaluated("0.5 * 2^23").text, "4194304");
  EXPECT_EQ(evaluated("1 / 4").text, "0.25");
  EXPECT_EQ(evaluated("1 / 3").number, std::stod(evaluated("1 / 3").text));
  EXPECT_EQ(evaluated("-0.5").text, "-0.5");
}

TEST(Expression, SaysWhatIsWrongAndWhere) {
  EXPECT_NE(problem_of("x +").find("space.yaml:3:7"), std::string::npos);
  EXPECT_NE(problem_of("x +").find("missing"), std::string::npos);
  EXPECT_NE(problem_of("x y").find("unexpected 'y'"), std::string::npos);
  EXPECT_NE(problem_of("(x").find("')' is missing"), std::string::npos);
  EXPECT_NE(problem_of("kinds == 'big'").find("did you mean 'kind'"), std::string::npos);
  EXPECT_NE(problem_of("maxx(1)").find("did you mean 'max'"), std::string::npos);
  EXPECT_NE(problem_of("if(1, 2)").find("if needs 3 arguments, not 2"), std::string::npos);
  EXPECT_NE(problem_of("x / (y - 4)").find("divides by zero"), std::string::npos);
  EXPECT_NE(problem_of("kind + 1").find("'big' is a name"), std::string::npos);
  EXPECT_NE(problem_of("kind == 1").find("a number and a name"), std::string::npos);
  EXPECT_NE(problem_of("sqrt(0 - 1)").find("not a finite number"), std::string::npos);
  EXPECT_NE(problem_of("'open").find("' is missing"), std::string::npos);
  EXPECT_NE(problem_of(""), "");
}

TEST(Expression, BoundsItsDepthAndLength) {
  EXPECT_NE(problem_of(std::string(5000, '(') + "1" + std::string(5000, ')')).find("deeply"),
            std::string::npos);
  std::string powers = "1";
  for (int i = 0; i < 5000; ++i)
    powers += "^1";
  EXPECT_NE(problem_of(powers).find("deeply"), std::string::npos);
  std::string sum = "1";
  for (int i = 0; i < 10000; ++i)
    sum += "+1";
  EXPECT_NE(problem_of(sum).find("too long"), std::string::npos);
}

} // namespace MONET_TEST_FILE
} // namespace monet
