#include "monet/report/text.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>

namespace monet {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// Length of the well-formed sequence at the front of `s` (Unicode 15, table 3-7), or 0.
std::size_t sequence_length(std::string_view s) {
  const auto byte = [&](std::size_t i) {
    return i < s.size() ? static_cast<unsigned char>(s[i]) : 0U;
  };
  const auto between = [&](std::size_t i, unsigned low, unsigned high) {
    return byte(i) >= low && byte(i) <= high;
  };
  const unsigned first = byte(0);
  if (first < 0x80)
    return 1;
  if (first >= 0xC2 && first <= 0xDF)
    return between(1, 0x80, 0xBF) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const unsigned low = first == 0xE0 ? 0xA0 : 0x80;  // no overlong forms
    const unsigned high = first == 0xED ? 0x9F : 0xBF; // no surrogates
    return between(1, low, high) && between(2, 0x80, 0xBF) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const unsigned low = first == 0xF0 ? 0x90 : 0x80;
    const unsigned high = first == 0xF4 ? 0x8F : 0xBF; // up to U+10FFFF
    return between(1, low, high) && between(2, 0x80, 0xBF) && between(3, 0x80, 0xBF) ? 4 : 0;
  }
  return 0;
}

bool is_control(std::string_view sequence) {
  const auto first = static_cast<unsigned char>(sequence[0]);
  if (sequence.size() == 1)
    return first < 0x20 || first == 0x7F;
  return sequence.size() == 2 && first == 0xC2 && static_cast<unsigned char>(sequence[1]) < 0xA0;
}

template <class Keep>
std::string cleaned(std::string_view bytes, Keep&& keep) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const std::size_t length = sequence_length(bytes);
    const bool good = length > 0 && keep(bytes.substr(0, length));
    text += good ? bytes.substr(0, length) : kReplacement;
    bytes.remove_prefix(length > 0 ? length : 1);
  }
  return text;
}

} // namespace

std::string valid_utf8(std::string_view bytes) {
  return cleaned(bytes, [](std::string_view) { return true; });
}

std::string printable(std::string_view bytes, bool lines) {
  return cleaned(bytes, [lines](std::string_view sequence) {
    return !is_control(sequence) || (lines && sequence == "\n");
  });
}

std::string html_escaped(std::string_view text) {
  std::string html;
  html.reserve(text.size());
  constexpr std::string_view kSpecial = "&<>\"'";
  constexpr std::string_view kReferences[]{"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
  for (const char c : text) {
    if (const std::size_t at = kSpecial.find(c); at != std::string_view::npos)
      html += kReferences[at];
    else
      html += c;
  }
  return html;
}

std::string json_text(const nlohmann::ordered_json& value) {
  return value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string script_json(const nlohmann::ordered_json& value) {
  // Outside of strings JSON has none of these characters, so escaping the text escapes the strings.
  const std::string json = json_text(value);
  std::string safe;
  safe.reserve(json.size());
  for (std::size_t i = 0; i < json.size(); ++i) {
    const std::string_view next = std::string_view(json).substr(i, 3);
    if (next[0] == '<') {
      safe += "\\u003c";
    } else if (next[0] == '>') {
      safe += "\\u003e";
    } else if (next[0] == '&') {
      safe += "\\u0026";
    } else if (next == "\xE2\x80\xA8" || next == "\xE2\x80\xA9") {
      safe += next[2] == '\xA8' ? "\\u2028" : "\\u2029";
      i += 2;
    } else {
      safe += json[i];
    }
  }
  return safe;
}

} // namespace monet
