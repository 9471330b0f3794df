#include "monet/cluster/device.hpp"

#include "monet/base/errors.hpp"
#include "monet/hardware/read_hardware.hpp"

#include <fmt/core.h>

namespace monet {

double ClusterDevice::memory_bytes() const {
  if (table)
    return table->memory_bytes;
  return chip && chip->offchip ? static_cast<double>(bytes_of(offchip_port(*chip).capacity)) : 0;
}

ClusterDevice read_cluster_device(const DeviceFile& file) {
  ClusterDevice device;
  if (file.kind == DeviceFile::Kind::table) {
    device.table = read_kernel_table(file.path);
    return device;
  }
  device.chip = read_chip(file.path);
  if (file.frequency_hz > 0)
    device.chip->frequency_hz = file.frequency_hz;
  if (device.chip->frequency_hz <= 0)
    throw InputError(
        file.where,
        fmt::format("chip '{}' has no frequency, so its cycles are no time", device.chip->name),
        "add frequency_hz to its file, or frequency_mhz here");
  return device;
}

void set_host_time(ClusterDevice& device, double host_ns_per_kernel, const SourceLoc& where) {
  if (!device.table)
    throw InputError(where, "'host_ns_per_kernel' is of devices that are kernel tables, and this "
                            "cluster's is a chip");
  device.table->host_ns_per_kernel = host_ns_per_kernel;
}

} // namespace monet
