// Reads a cluster file (YAML) into a Cluster: device, tiers, host link and unequal devices. All
// other parts of the cluster stage read its result.
#include "monet/cluster/cluster.hpp"

#include "base/shared/checked.hpp"
#include "base/shared/file_kind.hpp"
#include "cluster/network/points.hpp"

#include "monet/base/files.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace monet {

namespace {

constexpr std::array<std::string_view, kAlgorithms> kAlgorithmNames{
    "ring", "tree", "halving-doubling", "direct", "hierarchical", "table", "best"};
constexpr std::size_t kMaxUnequalDevices = 4096;
constexpr double kMaxBandwidth = 1e9;
constexpr double kMaxLatency = 1e9; // a second
constexpr double kMaxBytes = 1e15;

std::int64_t whole_figure(YamlMap& map, std::string_view key, std::int64_t least,
                          std::optional<std::int64_t> fallback, ProblemList& problems) {
  const YamlNode* node = fallback ? map.find(key) : map.require(key);
  if (node == nullptr)
    return fallback.value_or(1);
  return integer_within(*node, fmt::format("'{}'", key), least, kMaxDevices, problems).value_or(1);
}

DeviceFile read_device_file(const YamlNode& node, ProblemList& problems) {
  DeviceFile device;
  device.where = node.where;
  YamlMap map(node, problems);
  const bool table = map.has("table");
  const bool chip = map.has("chip");
  if (table == chip)
    problems.add(node.where, "a device is either {table: FILE} or {chip: FILE}");
  const std::string name = table  ? map.require_string("table")
                           : chip ? map.require_string("chip")
                                  : std::string();
  if (table && chip)
    map.ignore("chip");
  device.kind = table ? DeviceFile::Kind::table : DeviceFile::Kind::chip;
  device.path = resolve_beside(node.where.origin, name);
  if ((table || chip) && name.empty())
    problems.add(node.where, "the device's file has no name");
  if (chip && map.has("frequency_mhz"))
    device.frequency_hz =
        1e6 * figure_within(map, "frequency_mhz", 1e-3, 1e6, std::nullopt, problems);
  map.finish();
  return device;
}

TierTopology read_topology(YamlMap& map, ProblemList& problems) {
  const std::string name = map.string_or("topology", "switch");
  if (name == "switch")
    return TierTopology::switched;
  if (name == "ring")
    return TierTopology::ring;
  if (name != "fully-connected")
    problems.add(map.find("topology")->where,
                 fmt::format("unknown topology '{}'", name.substr(0, 30)),
                 "switch, ring or fully-connected");
  return TierTopology::fully_connected;
}

Tier read_tier(const YamlNode& node, const FileOpener& open, bool& sized, ProblemList& problems) {
  Tier tier;
  YamlMap map(node, problems);
  tier.name = map.require_string("name");
  sized = map.has("size");
  tier.size = whole_figure(map, "size", 1, 1, problems);
  tier.bandwidth_gb_per_s =
      figure_within(map, "bandwidth_gb_per_s", 1e-6, kMaxBandwidth, std::nullopt, problems);
  tier.latency_ns = figure_within(map, "latency_ns", 0, kMaxLatency, std::nullopt, problems);
  tier.topology = read_topology(map, problems);
  tier.oversubscription = figure_within(map, "oversubscription", 1, 1e6, 1.0, problems);
  if (const YamlNode* table = map.find("table"))
    tier.table = read_collective_table(*table, open, problems);
  map.finish();
  return tier;
}

/// Reads the list of tiers. Only the outermost tier may omit its size, which then follows from the
/// number of devices.
void read_tiers(const YamlNode& node, const YamlNode* devices, const FileOpener& open,
                Cluster& cluster, ProblemList& problems) {
  if (node.kind != YamlNode::Kind::sequence || node.items.empty() ||
      node.items.size() > kMaxTiers) {
    problems.add(node.where, fmt::format("expected a list of 1 to {} tiers", kMaxTiers));
    return;
  }
  std::int64_t product = 1;
  bool sized = true;
  for (const YamlNode& item : node.items) {
    if (!sized)
      problems.add(item.where, "only the outermost tier may be without a size");
    cluster.tiers.push_back(read_tier(item, open, sized, problems));
    const std::string& name = cluster.tiers.back().name;
    if (std::ranges::count(cluster.tiers, name, &Tier::name) > 1)
      problems.add(item.where, fmt::format("tier '{}' is given twice", name.substr(0, 30)));
    product = std::min(checked_multiply(product, cluster.tiers.back().size), kMaxDevices + 1);
  }
  if (!sized && cluster.devices > 0 && cluster.devices % product == 0) {
    cluster.tiers.back().size = cluster.devices / product;
    product = cluster.devices;
  }
  if (devices == nullptr)
    cluster.devices = product;
  if (product > kMaxDevices)
    problems.add(node.where, fmt::format("more than {} devices", kMaxDevices));
  else if (product != cluster.devices)
    problems.add(devices->where,
                 fmt::format("{} devices, but the sizes of the tiers multiply to {}",
                             cluster.devices, product));
}

void read_host_link(const YamlNode& node, HostLink& link, ProblemList& problems) {
  YamlMap map(node, problems);
  link.bandwidth_gb_per_s =
      figure_within(map, "bandwidth_gb_per_s", 1e-6, kMaxBandwidth, std::nullopt, problems);
  link.latency_ns = figure_within(map, "latency_ns", 0, kMaxLatency, 0.0, problems);
  link.shared_by = whole_figure(map, "shared_by", 1, 1, problems);
  map.finish();
}

void read_unequal(const YamlNode& node, Cluster& cluster, ProblemList& problems) {
  if (node.kind != YamlNode::Kind::sequence || node.items.size() > kMaxUnequalDevices) {
    problems.add(node.where, fmt::format("expected a list of at most {}", kMaxUnequalDevices));
    return;
  }
  for (const YamlNode& item : node.items) {
    UnequalDevices some;
    YamlMap map(item, problems);
    some.first = whole_figure(map, "first", 0, std::nullopt, problems);
    some.count = whole_figure(map, "count", 1, 1, problems);
    some.speed = figure_within(map, "speed", 1e-6, 1e6, 1.0, problems);
    some.memory_bytes = figure_within(map, "memory_bytes", 0, kMaxBytes, 0.0, problems);
    if (const YamlNode* device = map.find("device"))
      some.device = read_device_file(*device, problems);
    map.finish();
    if (cluster.devices > 0 && some.first + some.count > cluster.devices)
      problems.add(item.where, fmt::format("devices {} to {} of a cluster of {}", some.first,
                                           some.first + some.count - 1, cluster.devices));
    for (const UnequalDevices& other : cluster.unequal) {
      if (some.first < other.first + other.count && other.first < some.first + some.count)
        problems.add(item.where,
                     fmt::format("device {} is given twice", std::max(some.first, other.first)));
    }
    cluster.unequal.push_back(std::move(some));
  }
  std::ranges::sort(cluster.unequal, {}, &UnequalDevices::first);
}

std::uint32_t read_algorithms(const YamlNode& node, ProblemList& problems) {
  std::uint32_t bits = 0;
  for (const std::string& name : as_strings(node, problems)) {
    const auto found = std::ranges::find(kAlgorithmNames, name);
    if (found == kAlgorithmNames.end() || *found == "best")
      problems.add(node.where, fmt::format("'{}' is not an algorithm", name.substr(0, 30)),
                   "ring, tree, halving-doubling, direct, hierarchical or table");
    else
      bits |= 1U << static_cast<unsigned>(found - kAlgorithmNames.begin());
  }
  if ((bits & 1U) == 0)
    problems.add(node.where, "'ring' must be among the algorithms: it does what others cannot");
  return bits;
}

} // namespace

std::string_view name_of(CollectiveAlgorithm algorithm) {
  return kAlgorithmNames[static_cast<std::size_t>(algorithm)];
}

double Cluster::speed_of(std::int64_t device_number) const {
  auto after = std::ranges::upper_bound(unequal, device_number, {}, &UnequalDevices::first);
  if (after == unequal.begin())
    return 1;
  --after;
  return device_number < after->first + after->count ? after->speed : 1;
}

Cluster make_cluster(const YamlNode& root, const std::string& origin, const FileOpener& open) {
  require_kind(root, {FileKind::cluster});
  ProblemList problems;
  YamlMap map(root, problems);
  Cluster cluster;
  cluster.origin = origin;
  cluster.name = map.require_string("name");
  map.ignore("source");
  if (const YamlNode* device = map.require("device"))
    cluster.device = read_device_file(*device, problems);
  const YamlNode* devices = map.find("devices");
  if (devices != nullptr)
    cluster.devices = whole_figure(map, "devices", 1, std::nullopt, problems);
  if (const YamlNode* tiers = map.require("tiers"))
    read_tiers(*tiers, devices, open, cluster, problems);
  cluster.memory_bytes = figure_within(map, "memory_bytes", 0, kMaxBytes, 0.0, problems);
  if (const YamlNode* link = map.find("host_link"))
    read_host_link(*link, cluster.host_link, problems);
  if (const YamlNode* unequal = map.find("unequal"))
    read_unequal(*unequal, cluster, problems);
  if (const YamlNode* algorithms = map.find("algorithms"))
    cluster.algorithms = read_algorithms(*algorithms, problems);
  map.finish();
  problems.throw_if_any();
  return cluster;
}

Cluster parse_cluster(std::string_view text, const std::string& origin, const FileOpener& open) {
  return make_cluster(parse_yaml(text, origin), origin, open);
}

Cluster read_cluster(const std::string& path) {
  constexpr std::size_t kMax = std::size_t{1} << 22;
  return parse_cluster(read_file(path, kMax), path, open_beside);
}

Cluster with_devices(const Cluster& cluster, std::int64_t devices) {
  const auto refuse = [&](const std::string& why) {
    throw InfeasibleError(
        fmt::format("cluster '{}' cannot have {} devices: {}", cluster.name, devices, why));
  };
  if (devices < 1 || devices > kMaxDevices)
    refuse(fmt::format("1 to {} are possible", kMaxDevices));
  Cluster result = cluster;
  result.devices = devices;
  std::int64_t rest = devices;
  for (std::size_t t = 0; t < result.tiers.size(); ++t) {
    Tier& tier = result.tiers[t];
    if (t + 1 == result.tiers.size() || rest <= tier.size)
      tier.size = rest;
    if (rest % tier.size != 0)
      refuse(fmt::format("{} units of tier '{}' hold {} each, {} are left over", rest / tier.size,
                         tier.name, tier.size, rest % tier.size));
    rest /= tier.size;
  }
  if (!result.unequal.empty() &&
      result.unequal.back().first + result.unequal.back().count > devices)
    refuse(fmt::format("devices up to {} are described one by one",
                       result.unequal.back().first + result.unequal.back().count - 1));
  return result;
}

} // namespace monet
