// A cluster: devices, and the tiers of links that join them. docs/reference/cluster-file.md
// describes the files.
// Example:
//   Cluster selene_with(std::int64_t devices) {
//     return with_devices(read_cluster("data/cluster/selene.yaml"), devices);
//   }
#pragma once

#include "monet/base/errors.hpp"
#include "monet/base/yaml.hpp"
#include "monet/hardware/read_hardware.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace monet {

/// A collective operation in a group of ranks. Its bytes are those of its larger side per rank.
/// All-reduce and broadcast: the whole buffer. Reduce-scatter: the input of each rank. All-gather:
/// the output of each rank. All-to-all: the input of each rank, including its share for itself.
/// Point to point: the message.
enum class Collective : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  all_to_all,
  broadcast,
  point_to_point,
};
inline constexpr std::size_t kCollectives = 6;
/// Name of a collective: "all-reduce" and so on.
std::string_view name_of(Collective collective);
std::optional<Collective> collective_of(std::string_view name);

/// Measured times by collective, ranks and bytes; exact at the measured points.
/// Bytes: times are linear between two points of a curve. Beyond the last point they grow in
/// proportion to bytes, at that point's rate. Before the first point they follow the line through
/// the first two points if that line falls towards 0 bytes; otherwise they equal the first point's
/// time.
/// Ranks: times are linear in the logarithm of the ranks between two curves; the table covers
/// nothing outside of its curves. A reduce-scatter or all-gather without curves takes half of an
/// all-reduce of the same bytes, as in a ring.
class CollectiveTable {
public:
  struct Point {
    double bytes = 0;
    double nanoseconds = 0;
    friend bool operator==(const Point&, const Point&) = default;
  };
  struct Curve {
    Collective collective = Collective::all_reduce;
    std::int64_t ranks = 0;
    std::vector<Point> points; ///< sorted by bytes, without duplicates
  };

  CollectiveTable() = default;
  /// Builds a table from curves of at least two points each. Throws InternalError for fewer points
  /// and for points out of order.
  explicit CollectiveTable(std::vector<Curve> curves);

  bool empty() const { return curves_.empty(); }
  const std::vector<Curve>& curves() const { return curves_; }
  bool covers(Collective collective, std::int64_t ranks) const;
  /// Time in nanoseconds; throws InternalError if the table does not cover the arguments. Does not
  /// allocate.
  double nanoseconds(Collective collective, std::int64_t ranks, double bytes) const;

private:
  bool covers_itself(Collective collective, std::int64_t ranks) const;
  double interpolate(Collective collective, std::int64_t ranks, double bytes) const;

  std::vector<Curve> curves_; ///< sorted by collective, then ranks
};

/// Reads a table given as rows [collective, ranks, bytes, ns], or as the name of a CSV file with
/// these columns. Gaps, duplicate rows and curves of one point are added to `problems` with their
/// positions.
CollectiveTable read_collective_table(const YamlNode& node, const FileOpener& open,
                                      ProblemList& problems);

using Nanoseconds = std::int64_t;

/// Duration in whole nanoseconds, rounded up. Throws InternalError if it is negative, NaN or too
/// large.
inline Nanoseconds whole_nanoseconds(double nanoseconds) {
  constexpr double kLongest = 9e18; // 285 years
  internal_check(nanoseconds >= 0 && nanoseconds < kLongest, "a duration is out of range");
  return static_cast<Nanoseconds>(std::ceil(nanoseconds));
}

/// Topology of the links within a tier.
enum class TierTopology : std::uint8_t {
  switched,        ///< any device to any other at full bandwidth
  ring,            ///< a link to each of two neighbours, with half of the bandwidth each
  fully_connected, ///< a link to each of the others, which share the bandwidth evenly
};

/// One level of the network: `size` units of the tier below (devices for the innermost tier) form
/// one unit.
struct Tier {
  std::string name;
  std::int64_t size = 1; ///< units joined, at least 1
  /// Bandwidth of each device over this tier, all its links together, in one direction, in GB/s
  /// (bytes per nanosecond). A device can send and receive at this rate at the same time.
  double bandwidth_gb_per_s = 0;
  double latency_ns = 0; ///< end-to-end latency of a message
  TierTopology topology = TierTopology::switched;
  /// Oversubscription: the sum of the devices' bandwidths over the bandwidth of the tier's inner
  /// links, at least 1. All devices are assumed to send at once, so each has its bandwidth divided
  /// by this factor.
  double oversubscription = 1;
  CollectiveTable table; ///< measured within one unit of this tier; may be empty

  /// Bandwidth per device in GB/s, divided by the oversubscription.
  double share_gb_per_s() const { return bandwidth_gb_per_s / oversubscription; }
};

/// File that describes a device: a table of measured kernels, or a chip to be modelled.
struct DeviceFile {
  enum class Kind : std::uint8_t { table, chip };
  Kind kind = Kind::table;
  std::string path; ///< relative to the working directory, with the cluster file's folder prepended
  double frequency_hz = 0; ///< overrides the frequency in a chip's file; 0 = no override
  SourceLoc where;
};

/// A range of devices that differ from the others.
struct UnequalDevices {
  std::int64_t first = 0;
  std::int64_t count = 0;
  double speed = 1;                 ///< relative speed: times are divided by it
  std::optional<DeviceFile> device; ///< none: the cluster's device
  double memory_bytes = 0;          ///< 0 = same as the other devices
};

/// Link between a device and its host's memory.
struct HostLink {
  double bandwidth_gb_per_s = 0; ///< bandwidth in one direction; 0 = no link
  double latency_ns = 0;
  std::int64_t shared_by = 1; ///< devices that share the bandwidth if all use it
};

/// Algorithms of the cluster's communication library; `best` selects among the others.
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

/// A cluster, as read from a cluster file.
struct Cluster {
  std::string name;
  std::string origin;
  DeviceFile device;
  std::int64_t devices = 0;            ///< product of the tiers' sizes
  std::vector<Tier> tiers;             ///< innermost first
  double memory_bytes = 0;             ///< memory of a device; 0 = as in the device's file
  HostLink host_link;                  ///< no link: as in the device's file
  std::vector<UnequalDevices> unequal; ///< sorted by `first`, without overlaps
  std::uint32_t algorithms = 0x3f;     ///< bit mask of the algorithms that the library has

  bool has(CollectiveAlgorithm algorithm) const {
    return ((algorithms >> static_cast<unsigned>(algorithm)) & 1U) != 0;
  }
  /// Relative speed of a device; 1 unless it is an unequal device.
  double speed_of(std::int64_t device_number) const;
};

/// Reads a cluster file and its tables of collectives, but not its devices (see kernel_table.hpp).
/// Paths in it are relative to its folder. Throws one InputError with every problem found.
Cluster read_cluster(const std::string& path);
/// Parses the text of a cluster file; tables of collectives are read through `open`. Errors as
/// read_cluster().
Cluster parse_cluster(std::string_view text, const std::string& origin, const FileOpener& open);
/// Builds a cluster from a parsed file. Each path is resolved relative to the file in which it
/// occurs. Errors as read_cluster().
Cluster make_cluster(const YamlNode& root, const std::string& origin, const FileOpener& open);

/// Copy of a cluster with another number of devices: the outermost tier joins more or fewer units,
/// and tiers that are no longer full shrink. Throws InfeasibleError if the devices do not fill
/// whole units, or if unequal devices would be removed.
Cluster with_devices(const Cluster& cluster, std::int64_t devices);

} // namespace monet
