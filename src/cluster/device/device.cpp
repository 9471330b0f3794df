// The device of a cluster: reads its kernel table or chip, and overrides figures of a table. Called
// by the cluster commands and by exploration.
#include "monet/base/errors.hpp"
#include "monet/base/yaml.hpp"
#include "monet/cluster/kernel_table.hpp"
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
        fmt::format("chip '{}' has no frequency, so its cycles cannot be converted to time",
                    device.chip->name),
        "add frequency_hz to its file, or frequency_mhz here");
  return device;
}

std::optional<GivenFigure> read_figure(const TableFigure& figure, const YamlNode& node,
                                       ProblemList& problems) {
  const std::optional<double> value = as_number(node, problems);
  if (!value)
    return std::nullopt;
  if (*value >= figure.least && *value <= figure.most)
    return GivenFigure{figure, *value, node.where};
  problems.add(node.where,
               fmt::format("'{}' must be {:g} to {:g}", figure.key, figure.least, figure.most));
  return std::nullopt;
}

void set_figure(ClusterDevice& device, const GivenFigure& given) {
  if (!device.table)
    throw InputError(given.where, fmt::format("'{}' is of devices that are kernel tables, and this "
                                              "cluster's is a chip",
                                              given.figure.key));
  (*device.table).*given.figure.field = given.value;
}

} // namespace monet
