// A cluster: devices, and the tiers of links that join them.
// docs/reference/cluster-file.md describes the files.
#pragma once

#include "monet/cluster/collective_table.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// How a tier joins its units.
enum class TierTopology : std::uint8_t {
  switched,        ///< any device to any other at its whole bandwidth
  ring,            ///< to two neighbours, half of its bandwidth each
  fully_connected, ///< a link to each of the others, which share its bandwidth evenly
};

/// One step outward: so many units of the tier below (devices, for the first) become one.
struct Tier {
  std::string name;
  std::int64_t size = 1; ///< units joined, at least 1
  /// GB/s (bytes per nanosecond) that each device below may send over this tier, one direction, all
  /// its links together; it may receive as much meanwhile.
  double bandwidth_gb_per_s = 0;
  double latency_ns = 0; ///< of a message, from end to end
  TierTopology topology = TierTopology::switched;
  /// By how much the tier's inner links are narrower than the sum of its devices': every device's
  /// bandwidth is divided by it when all send, which is what we assume. At least 1.
  double oversubscription = 1;
  CollectiveTable table; ///< measured inside one unit of this tier; may be empty

  /// Bandwidth over oversubscription.
  double share_gb_per_s() const { return bandwidth_gb_per_s / oversubscription; }
};

/// What computes: a table of measured kernels, or a chip that is modelled.
struct DeviceFile {
  enum class Kind : std::uint8_t { table, chip };
  Kind kind = Kind::table;
  std::string path;        ///< as seen from the process: the cluster file's folder is put before it
  double frequency_hz = 0; ///< of a chip, instead of its file's; 0 = as the file says
  SourceLoc where;
};

/// Devices that are not like the others.
struct UnequalDevices {
  std::int64_t first = 0;
  std::int64_t count = 0;
  double speed = 1;                 ///< times are divided by it
  std::optional<DeviceFile> device; ///< none: the cluster's
  double memory_bytes = 0;          ///< 0 = as the others
};

/// Between a device and its host's memory.
struct HostLink {
  double bandwidth_gb_per_s = 0; ///< one direction; 0 = there is none
  double latency_ns = 0;
  std::int64_t shared_by = 1; ///< devices that share the bandwidth when all use it
};

/// The algorithms that the cluster's communication library has: `best` takes one of them.
enum class CollectiveAlgorithm : std::uint8_t {
  ring,
  tree,
  halving_doubling,
  direct,
  hierarchical,
  table,
  best,
};
inline constexpr std::size_t kAlgorithms = 7;
std::string_view name_of(CollectiveAlgorithm algorithm);

inline constexpr std::size_t kMaxTiers = 8;
inline constexpr std::int64_t kMaxDevices = std::int64_t{1} << 30;

struct Cluster {
  std::string name;
  std::string origin;
  DeviceFile device;
  std::int64_t devices = 0;            ///< the product of the tiers' sizes
  std::vector<Tier> tiers;             ///< from the innermost outward
  double memory_bytes = 0;             ///< per device; 0 = as its file says
  HostLink host_link;                  ///< none: as the device's file says
  std::vector<UnequalDevices> unequal; ///< by `first`, none overlaps another
  std::uint32_t algorithms = 0x3f;     ///< a bit for each that the library has

  bool has(CollectiveAlgorithm algorithm) const {
    return ((algorithms >> static_cast<unsigned>(algorithm)) & 1U) != 0;
  }
  /// 1, or the relative speed of an unequal device.
  double speed_of(std::int64_t device_number) const;
};

/// A cluster file. One InputError with every problem found; files it names are seen from its
/// folder. Tables of collectives are read, devices are not (see device.hpp).
Cluster read_cluster(const std::string& path);
/// The same from text; tables of collectives come through `open`.
Cluster parse_cluster(std::string_view text, const std::string& origin, const FileOpener& open);
/// The same from a parsed file; what parts of it name is seen from the files that these are of.
Cluster make_cluster(const YamlNode& root, const std::string& origin, const FileOpener& open);

/// The same cluster with more or fewer devices: the outermost tier joins more or fewer units, and
/// tiers that are not filled any more shrink. InfeasibleError when the devices do not fill whole
/// units, or when unequal devices would be cut off.
Cluster with_devices(const Cluster& cluster, std::int64_t devices);

} // namespace monet
