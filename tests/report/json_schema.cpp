#include "report/json_schema.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace monet::test {

namespace {

using Json = nlohmann::json;

class Validator {
public:
  explicit Validator(const Json& root) : root_(root) {}

  void check(const Json& schema, const Json& value, const std::string& path) {
    if (schema.is_boolean()) {
      if (!schema.get<bool>())
        fail(path, "is not allowed");
      return;
    }
    static const std::set<std::string> known{"$schema",
                                             "$defs",
                                             "title",
                                             "description",
                                             "$ref",
                                             "type",
                                             "const",
                                             "enum",
                                             "minimum",
                                             "maximum",
                                             "required",
                                             "properties",
                                             "additionalProperties",
                                             "unevaluatedProperties",
                                             "items",
                                             "prefixItems",
                                             "minItems"};
    for (const auto& [keyword, unused] : schema.items()) {
      if (!known.contains(keyword) && !keyword.starts_with("x-")) // annotations
        fail(path, "the schema uses unknown keyword " + keyword);
    }
    if (schema.contains("$ref"))
      check(resolve(schema["$ref"]), value, path);
    if (schema.contains("type") && !has_type(value, schema["type"])) {
      fail(path, fmt::format("is not of type {}", schema["type"].dump()));
      return;
    }
    if (schema.contains("const") && value != schema["const"])
      fail(path, "is not the constant");
    if (schema.contains("enum"))
      check_enum(schema["enum"], value, path);
    if (value.is_number())
      check_number(schema, value, path);
    if (value.is_object())
      check_object(schema, value, path);
    if (value.is_array())
      check_array(schema, value, path);
  }

  std::vector<std::string> violations;

private:
  void fail(const std::string& path, const std::string& what) {
    violations.push_back(path + ": " + what);
  }

  const Json& resolve(const std::string& reference) const {
    return root_.at(Json::json_pointer(reference.substr(1)));
  }

  static bool has_type(const Json& value, const Json& type) {
    if (type.is_array())
      return std::any_of(type.begin(), type.end(),
                         [&](const Json& one) { return has_type(value, one); });
    if (type == "null")
      return value.is_null();
    if (type == "boolean")
      return value.is_boolean();
    if (type == "object")
      return value.is_object();
    if (type == "array")
      return value.is_array();
    if (type == "string")
      return value.is_string();
    if (type == "integer")
      return value.is_number_integer();
    if (type == "number")
      return value.is_number();
    return false;
  }

  void check_enum(const Json& choices, const Json& value, const std::string& path) {
    for (const Json& choice : choices) {
      if (choice == value)
        return;
    }
    fail(path, value.dump() + " is none of " + choices.dump());
  }

  void check_number(const Json& schema, const Json& value, const std::string& path) {
    const double number = value.get<double>();
    if (schema.contains("minimum") && number < schema["minimum"].get<double>()) {
      fail(path, "is below the minimum");
    }
    if (schema.contains("maximum") && number > schema["maximum"].get<double>()) {
      fail(path, "is above the maximum");
    }
  }

  /// Whether the schema, or one that it refers to, describes a property.
  bool describes(const Json& schema, const std::string& key) const {
    return (schema.contains("properties") && schema["properties"].contains(key)) ||
           (schema.contains("$ref") && describes(resolve(schema["$ref"]), key));
  }

  void check_object(const Json& schema, const Json& value, const std::string& path) {
    for (const Json& key : schema.value("required", Json::array())) {
      if (!value.contains(key.get<std::string>()))
        fail(path, "lacks " + key.dump());
    }
    const Json properties = schema.value("properties", Json::object());
    for (const auto& [key, member] : value.items()) {
      const std::string at = path + "/" + key;
      if (properties.contains(key)) {
        check(properties[key], member, at);
      } else if (schema.contains("additionalProperties")) {
        check(schema["additionalProperties"], member, at);
      } else if (schema.contains("unevaluatedProperties") && !describes(schema, key)) {
        check(schema["unevaluatedProperties"], member, at);
      }
    }
  }

  void check_array(const Json& schema, const Json& value, const std::string& path) {
    if (schema.contains("minItems") && value.size() < schema["minItems"].get<std::size_t>()) {
      fail(path, "has too few items");
    }
    static const Json none = Json::array();
    const Json& prefix = schema.contains("prefixItems") ? schema["prefixItems"] : none;
    for (std::size_t i = 0; i < value.size(); ++i) {
      const std::string at = fmt::format("{}/{}", path, i);
      if (i < prefix.size()) {
        check(prefix[i], value[i], at);
      } else if (schema.contains("items")) {
        check(schema["items"], value[i], at);
      }
    }
  }

  const Json& root_;
};

} // namespace

std::vector<std::string> schema_violations(const Json& schema, const Json& value) {
  Validator validator(schema);
  validator.check(schema, value, "");
  return validator.violations;
}

} // namespace monet::test
