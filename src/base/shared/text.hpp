// Text helpers: nearest-name hints, glob patterns, JSON nesting depth, readable numbers.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace monet {

/// Hint such as "did you mean 'size'?", for a candidate within an edit distance of a third of
/// `name`'s length; otherwise "".
std::string nearest_name_hint(std::string_view name, std::span<const std::string> candidates);

/// Names of a list's items, for nearest_name_hint().
template <class List>
std::vector<std::string> names_of(const List& list) {
  std::vector<std::string> names;
  for (const auto& item : list)
    names.emplace_back(item.name);
  return names;
}

/// Parses all of `text` as one number; nullopt for any other text and for numbers out of range.
template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && stop == text.data() + text.size() ? std::optional(number)
                                                                   : std::nullopt;
}

/// Matches a glob pattern with * and ?; linear in practice (no exponential backtracking).
bool glob_match(std::string_view pattern, std::string_view text);

/// `text` without spaces and tabs at either end.
std::string_view trimmed(std::string_view text);

/// Splits a text at a separator into at most `most` parts; the last part holds the remainder.
std::vector<std::string_view> split(std::string_view text, char separator, std::size_t most);

/// Maximum nesting depth of brackets and braces outside of JSON strings, found in one pass before a
/// parser runs. (nlohmann's callback takes quadratic time on long lists.)
int json_depth(std::string_view text);

/// Integer with its digits grouped in threes: 1234567 -> "1,234,567".
std::string group_digits(std::int64_t value);

/// Bytes with a binary prefix and three significant digits: "17.3 MiB".
std::string human_bytes(std::int64_t bytes);

} // namespace monet
