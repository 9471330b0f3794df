// The device that a cluster file names: a kernel table, or a chip with a frequency.
#pragma once

#include "monet/cluster/cluster.hpp"
#include "monet/cluster/kernel_table.hpp"
#include "monet/hardware/chip.hpp"

#include <optional>
#include <string_view>

namespace monet {

struct YamlNode;

/// A device: either a kernel table or a chip, never both.
struct ClusterDevice {
  std::optional<KernelTable> table;
  std::optional<Chip> chip; ///< `frequency_hz` is positive

  /// Memory in bytes: the table's, or that of the chip's off-chip memory; 0 for a chip without one.
  double memory_bytes() const;
};

/// Reads the device. Throws InputError with every problem of the file. A chip without a frequency
/// in its file or the cluster's is an error at the position that names the chip.
ClusterDevice read_cluster_device(const DeviceFile& file);

/// Parameters of a kernel table that an experiment may override, concerning its host and its
/// libraries.
struct TableFigure {
  std::string_view key;
  double least = 0, most = 0;
  double KernelTable::*field;
};
inline constexpr TableFigure kTableFigures[]{
    {"host_ns_per_kernel", 0, 1e9, &KernelTable::host_ns_per_kernel},
    {"attention_share", 1e-6, 1, &KernelTable::attention_share},
};
/// A parameter of a kernel table with its value from an experiment.
struct GivenFigure {
  TableFigure figure;
  double value = 0;
  SourceLoc where;
};
/// Reads the value of a parameter. A value that is not a number or out of range adds a problem and
/// yields nullopt.
std::optional<GivenFigure> read_figure(const TableFigure& figure, const YamlNode& node,
                                       ProblemList& problems);
/// Overrides a parameter of the kernel table. Throws InputError if the device is a chip.
void set_figure(ClusterDevice& device, const GivenFigure& given);

} // namespace monet
