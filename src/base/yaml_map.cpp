// Typed access to YAML maps, lists and scalars, with problems reported at their locations. Every
// reader of a YAML document uses it.
#include "base/shared/hints.hpp"
#include "base/shared/text.hpp"

#include "monet/base/yaml.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <map>

namespace monet {

namespace {

std::string describe(const YamlNode& node) {
  constexpr std::size_t kLongestQuote = 40;
  switch (node.kind) {
  case YamlNode::Kind::null:
    return "nothing";
  case YamlNode::Kind::sequence:
    return "a list";
  case YamlNode::Kind::map:
    return "a map";
  case YamlNode::Kind::scalar:
    break;
  }
  std::string text = node.scalar;
  if (text.size() > kLongestQuote) {
    std::size_t cut = kLongestQuote;
    while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0U) == 0x80)
      --cut;
    text = text.substr(0, cut) + "...";
  }
  return fmt::format("{}'{}'", node.quoted ? "the text " : "", text);
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Whether a scalar is a number followed by a word: "160 KiB".
bool has_unit(const YamlNode& node) {
  const std::string& text = node.scalar;
  const std::size_t end = text.find_first_not_of("0123456789._ ");
  return node.kind == YamlNode::Kind::scalar && !text.empty() && is_digit(text.front()) &&
         end != std::string::npos && std::isalpha(static_cast<unsigned char>(text[end])) != 0;
}

void expected(const YamlNode& node, ProblemList& problems, std::string_view what) {
  problems.add(node.where, fmt::format("expected {}{}, found {}", what,
                                       has_unit(node) ? " without a unit" : "", describe(node)));
}

/// The scalar without `_` between digits; nullopt if a `_` stands anywhere else.
std::optional<std::string> without_separators(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      plain += text[i];
    } else if (i == 0 || i + 1 == text.size() || !is_digit(text[i - 1]) || !is_digit(text[i + 1])) {
      return std::nullopt;
    }
  }
  return plain;
}

/// Decimal number: sign, digits, and the power of ten that scales them.
struct Decimal {
  bool negative = false;
  std::string digits; ///< without leading zeros; empty for 0
  std::int64_t scale = 0;
};

std::optional<Decimal> parse_decimal(std::string_view text) {
  constexpr std::size_t kLongestNumber = 100;
  if (text.size() > kLongestNumber)
    return std::nullopt;
  const std::optional<std::string> plain = without_separators(text);
  if (!plain)
    return std::nullopt;
  std::string_view rest = *plain;
  Decimal number;
  if (!rest.empty() && (rest[0] == '+' || rest[0] == '-')) {
    number.negative = rest[0] == '-';
    rest.remove_prefix(1);
  }
  bool any = false;
  for (bool fraction = false; !rest.empty(); rest.remove_prefix(1)) {
    if (rest[0] == '.' && !fraction) {
      fraction = true;
    } else if (is_digit(rest[0])) {
      any = true;
      if (!number.digits.empty() || rest[0] != '0')
        number.digits += rest[0];
      if (fraction)
        --number.scale;
    } else {
      break;
    }
  }
  if (!any)
    return std::nullopt;
  if (rest.empty())
    return number;
  if (rest[0] != 'e' && rest[0] != 'E')
    return std::nullopt;
  rest.remove_prefix(1);
  if (!rest.empty() && rest[0] == '+')
    rest.remove_prefix(1);
  const auto exponent = number_in<int>(rest);
  if (!exponent)
    return std::nullopt;
  number.scale += *exponent;
  return number;
}

enum class IntegerFault { none, fraction, overflow };

IntegerFault to_integer(Decimal number, std::int64_t& value) {
  constexpr std::int64_t kMaxDigits = 19;
  value = 0;
  if (number.digits.empty())
    return IntegerFault::none;
  for (; number.scale < 0; ++number.scale) {
    if (number.digits.empty() || number.digits.back() != '0')
      return IntegerFault::fraction;
    number.digits.pop_back();
  }
  if (std::ssize(number.digits) + number.scale > kMaxDigits)
    return IntegerFault::overflow;
  number.digits.append(static_cast<std::size_t>(number.scale), '0');
  const std::string text = (number.negative ? "-" : "") + number.digits;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  return result.ec == std::errc() ? IntegerFault::none : IntegerFault::overflow;
}

bool is_plain_scalar(const YamlNode& node) {
  return node.kind == YamlNode::Kind::scalar && !node.quoted;
}

} // namespace

std::optional<std::int64_t> as_integer(const YamlNode& node, ProblemList& problems) {
  const auto number = is_plain_scalar(node) ? parse_decimal(node.scalar) : std::nullopt;
  std::int64_t value = 0;
  const IntegerFault fault = number ? to_integer(*number, value) : IntegerFault::fraction;
  if (fault == IntegerFault::none)
    return value;
  if (fault == IntegerFault::overflow) {
    problems.add(node.where, fmt::format("{} does not fit in 64 bits", describe(node)));
  } else {
    expected(node, problems, "an integer");
  }
  return std::nullopt;
}

std::optional<std::int64_t> integer_within(const YamlNode& node, std::string_view what,
                                           std::int64_t least, std::int64_t most,
                                           ProblemList& problems, std::string_view unit) {
  const auto value = as_integer(node, problems);
  if (!value || (*value >= least && *value <= most))
    return value;
  problems.add(node.where, fmt::format("{} must be between {} and {}{}, is {}", what, least, most,
                                       unit, *value));
  return std::nullopt;
}

std::optional<double> as_number(const YamlNode& node, ProblemList& problems) {
  const auto number = is_plain_scalar(node) ? parse_decimal(node.scalar) : std::nullopt;
  if (!number) {
    expected(node, problems, "a number");
    return std::nullopt;
  }
  const std::string text =
      fmt::format("{}{}e{}", number->negative ? "-" : "",
                  number->digits.empty() ? "0" : number->digits, number->scale);
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc() || !std::isfinite(value)) {
    problems.add(node.where, fmt::format("{} is outside the range of numbers", describe(node)));
    return std::nullopt;
  }
  return value;
}

std::optional<bool> as_boolean(const YamlNode& node, ProblemList& problems) {
  constexpr std::array kTrue{"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"};
  constexpr std::array kFalse{"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"};
  if (is_plain_scalar(node)) {
    if (std::find(kTrue.begin(), kTrue.end(), node.scalar) != kTrue.end())
      return true;
    if (std::find(kFalse.begin(), kFalse.end(), node.scalar) != kFalse.end())
      return false;
  }
  expected(node, problems, "true or false");
  return std::nullopt;
}

std::optional<std::string> as_string(const YamlNode& node, ProblemList& problems) {
  if (node.kind == YamlNode::Kind::scalar)
    return node.scalar;
  expected(node, problems, "a text");
  return std::nullopt;
}

namespace {

/// Items of a list for which `read` succeeds; empty if there is no list.
template <class Read>
auto read_list(const YamlNode& node, ProblemList& problems, std::string_view what, Read read) {
  std::vector<typename decltype(read(node, problems))::value_type> list;
  if (node.kind != YamlNode::Kind::sequence && node.kind != YamlNode::Kind::null)
    expected(node, problems, what);
  for (const YamlNode& item : node.items) {
    if (auto value = read(item, problems))
      list.push_back(std::move(*value));
  }
  return list;
}

} // namespace

std::vector<std::string> as_strings(const YamlNode& node, ProblemList& problems, bool scalar_ok) {
  if (scalar_ok && node.kind == YamlNode::Kind::scalar)
    return {node.scalar};
  return read_list(node, problems, "a list", as_string);
}

std::vector<std::int64_t> as_integers(const YamlNode& node, ProblemList& problems) {
  return read_list(node, problems, "a list of integers", as_integer);
}

YamlMap::YamlMap(const YamlNode& node, ProblemList& problems, Duplicates duplicates)
    : node_(&node), problems_(&problems) {
  if (node.kind != YamlNode::Kind::map) {
    expected(node, problems, "a map");
    return;
  }
  if (duplicates == Duplicates::last_wins)
    return;
  std::map<std::string_view, int> first_line;
  for (const YamlNode::Entry& entry : node.entries) {
    const auto [first, is_new] = first_line.emplace(entry.key, entry.key_where.line);
    if (is_new)
      continue;
    problems.add(entry.key_where, fmt::format("key '{}' is given twice (first at line {})",
                                              entry.key, first->second));
  }
}

bool YamlMap::has(std::string_view key) const {
  return std::any_of(node_->entries.begin(), node_->entries.end(),
                     [&](const YamlNode::Entry& entry) { return entry.key == key; });
}

const YamlNode* YamlMap::find(std::string_view key) {
  ignore(key);
  // Searches from the end: only a map read with last_wins may contain a key twice.
  const auto entry = std::find_if(node_->entries.rbegin(), node_->entries.rend(),
                                  [&](const YamlNode::Entry& e) { return e.key == key; });
  return entry == node_->entries.rend() ? nullptr : &entry->value;
}

const YamlNode* YamlMap::require(std::string_view key) {
  const YamlNode* value = find(key);
  // A node that is not a map has been reported already.
  if (value == nullptr && node_->kind == YamlNode::Kind::map) {
    problems_->add(node_->where, fmt::format("key '{}' is missing", key));
  }
  return value;
}

namespace {

/// Reads a value, or returns the fallback if the key is missing; problems name the key.
template <class Value, class Read>
Value value_or(const YamlNode* node, std::string_view key, ProblemList& problems, Read read,
               Value fallback) {
  if (node == nullptr)
    return fallback;
  ProblemList own;
  const auto value = read(*node, own);
  for (const InputProblem& problem : own.problems())
    problems.add(problem.where, fmt::format("key '{}': {}", key, problem.what), problem.hint);
  return value.value_or(std::move(fallback));
}

} // namespace

std::int64_t YamlMap::require_integer(std::string_view key, std::int64_t fallback) {
  return value_or(require(key), key, *problems_, as_integer, fallback);
}

double YamlMap::require_number(std::string_view key, double fallback) {
  return value_or(require(key), key, *problems_, as_number, fallback);
}

std::string YamlMap::require_string(std::string_view key) {
  return value_or(require(key), key, *problems_, as_string, std::string());
}

std::int64_t YamlMap::integer_or(std::string_view key, std::int64_t fallback) {
  return value_or(find(key), key, *problems_, as_integer, fallback);
}

double YamlMap::number_or(std::string_view key, double fallback) {
  return value_or(find(key), key, *problems_, as_number, fallback);
}

bool YamlMap::boolean_or(std::string_view key, bool fallback) {
  return value_or(find(key), key, *problems_, as_boolean, fallback);
}

std::string YamlMap::string_or(std::string_view key, const std::string& fallback) {
  return value_or(find(key), key, *problems_, as_string, fallback);
}

void YamlMap::ignore(std::string_view key) {
  if (std::find(known_.begin(), known_.end(), key) == known_.end())
    known_.emplace_back(key);
}

void YamlMap::finish() {
  for (const YamlNode::Entry& entry : node_->entries) {
    if (std::find(known_.begin(), known_.end(), entry.key) != known_.end())
      continue;
    problems_->add(entry.key_where, fmt::format("unknown key '{}'", entry.key),
                   key_hint(entry.key, known_));
  }
}

double figure_within(YamlMap& map, std::string_view key, double least, double most,
                     std::optional<double> fallback, ProblemList& problems) {
  const YamlNode* node = fallback ? map.find(key) : map.require(key);
  if (node == nullptr)
    return fallback.value_or(1);
  const std::optional<double> value = as_number(*node, problems);
  if (!value || (*value >= least && *value <= most))
    return value.value_or(1);
  problems.add(node->where, fmt::format("'{}' must be between {:g} and {:g}, is {:g}", key, least,
                                        most, *value));
  return 1;
}

} // namespace monet
