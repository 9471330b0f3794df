#include "monet/report/text.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace monet {

namespace {

constexpr std::size_t kMostColumns = 100; ///< of a cell

std::string padded(std::string_view text, std::size_t width, bool right) {
  const std::string fill(width - std::min(width, terminal_columns(text)), ' ');
  return right ? fill + std::string(text) : std::string(text) + fill;
}

} // namespace

std::string aligned_table(const std::vector<std::vector<std::string>>& given) {
  std::vector<std::vector<std::string>> rows = given;
  std::vector<std::size_t> widths(rows.front().size());
  for (auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = clipped(printable(row[i]), kMostColumns);
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
