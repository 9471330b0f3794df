// Makes text from user files safe for terminals, HTML and JSON, and aligns tables; used by all
// reports.
#include "report/shared/text.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <iterator>

namespace monet {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// Length in bytes of the well-formed UTF-8 sequence at the start of `s` (Unicode 15, table 3-7),
/// or 0.
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

/// Code point of a well-formed UTF-8 sequence.
char32_t code_point(std::string_view sequence) {
  constexpr unsigned kOfFirst[]{0x7F, 0x1F, 0x0F, 0x07};
  char32_t code = static_cast<unsigned char>(sequence[0]) & kOfFirst[sequence.size() - 1];
  for (const char c : sequence.substr(1))
    code = (code << 6) | (static_cast<unsigned char>(c) & 0x3FU);
  return code;
}

struct CodeRange {
  char32_t first, last;
};

template <std::size_t n>
bool is_in(const CodeRange (&ranges)[n], char32_t code) {
  return std::any_of(std::begin(ranges), std::end(ranges), [code](const CodeRange& range) {
    return code >= range.first && code <= range.last;
  });
}

/// Characters that are never printed: controls, direction marks and overrides, line separators, and
/// characters without width.
constexpr CodeRange kUnseen[]{{0, 0x1F},        {0x7F, 0x9F},     {0x61C, 0x61C},
                              {0x200B, 0x200F}, {0x2028, 0x202E}, {0x2060, 0x206F},
                              {0xFEFF, 0xFEFF}, {0xFFF9, 0xFFFB}, {0xE0000, 0xE007F}};

/// Large blocks of Unicode 15 with wide characters (kWide) and with characters without width
/// (kMarks).
constexpr CodeRange kWide[]{
    {0x1100, 0x115F},   {0x2E80, 0x303E},   {0x3041, 0xA4CF},  {0xA960, 0xA97C}, {0xAC00, 0xD7A3},
    {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},  {0xFFE0, 0xFFE6}, {0x1F300, 0x1F64F},
    {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD}};
constexpr CodeRange kMarks[]{{0x300, 0x36F},   {0x483, 0x489},    {0x591, 0x5BD},
                             {0x610, 0x61A},   {0x64B, 0x65F},    {0x1AB0, 0x1AFF},
                             {0x1DC0, 0x1DFF}, {0x20D0, 0x20FF},  {0xFE00, 0xFE0F},
                             {0xFE20, 0xFE2F}, {0xE0100, 0xE01EF}};

std::size_t columns_of_code(char32_t code) {
  if (code < kMarks[0].first)
    return 1;
  if (is_in(kMarks, code))
    return 0;
  return is_in(kWide, code) ? 2 : 1;
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

constexpr std::size_t kMaxColumns = 100; ///< maximum width of a cell

std::string padded(std::string_view text, std::size_t width, bool right) {
  const std::string fill(width - std::min(width, terminal_columns(text)), ' ');
  return right ? fill + std::string(text) : std::string(text) + fill;
}

} // namespace

std::string valid_utf8(std::string_view bytes) {
  return cleaned(bytes, [](std::string_view) { return true; });
}

std::string printable(std::string_view bytes, bool lines) {
  return cleaned(bytes, [lines](std::string_view sequence) {
    return !is_in(kUnseen, code_point(sequence)) || (lines && sequence == "\n");
  });
}

std::size_t terminal_columns(std::string_view text) {
  std::size_t columns = 0;
  for (std::size_t length = 0; !text.empty(); text.remove_prefix(length)) {
    length = std::max<std::size_t>(1, sequence_length(text));
    columns += columns_of_code(code_point(text.substr(0, length)));
  }
  return columns;
}

std::string clipped(std::string_view text, std::size_t columns) {
  if (terminal_columns(text) <= columns)
    return std::string(text);
  constexpr std::string_view kGap = "..";
  const std::size_t head = (columns - kGap.size()) / 2;
  std::size_t begin = 0; // bytes of the head
  for (std::size_t used = 0; begin < text.size();) {
    const std::size_t length = std::max<std::size_t>(1, sequence_length(text.substr(begin)));
    used += columns_of_code(code_point(text.substr(begin, length)));
    if (used > head)
      break;
    begin += length;
  }
  std::size_t end = begin; // where the tail begins
  const std::size_t tail = columns - kGap.size() - head;
  for (std::size_t left = terminal_columns(text.substr(end)); left > tail;) {
    const std::size_t length = std::max<std::size_t>(1, sequence_length(text.substr(end)));
    left -= columns_of_code(code_point(text.substr(end, length)));
    end += length;
  }
  return std::string(text.substr(0, begin)).append(kGap).append(text.substr(end));
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
  // JSON contains none of these characters outside strings, so escaping the text escapes the
  // strings.
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

std::string aligned_table(const std::vector<std::vector<std::string>>& given) {
  std::vector<std::vector<std::string>> rows = given;
  std::vector<std::size_t> widths(rows.front().size());
  for (auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = clipped(printable(row[i]), kMaxColumns);
      widths[i] = std::max(widths[i], terminal_columns(row[i]));
    }
  }
  std::string text;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::string line;
    std::size_t total = 0;
    for (std::size_t i = 0; i < rows[r].size(); ++i) {
      line += (i > 0 ? "  " : "") + padded(rows[r][i], widths[i], i > 0);
      total += widths[i] + (i > 0 ? 2 : 0);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
    if (r == 0)
      text += std::string(total, '-') + '\n';
  }
  return text;
}

std::string human_energy(double picojoules) {
  constexpr std::array kUnits{"pJ", "nJ", "uJ", "mJ", "J"};
  std::size_t unit = 0;
  for (; picojoules >= 1000 && unit + 1 < kUnits.size(); ++unit)
    picojoules /= 1000;
  return fmt::format("{:.5g} {}", picojoules, kUnits[unit]);
}

} // namespace monet
