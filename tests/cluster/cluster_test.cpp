// Cluster files: what is read, what is refused, and sizes that change.
#include "monet/base/errors.hpp"
#include "monet/cluster/cluster.hpp"
#include "monet/cluster/kernel_table.hpp"

#include <gtest/gtest.h>

#include <filesystem>

namespace monet {
namespace {

const std::string kData = std::string(MONET_SOURCE_DIR) + "/data/cluster/";

FileText nothing_there(const std::string& name, const SourceLoc& where) {
  throw InputError(where, "no file '" + name + "'");
}

TEST(ClusterFile, IsReadWithItsTiersAndPaths) {
  const Cluster cluster = parse_cluster(R"(
name: two nodes
device: {chip: ../hardware/fusemax.yaml, frequency_mhz: 500}
devices: 16
tiers:
  - {name: nvlink, size: 8, bandwidth_gb_per_s: 300, latency_ns: 2000, topology: fully-connected}
  - {name: ib, bandwidth_gb_per_s: 25, latency_ns: 5000, oversubscription: 2}
host_link: {bandwidth_gb_per_s: 25, latency_ns: 10, shared_by: 2}
memory_bytes: 80e9
unequal: [{first: 8, count: 4, speed: 0.5}]
algorithms: [ring, tree]
)",
                                        "some/folder/c.yaml", nothing_there);
  EXPECT_EQ(cluster.device.path, "some/hardware/fusemax.yaml");
  EXPECT_EQ(cluster.device.frequency_hz, 500e6);
  EXPECT_EQ(cluster.devices, 16);
  ASSERT_EQ(cluster.tiers.size(), 2U);
  EXPECT_EQ(cluster.tiers[0].topology, TierTopology::fully_connected);
  EXPECT_EQ(cluster.tiers[1].size, 2); // what the devices leave
  EXPECT_EQ(cluster.tiers[1].share_gb_per_s(), 12.5);
  EXPECT_EQ(cluster.host_link.shared_by, 2);
  EXPECT_EQ(cluster.memory_bytes, 80e9);
  EXPECT_TRUE(cluster.has(CollectiveAlgorithm::tree));
  EXPECT_FALSE(cluster.has(CollectiveAlgorithm::direct));
  EXPECT_EQ(cluster.speed_of(7), 1);
  EXPECT_EQ(cluster.speed_of(8), 0.5);
  EXPECT_EQ(cluster.speed_of(11), 0.5);
  EXPECT_EQ(cluster.speed_of(12), 1);
}

TEST(ClusterFile, OfEachOfOursIsReadWithItsDevice) {
  std::size_t clusters = 0;
  for (const std::string name : {"dgx_a100", "selene", "dgx_h100", "edge_tpu_x4", "fusemax_x8"}) {
    SCOPED_TRACE(name);
    const Cluster cluster = read_cluster(kData + name + ".yaml");
    const ClusterDevice device = read_cluster_device(cluster.device);
    EXPECT_NE(device.table.has_value(), device.chip.has_value());
    EXPECT_GT(device.memory_bytes(), 0);
    ++clusters;
  }
  EXPECT_EQ(clusters, 5U);
}

TEST(ClusterFile, OfAChipWithoutAFrequencyNamesThePlace) {
  DeviceFile file;
  file.kind = DeviceFile::Kind::chip;
  file.path = std::string(MONET_SOURCE_DIR) + "/data/hardware/cores/tpu_like_pe.yaml";
  file.where = {"c.yaml", 3, 9, {}};
  try {
    read_cluster_device(file);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.problems().front().where.to_string(), "c.yaml:3:9");
    EXPECT_NE(std::string(error.what()).find("has no frequency"), std::string::npos);
  }
  file.frequency_hz = 1e9;
  EXPECT_EQ(read_cluster_device(file).chip->frequency_hz, 1e9);
}

TEST(ClusterSize, FillsTheInnerTiersFirst) {
  const Cluster selene = read_cluster(kData + "selene.yaml");
  const Cluster few = with_devices(selene, 4);
  EXPECT_EQ(few.tiers[0].size, 4);
  EXPECT_EQ(few.tiers[1].size, 1);
  const Cluster many = with_devices(selene, 3072);
  EXPECT_EQ(many.tiers[0].size, 8);
  EXPECT_EQ(many.tiers[1].size, 384);
  EXPECT_EQ(many.devices, 3072);
  EXPECT_THROW(with_devices(selene, 12), InfeasibleError);
  EXPECT_THROW(with_devices(selene, 0), InfeasibleError);
}

} // namespace
} // namespace monet
