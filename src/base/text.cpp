// String helpers: trimming, splitting, and hints for mistyped names; used by every reader of input
// files.
#include "base/shared/text.hpp"

#include "base/shared/hints.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

namespace monet {

namespace {

/// Edits that turn `a` into `b`: letters inserted, removed, replaced, or swapped with the next one.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::vector<std::size_t> before(b.size() + 1); ///< row of i - 1
  std::vector<std::size_t> earlier;              ///< row of i - 2
  for (std::size_t j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    earlier = std::exchange(before, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitute = before[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({before[j] + 1, row[j - 1] + 1, substitute});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], earlier[j - 2] + 1);
    }
  }
  return row[b.size()];
}

} // namespace

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos)
    return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::optional<std::size_t> nearest_name(std::string_view name,
                                        std::span<const std::string> candidates) {
  constexpr std::size_t kLongestName =
      200; // edit distance is quadratic; longer names are not typing errors
  if (name.size() > kLongestName)
    return std::nullopt;
  std::size_t best = std::max<std::size_t>(1, name.size() / 3) + 1;
  std::optional<std::size_t> nearest;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].size() > kLongestName)
      continue;
    const std::size_t distance = edit_distance(name, candidates[i]);
    if (distance < best) {
      best = distance;
      nearest = i;
    }
  }
  return nearest;
}

std::string nearest_name_hint(std::string_view name, std::span<const std::string> candidates) {
  const auto nearest = nearest_name(name, candidates);
  return nearest ? "did you mean '" + candidates[*nearest] + "'?" : "";
}

bool glob_match(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*')
    ++p;
  return p == pattern.size();
}

std::vector<std::string_view> split(std::string_view text, char separator, std::size_t most) {
  std::vector<std::string_view> parts;
  while (parts.size() + 1 < most && text.find(separator) != text.npos) {
    parts.push_back(text.substr(0, text.find(separator)));
    text.remove_prefix(text.find(separator) + 1);
  }
  parts.push_back(text);
  return parts;
}

int json_depth(std::string_view text) {
  int depth = 0;
  int deepest = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      i += c == '\\' ? 1 : 0;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return deepest;
}

std::string group_digits(std::int64_t value) {
  std::string digits = fmt::format("{}", value);
  const std::size_t first = value < 0 ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) {
    at -= 3;
    digits.insert(at, 1, ',');
  }
  return digits;
}

std::string human_bytes(std::int64_t bytes) {
  constexpr std::array kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  if (unit == 0)
    return fmt::format("{} B", bytes);
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f} {}", value, decimals, kUnits[unit]);
}

} // namespace monet
