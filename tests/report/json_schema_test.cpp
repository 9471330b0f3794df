#include "report/json_schema.hpp"

#include <gtest/gtest.h>

namespace monet::test {
namespace {

using Json = nlohmann::json;

// The validator is itself a test's oracle, so it must be seen to refuse.
TEST(JsonSchema, ReportsEachKindOfViolation) {
  const Json schema = Json::parse(R"({
    "type": "object", "required": ["a"], "additionalProperties": false,
    "properties": {
      "a": {"type": "integer", "minimum": 0}, "b": {"enum": ["x"]}, "c": {"$ref": "#/$defs/pair"}
    },
    "$defs": {"pair": {"type": "array", "minItems": 2, "prefixItems": [{"type": "string"}], "items": {"type": "number"}}}
  })");
  const auto problems = [&](const char* text) {
    return schema_violations(schema, Json::parse(text));
  };
  EXPECT_TRUE(problems(R"({"a": 1, "b": "x", "c": ["s", 1.5]})").empty());
  EXPECT_EQ(problems("[]"), std::vector<std::string>{": is not of type \"object\""});
  EXPECT_EQ(problems("{}"), std::vector<std::string>{": lacks \"a\""});
  EXPECT_EQ(problems(R"({"a": -1})"), std::vector<std::string>{"/a: is below the minimum"});
  EXPECT_EQ(problems(R"({"a": 1.5})"), std::vector<std::string>{"/a: is not of type \"integer\""});
  EXPECT_EQ(problems(R"({"a": 1, "z": 1})"), std::vector<std::string>{"/z: is not allowed"});
  EXPECT_EQ(problems(R"({"a": 1, "b": "y"})"),
            std::vector<std::string>{"/b: \"y\" is none of [\"x\"]"});
  EXPECT_EQ(problems(R"({"a": 1, "c": ["s", "t"]})"),
            std::vector<std::string>{"/c/1: is not of type \"number\""});
  EXPECT_EQ(problems(R"({"a": 1, "c": ["s"]})"), std::vector<std::string>{"/c: has too few items"});
}

TEST(JsonSchema, AValueMayHaveOneOfSeveralTypes) {
  const Json schema = Json::parse(R"({"type": ["number", "null", "boolean"]})");
  for (const char* text : {"1.5", "null", "true"})
    EXPECT_TRUE(schema_violations(schema, Json::parse(text)).empty()) << text;
  EXPECT_EQ(schema_violations(schema, "text").size(), 1U);
}

TEST(JsonSchema, UnevaluatedPropertiesAreThoseThatNoReferenceDescribes) {
  const Json schema = Json::parse(R"({
    "$ref": "#/$defs/base", "unevaluatedProperties": false, "properties": {"a": {"x-unit": "cycles"}},
    "$defs": {"base": {"properties": {"b": true}}}
  })");
  EXPECT_TRUE(schema_violations(schema, Json::parse(R"({"a": 1, "b": 1})")).empty());
  EXPECT_EQ(schema_violations(schema, Json::parse(R"({"c": 1})")),
            std::vector<std::string>{"/c: is not allowed"});
}

TEST(JsonSchema, RefusesKeywordsItDoesNotKnow) {
  EXPECT_EQ(schema_violations(Json::parse(R"({"pattern": "a"})"), "b"),
            std::vector<std::string>{": the schema uses unknown keyword pattern"});
}

} // namespace
} // namespace monet::test
