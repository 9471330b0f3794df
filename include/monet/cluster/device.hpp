// What a cluster file names as its device, read: a kernel table, or a chip with a frequency.
#pragma once

#include "monet/cluster/cluster.hpp"
#include "monet/cluster/kernel_table.hpp"
#include "monet/hardware/chip.hpp"

#include <optional>
#include <string_view>

namespace monet {

struct YamlNode;

/// Exactly one of both.
struct ClusterDevice {
  std::optional<KernelTable> table;
  std::optional<Chip> chip; ///< `frequency_hz` is more than 0

  /// Of the table, or of the chip's off-chip memory; 0 where a chip has none.
  double memory_bytes() const;
};

/// InputError with every problem of the file, and, at the place that names the chip, when neither
/// its file nor the cluster's says its frequency.
ClusterDevice read_cluster_device(const DeviceFile& file);

/// Figures of a kernel table that experiments may give, of their host and their libraries.
struct TableFigure {
  std::string_view key;
  double least = 0, most = 0;
  double KernelTable::*field;
};
inline constexpr TableFigure kTableFigures[]{
    {"host_ns_per_kernel", 0, 1e9, &KernelTable::host_ns_per_kernel},
    {"attention_share", 1e-6, 1, &KernelTable::attention_share},
};
struct GivenFigure {
  TableFigure figure;
  double value = 0;
  SourceLoc where;
};
/// Nothing, and a problem, for what is no number or out of its range.
std::optional<GivenFigure> read_figure(const TableFigure& figure, const YamlNode& node,
                                       ProblemList& problems);
/// In place of the table's. InputError where the device is a chip.
void set_figure(ClusterDevice& device, const GivenFigure& given);

} // namespace monet
