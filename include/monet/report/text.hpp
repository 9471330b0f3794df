// Names from user files as text that is safe where it is shown: ONNX strings are arbitrary bytes.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// The same text; every ill-formed UTF-8 sequence becomes one U+FFFD.
std::string valid_utf8(std::string_view bytes);

/// valid_utf8 for terminals and tables: control characters, which could move the cursor, and
/// characters that cannot be seen or turn the direction of writing become U+FFFD. Line feeds stay
/// when `lines` is true.
std::string printable(std::string_view bytes, bool lines = false);

/// Columns of a terminal that printable text takes: two for wide characters (of China, Japan,
/// Korea, pictures), none for marks that go onto the character before.
std::size_t terminal_columns(std::string_view text);

/// Printable text of at most so many columns, seven or more: of a longer one the beginning and the
/// end, ".." between.
std::string clipped(std::string_view text, std::size_t columns);

/// & < > " ' as character references.
std::string html_escaped(std::string_view text);

/// Compact JSON text, doubles as the shortest decimal that reads back the same.
std::string json_text(const nlohmann::ordered_json& value);

/// json_text for inside <script>: < > & U+2028 U+2029 as \u escapes, so that no name can end the
/// element.
std::string script_json(const nlohmann::ordered_json& value);

/// Rows as text with aligned columns and a rule below the first row; the first column flush left,
/// the others right. All rows have as many cells as the first. Cells are made printable, and
/// clipped at 100 columns.
std::string aligned_table(const std::vector<std::vector<std::string>>& rows);

/// Five significant digits with the prefix that keeps them readable: "12.345 uJ".
std::string human_energy(double picojoules);

} // namespace monet
