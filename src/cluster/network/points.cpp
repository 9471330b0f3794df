// Reads measured points from a CSV file or from rows in YAML. Used by the tables of collectives and
// of kernels.
#include "cluster/network/points.hpp"

#include "base/shared/text.hpp"

#include "monet/base/files.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace monet {

namespace {

constexpr std::size_t kMaxRows = 100'000;
constexpr std::size_t kMaxPointsBytes = std::size_t{1} << 24;

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  for (const std::string_view cell : split(line, ',', 64))
    cells.push_back(trimmed(cell));
  return cells;
}

std::string joined(std::span<const std::string_view> names) {
  std::string text;
  for (const std::string_view name : names)
    text += (text.empty() ? "" : ",") + std::string(name);
  return text;
}

/// The position of each column in the file, or empty if the header does not match the columns.
std::vector<std::size_t> order_of(std::string_view header,
                                  std::span<const std::string_view> columns) {
  const std::vector<std::string_view> names = cells_of(header);
  std::vector<std::size_t> order;
  for (const std::string_view column : columns) {
    const auto found = std::ranges::find(names, column);
    if (found == names.end() || std::ranges::count(names, column) != 1)
      return {};
    order.push_back(static_cast<std::size_t>(found - names.begin()));
  }
  return names.size() == columns.size() ? order : std::vector<std::size_t>{};
}

void add_row(std::string_view line, const SourceLoc& where, const std::vector<std::size_t>& order,
             std::span<const std::string_view> columns, std::vector<PointRow>& rows,
             ProblemList& problems) {
  const std::vector<std::string_view> cells = cells_of(line);
  if (cells.size() != columns.size()) {
    problems.add(where, fmt::format("a row of {} cells: {}", columns.size(), joined(columns)));
    return;
  }
  PointRow row{{}, where};
  for (std::size_t c = 0; c < columns.size(); ++c) {
    if (cells[order[c]].empty())
      problems.add(where, fmt::format("a hole: '{}' is missing", columns[c]));
    row.cells.emplace_back(cells[order[c]]);
  }
  if (std::ranges::none_of(row.cells, [](const std::string& cell) { return cell.empty(); }))
    rows.push_back(std::move(row));
}

PointRow row_of(const YamlNode& node, std::span<const std::string_view> columns,
                ProblemList& problems) {
  PointRow row{{}, node.where};
  const bool scalars = std::ranges::all_of(node.items, [](const YamlNode& cell) {
    return cell.kind == YamlNode::Kind::scalar && !cell.scalar.empty();
  });
  if (node.kind == YamlNode::Kind::sequence && node.items.size() == columns.size() && scalars) {
    for (const YamlNode& cell : node.items)
      row.cells.push_back(cell.scalar);
  } else {
    problems.add(node.where, fmt::format("expected a row [{}]", joined(columns)));
  }
  return row;
}

/// Parses CSV: a header with exactly these columns, in any order, then the rows. Empty lines and
/// lines that begin with # are skipped. A row with a wrong number of cells or an empty cell is
/// reported as a problem.
std::vector<PointRow> parse_points(std::string_view text, const std::string& origin,
                                   std::span<const std::string_view> columns,
                                   ProblemList& problems) {
  std::vector<PointRow> rows;
  std::vector<std::size_t> order;
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    const SourceLoc where{origin, ++number, 1, {}};
    const std::string_view content =
        !line.empty() && line.back() == '\r' ? trimmed(line.substr(0, line.size() - 1)) : line;
    if (content.empty() || content.front() == '#')
      continue;
    if (order.empty()) {
      order = order_of(content, columns);
      if (order.empty()) {
        problems.add(where, fmt::format("expected the columns {}", joined(columns)));
        return {};
      }
    } else if (rows.size() == kMaxRows) {
      problems.add(where, fmt::format("more than {} rows", group_digits(kMaxRows)));
      return {};
    } else {
      add_row(content, where, order, columns, rows, problems);
    }
  }
  if (order.empty())
    problems.add({origin, 1, 1, {}}, fmt::format("expected the columns {}", joined(columns)));
  return rows;
}

} // namespace

std::vector<PointRow> read_points(const YamlNode& node, std::span<const std::string_view> columns,
                                  const FileOpener& open, ProblemList& problems) {
  if (node.kind == YamlNode::Kind::scalar) {
    try {
      const FileText file = open(node.scalar, node.where);
      return parse_points(file.text, file.path, columns, problems);
    } catch (const InputError& error) {
      problems.add(error.problems());
      return {};
    }
  }
  std::vector<PointRow> rows;
  if (node.kind != YamlNode::Kind::sequence || node.items.empty() || node.items.size() > kMaxRows) {
    problems.add(node.where, fmt::format("expected a CSV file or rows [{}]", joined(columns)));
    return rows;
  }
  for (const YamlNode& item : node.items) {
    if (PointRow row = row_of(item, columns, problems); !row.cells.empty())
      rows.push_back(std::move(row));
  }
  return rows;
}

std::optional<double> positive_cell(const PointRow& row, std::size_t column, std::string_view name,
                                    ProblemList& problems) {
  constexpr double kMax = 1e15;
  const std::string& cell = row.cells[column];
  if (const auto value = number_in<double>(cell); value && *value > 0 && *value <= kMax)
    return value;
  problems.add(row.where, fmt::format("'{}' must be a number more than 0 and at most {:g}, is '{}'",
                                      name, kMax, cell.substr(0, 30)));
  return std::nullopt;
}

std::optional<std::int64_t> counted_cell(const PointRow& row, std::size_t column,
                                         std::string_view name, ProblemList& problems) {
  constexpr double kMax = 1099511627776.0;
  const std::optional<double> value = positive_cell(row, column, name, problems);
  if (!value || (std::floor(*value) == *value && *value <= kMax))
    return value ? std::optional<std::int64_t>(static_cast<std::int64_t>(*value)) : std::nullopt;
  problems.add(row.where, fmt::format("'{}' must be a whole number up to 2^40, is '{}'", name,
                                      row.cells[column].substr(0, 30)));
  return std::nullopt;
}

FileText open_beside(const std::string& name, const SourceLoc& where) {
  const std::string path = resolve_beside(where.origin, name);
  try {
    return {path, read_file(path, kMaxPointsBytes)};
  } catch (const InputError& error) {
    throw InputError(where, fmt::format("cannot open the file that is named here: {}",
                                        error.problems().front().to_string()));
  }
}

} // namespace monet
