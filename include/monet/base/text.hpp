// Small helpers on text: nearest-name hints, glob patterns, depth of JSON, number formatting for
// people.
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

/// "did you mean 'size'?" when some candidate is within a third of `name`'s length in edits, else
/// "".
std::string nearest_name_hint(std::string_view name, std::span<const std::string> candidates);

/// The names of a list's items, for such hints.
template <class List>
std::vector<std::string> names_of(const List& list) {
  std::vector<std::string> names;
  for (const auto& item : list)
    names.emplace_back(item.name);
  return names;
}

/// The number that all of the text says; nullopt of other text and of what does not fit.
template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && stop == text.data() + text.size() ? std::optional(number)
                                                                   : std::nullopt;
}

/// Glob match with * and ?; linear in practice (no exponential backtracking).
bool glob_match(std::string_view pattern, std::string_view text);

/// Without spaces and tabs at either end.
std::string_view trimmed(std::string_view text);

/// The parts of a text between separators, at most `most`: the last has whatever is left.
std::vector<std::string_view> split(std::string_view text, char separator, std::size_t most);

/// Deepest nesting of brackets and braces outside of quotes, as JSON has them: before a parser
/// runs, and in one walk over the text. (nlohmann's own callback takes quadratic time on long
/// lists.)
int json_depth(std::string_view text);

/// 1234567 -> "1,234,567".
std::string group_digits(std::int64_t value);

/// Bytes with a binary prefix and three significant digits: "17.3 MiB".
std::string human_bytes(std::int64_t bytes);

} // namespace monet
