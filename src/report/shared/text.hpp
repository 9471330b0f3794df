// Text for display: names from user files made safe (ONNX strings are arbitrary bytes), tables and
// numbers.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// Text in which every ill-formed UTF-8 sequence is replaced by one U+FFFD.
std::string valid_utf8(std::string_view bytes);

/// Text that is safe in terminals and tables: valid_utf8() of the bytes, with some characters
/// replaced by U+FFFD. These are control characters (which could move the cursor), invisible
/// characters and characters that change the direction of writing. Line feeds remain if `lines` is
/// true.
std::string printable(std::string_view bytes, bool lines = false);

/// Width of printable text in terminal columns: two for wide characters (Chinese, Japanese, Korean,
/// pictures), zero for combining marks.
std::size_t terminal_columns(std::string_view text);

/// Printable text of at most `columns` columns, which must be seven or more. Longer text keeps its
/// beginning and end, with ".." between.
std::string clipped(std::string_view text, std::size_t columns);

/// Text with & < > " ' as character references.
std::string html_escaped(std::string_view text);

/// Compact JSON text, with doubles as the shortest decimals that read back the same.
std::string json_text(const nlohmann::ordered_json& value);

/// JSON text for use inside <script>: json_text() with < > & U+2028 U+2029 as \u escapes, so that
/// no name can end the element.
std::string script_json(const nlohmann::ordered_json& value);

/// Table with aligned columns and a rule below the first row. The first column is flush left, the
/// others flush right. All rows must have the same number of cells. Cells are made printable and
/// clipped at 100 columns.
std::string aligned_table(const std::vector<std::vector<std::string>>& rows);

/// Layers of a result by their cycles on the critical path, in descending order.
std::vector<const nlohmann::ordered_json*>
layers_by_critical_path(const nlohmann::ordered_json& layers);

/// Energy with five significant digits and a readable prefix, such as "12.345 uJ".
std::string human_energy(double picojoules);

} // namespace monet
