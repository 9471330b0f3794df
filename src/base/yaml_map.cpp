// Typed reading of YamlNode: every mistake becomes a located problem, none stops the reading.
#include "monet/base/text.hpp"
#include "monet/base/yaml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace monet {

namespace {

std::string_view kind_name(const YamlNode& node) {
  switch (node.kind) {
  case YamlNode::Kind::null:
    return "nothing";
  case YamlNode::Kind::scalar:
    return "a scalar";
  case YamlNode::Kind::sequence:
    return "a sequence";
  case YamlNode::Kind::map:
    return "a map";
  }
  throw InternalError("node kind without a name");
}

void expected(const YamlNode& node, std::string_view what, ProblemList& problems) {
  const std::string found = node.kind == YamlNode::Kind::scalar
                                ? "'" + node.scalar.substr(0, 60) + "'"
                                : std::string(kind_name(node));
  problems.add(node.where, fmt::format("expected {}, found {}", what, found));
}

/// Digits without the underscores that YAML 1.1 allows between them; nullopt when one is elsewhere.
std::optional<std::string> without_underscores(const std::string& text) {
  std::string digits;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      digits += text[i];
    } else if (i == 0 || i + 1 == text.size() || !is_digit(text[i - 1]) || !is_digit(text[i + 1])) {
      return std::nullopt;
    }
  }
  return digits;
}

template <class Number>
std::optional<Number> parse_whole(const std::string& text) {
  const char* begin = text.data() + (text.size() > 1 && text[0] == '+' && text[1] != '-' ? 1 : 0);
  const char* end = text.data() + text.size();
  Number value{};
  const auto [stop, error] = std::from_chars(begin, end, value);
  if (error != std::errc{} || stop != end)
    return std::nullopt;
  return value;
}

} // namespace

std::optional<double> as_number(const YamlNode& node, ProblemList& problems) {
  if (node.kind == YamlNode::Kind::scalar && !node.quoted) {
    if (const auto digits = without_underscores(node.scalar)) {
      if (const auto value = parse_whole<double>(*digits); value && std::isfinite(*value))
        return value;
    }
  }
  expected(node, "a number", problems);
  return std::nullopt;
}

std::optional<std::int64_t> as_integer(const YamlNode& node, ProblemList& problems) {
  if (node.kind == YamlNode::Kind::scalar && !node.quoted) {
    if (const auto digits = without_underscores(node.scalar)) {
      if (const auto value = parse_whole<std::int64_t>(*digits))
        return value;
      constexpr double kExact = 0x1p53;
      const auto real = parse_whole<double>(*digits);
      if (real && std::abs(*real) <= kExact && *real == std::floor(*real)) {
        return static_cast<std::int64_t>(*real);
      }
    }
  }
  expected(node, "an integer", problems);
  return std::nullopt;
}

std::optional<bool> as_boolean(const YamlNode& node, ProblemList& problems) {
  if (node.kind == YamlNode::Kind::scalar && !node.quoted) {
    const std::string& text = node.scalar;
    if (text == "true" || text == "True" || text == "TRUE")
      return true;
    if (text == "false" || text == "False" || text == "FALSE")
      return false;
  }
  expected(node, "true or false", problems);
  return std::nullopt;
}

std::optional<std::string> as_string(const YamlNode& node, ProblemList& problems) {
  if (node.kind == YamlNode::Kind::scalar)
    return node.scalar;
  expected(node, "a string", problems);
  return std::nullopt;
}

std::vector<std::string> as_strings(const YamlNode& node, ProblemList& problems, bool scalar_ok) {
  std::vector<std::string> strings;
  if (scalar_ok && node.kind == YamlNode::Kind::scalar)
    return {node.scalar};
  if (node.kind == YamlNode::Kind::null)
    return {};
  if (node.kind != YamlNode::Kind::sequence) {
    expected(node, "a sequence of strings", problems);
    return {};
  }
  for (const YamlNode& item : node.items) {
    if (auto text = as_string(item, problems))
      strings.push_back(std::move(*text));
  }
  return strings;
}

std::vector<std::int64_t> as_integers(const YamlNode& node, ProblemList& problems) {
  std::vector<std::int64_t> integers;
  if (node.kind == YamlNode::Kind::null)
    return {};
  if (node.kind != YamlNode::Kind::sequence) {
    expected(node, "a sequence of integers", problems);
    return {};
  }
  for (const YamlNode& item : node.items) {
    if (const auto value = as_integer(item, problems))
      integers.push_back(*value);
  }
  return integers;
}

YamlMap::YamlMap(const YamlNode& node, ProblemList& problems, Duplicates duplicates)
    : node_(&node), problems_(&problems) {
  if (node.kind != YamlNode::Kind::map)
    expected(node, "a map", problems);
  if (duplicates == Duplicates::last_wins)
    return;
  std::vector<const YamlNode::Entry*> sorted;
  for (const auto& entry : node.entries)
    sorted.push_back(&entry);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto* a, const auto* b) { return a->key < b->key; });
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i]->key != sorted[i - 1]->key)
      continue;
    problems.add(sorted[i]->key_where, fmt::format("key '{}' is given twice (first at line {})",
                                                   sorted[i]->key, sorted[i - 1]->key_where.line));
  }
}

bool YamlMap::has(std::string_view key) const {
  return std::any_of(node_->entries.begin(), node_->entries.end(),
                     [&](const auto& entry) { return entry.key == key; });
}

const YamlNode* YamlMap::find(std::string_view key) {
  ignore(key);
  const auto& entries = node_->entries;
  const auto found = std::find_if(entries.rbegin(), entries.rend(),
                                  [&](const auto& entry) { return entry.key == key; });
  return found == entries.rend() ? nullptr : &found->value;
}

const YamlNode* YamlMap::require(std::string_view key) {
  const YamlNode* value = find(key);
  if (value == nullptr && node_->kind == YamlNode::Kind::map) {
    problems_->add(node_->where, fmt::format("key '{}' is missing", key));
  }
  return value;
}

std::int64_t YamlMap::require_integer(std::string_view key, std::int64_t fallback) {
  const YamlNode* value = require(key);
  return value ? as_integer(*value, *problems_).value_or(fallback) : fallback;
}
double YamlMap::require_number(std::string_view key, double fallback) {
  const YamlNode* value = require(key);
  return value ? as_number(*value, *problems_).value_or(fallback) : fallback;
}
std::string YamlMap::require_string(std::string_view key) {
  const YamlNode* value = require(key);
  return value ? as_string(*value, *problems_).value_or("") : "";
}
std::int64_t YamlMap::integer_or(std::string_view key, std::int64_t fallback) {
  const YamlNode* value = find(key);
  return value ? as_integer(*value, *problems_).value_or(fallback) : fallback;
}
double YamlMap::number_or(std::string_view key, double fallback) {
  const YamlNode* value = find(key);
  return value ? as_number(*value, *problems_).value_or(fallback) : fallback;
}
bool YamlMap::boolean_or(std::string_view key, bool fallback) {
  const YamlNode* value = find(key);
  return value ? as_boolean(*value, *problems_).value_or(fallback) : fallback;
}
std::string YamlMap::string_or(std::string_view key, std::string fallback) {
  const YamlNode* value = find(key);
  return value ? as_string(*value, *problems_).value_or(fallback) : fallback;
}

void YamlMap::ignore(std::string_view key) {
  if (std::find(known_.begin(), known_.end(), key) == known_.end())
    known_.emplace_back(key);
}

void YamlMap::finish() {
  for (const auto& entry : node_->entries) {
    if (std::find(known_.begin(), known_.end(), entry.key) != known_.end())
      continue;
    problems_->add(entry.key_where, fmt::format("unknown key '{}'", entry.key),
                   nearest_name_hint(entry.key, known_));
  }
}

} // namespace monet
