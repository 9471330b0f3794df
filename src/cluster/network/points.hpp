// Measured points: rows of a CSV file, or of a list in YAML.
#pragma once

#include "monet/base/yaml.hpp"
#include "monet/hardware/read_hardware.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

struct PointRow {
  std::vector<std::string> cells; ///< one a column
  SourceLoc where;
};

/// A scalar names a CSV file; a list has rows with a cell for each column, in this order.
std::vector<PointRow> read_points(const YamlNode& node, std::span<const std::string_view> columns,
                                  const FileOpener& open, ProblemList& problems);

/// A cell as a number that is more than 0; a problem, and nothing, where it is none.
std::optional<double> positive_cell(const PointRow& row, std::size_t column, std::string_view name,
                                    ProblemList& problems);
/// The same for whole numbers up to 2^40.
std::optional<std::int64_t> counted_cell(const PointRow& row, std::size_t column,
                                         std::string_view name, ProblemList& problems);

/// Opens what a file names beside that file.
FileText open_beside(const std::string& name, const SourceLoc& where);

} // namespace monet
