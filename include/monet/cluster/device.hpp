// What a cluster file names as its device, read: a kernel table, or a chip with a frequency.
#pragma once

#include "monet/cluster/cluster.hpp"
#include "monet/cluster/kernel_table.hpp"
#include "monet/hardware/chip.hpp"

#include <optional>

namespace monet {

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

/// The host's time a kernel, as given at `where`. InputError there where the device is a chip.
void set_host_time(ClusterDevice& device, double host_ns_per_kernel, const SourceLoc& where);

} // namespace monet
