// Compares the keys of a result with its JSON Schema, object by object.
#include "report/shared/written.hpp"

#include "report/schemas.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/stage.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <array>
#include <vector>

namespace monet {

namespace {

using Json = nlohmann::ordered_json;

/// Compares the keys of objects, nested ones too, with the schemas of one file.
class KeyCheck {
public:
  explicit KeyCheck(const Json& root) : root_(root) {}

  void check(const Json& schema, const Json& value, const std::string& path) const {
    const std::vector<const Json*> parts = parts_of(schema);
    if (value.is_object()) {
      for (const Json* part : parts)
        check_required(*part, value, path);
      for (const auto& [key, member] : value.items())
        check_member(parts, key, member, path);
    }
    for (const Json* part : parts) {
      if (!value.is_array() || !part->contains("items") || !part->at("items").is_object())
        continue;
      for (std::size_t i = 0; i < value.size(); ++i) {
        if (value[i].is_structured())
          check(part->at("items"), value[i], fmt::format("{}/{}", path, i));
      }
    }
  }

private:
  /// The schema, and the schemas that it refers to.
  std::vector<const Json*> parts_of(const Json& schema) const {
    std::vector<const Json*> parts{&schema};
    while (parts.back()->is_object() && parts.back()->contains("$ref"))
      parts.push_back(&root_.at(
          Json::json_pointer(parts.back()->at("$ref").get_ref<const std::string&>().substr(1))));
    return parts;
  }

  static void check_required(const Json& schema, const Json& value, const std::string& path) {
    for (const Json& key : schema.value("required", Json::array())) {
      if (!value.contains(key.get_ref<const std::string&>()))
        internal_check(false, fmt::format("{} lacks {}", path, key.dump()));
    }
  }

  void check_member(const std::vector<const Json*>& parts, const std::string& key,
                    const Json& member, const std::string& path) const {
    bool is_open = true;
    const Json* others = nullptr;
    for (const Json* part : parts) {
      if (const auto known = part->find("properties"); known != part->end() && known->contains(key))
        return check(known->at(key), member, path + "/" + key);
      for (const char* rule : {"additionalProperties", "unevaluatedProperties"}) {
        if (const auto rest = part->find(rule); rest != part->end()) {
          is_open = *rest != false;
          others = rest->is_object() ? &*rest : nullptr;
        }
      }
    }
    if (!is_open)
      internal_check(false, fmt::format("{} has the unknown key \"{}\"", path, key));
    if (others != nullptr)
      check(*others, member, path + "/" + key);
  }

  const Json& root_;
};

} // namespace

Json written([[maybe_unused]] ResultSchema schema, Json json) {
  if constexpr (kVerifyStages) {
    static const std::array<Json, 9> kSchemas{
        Json::parse(schemas::kBackward),   Json::parse(schemas::kCluster),
        Json::parse(schemas::kComparison), Json::parse(schemas::kExplain),
        Json::parse(schemas::kExplore),    Json::parse(schemas::kFormats),
        Json::parse(schemas::kOptimise),   Json::parse(schemas::kResult),
        Json::parse(schemas::kTrain)};
    const Json& root = kSchemas.at(static_cast<std::size_t>(schema));
    KeyCheck(root).check(root, json, "result");
  }
  return json;
}

} // namespace monet
