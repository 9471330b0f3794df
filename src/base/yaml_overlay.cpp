// Merges YAML documents and writes canonical text; studies and search spaces use it for variants.
#include "base/shared/yaml_overlay.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace monet {

namespace {

constexpr std::array<std::string_view, 4> kDecisive{"format", "schedule", "scheme", "type"};

bool stands_alone(const YamlNode& map) {
  return std::ranges::any_of(map.entries, [](const YamlNode::Entry& entry) {
    return std::ranges::find(kDecisive, entry.key) != kDecisive.end();
  });
}

} // namespace

YamlNode overlaid(const YamlNode& base, const YamlNode& over) {
  YamlNode result = base;
  for (const YamlNode::Entry& entry : over.entries) {
    const auto same = std::ranges::find(result.entries, entry.key, &YamlNode::Entry::key);
    if (same == result.entries.end()) {
      result.entries.push_back(entry);
      continue;
    }
    const bool joined = same->value.kind == YamlNode::Kind::map &&
                        entry.value.kind == YamlNode::Kind::map && !stands_alone(entry.value);
    same->value = joined ? overlaid(same->value, entry.value) : entry.value;
    same->key_where = entry.key_where;
  }
  return result;
}

std::string canonical_text(const YamlNode& node) {
  switch (node.kind) {
  case YamlNode::Kind::null:
    return "~";
  case YamlNode::Kind::scalar:
    return fmt::format("{}{}:{}", node.quoted ? "\"" : "", node.scalar.size(), node.scalar);
  case YamlNode::Kind::sequence: {
    std::string text = "[";
    for (const YamlNode& item : node.items)
      text += canonical_text(item) + ",";
    return text + "]";
  }
  case YamlNode::Kind::map: {
    std::vector<std::string> entries;
    for (const YamlNode::Entry& entry : node.entries)
      entries.push_back(
          fmt::format("{}:{}={};", entry.key.size(), entry.key, canonical_text(entry.value)));
    std::ranges::sort(entries);
    std::string text = "{";
    for (const std::string& entry : entries)
      text += entry;
    return text + "}";
  }
  }
  return {};
}

std::string yaml_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
      continue;
    }
    if (c == '"' || c == '\\')
      out += '\\';
    out += c;
  }
  return out + '"';
}

} // namespace monet
