// Measured points: rows of a CSV file, or of a list in YAML. Used by the tables of collectives and
// of kernels.
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
  std::vector<std::string> cells; ///< one per column
  SourceLoc where;
};

/// Reads the points of a node: a scalar names a CSV file, and a list has rows with one cell per
/// column, in this order.
std::vector<PointRow> read_points(const YamlNode& node, std::span<const std::string_view> columns,
                                  const FileOpener& open, ProblemList& problems);

/// The value of a cell as a number in (0, 1e15]. Otherwise reports a problem and returns nullopt.
std::optional<double> positive_cell(const PointRow& row, std::size_t column, std::string_view name,
                                    ProblemList& problems);
/// The value of a cell as a whole number in [1, 2^40]. Otherwise reports a problem and returns
/// nullopt.
std::optional<std::int64_t> counted_cell(const PointRow& row, std::size_t column,
                                         std::string_view name, ProblemList& problems);

/// Reads the file `name`, relative to the folder of the file that names it at `where`. Throws
/// InputError with that place if the file cannot be read.
FileText open_beside(const std::string& name, const SourceLoc& where);

} // namespace monet
