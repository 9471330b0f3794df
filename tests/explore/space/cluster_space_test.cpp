// Spaces of clusters: what their designs are, and what is wrong with files.
#include "explore/toys.hpp"

#include "monet/base/files.hpp"
#include "monet/explore/space.hpp"

#include <gtest/gtest.h>

#include <map>

namespace monet::test {
namespace {

const std::string kClusterData = std::string(MONET_SOURCE_DIR) + "/data/cluster/";

/// `change` takes the place of the key that it begins with, or adds it; "key:" alone removes it.
std::string space_of_clusters(const std::vector<std::string>& changes = {}) {
  std::map<std::string, std::string> keys{
      {"cluster", "{file: " + kClusterData + "selene.yaml, devices: \"${devices}\"}"},
      {"workload",
       "{transformer: {layers: 4, hidden: 512, heads: 8, sequence: 256, vocabulary: 1024}}"},
      {"parameters", "{devices: [8, 16], tensor: [1, 2, 3], schedule: [gpipe, 1f1b]}"},
      {"parallel", "{data: rest, tensor: \"${tensor}\", pipeline: 2, schedule: \"${schedule}\", "
                   "global_batch: 32}"}};
  for (const std::string& change : changes) {
    const std::size_t colon = change.find(':');
    keys[change.substr(0, colon)] = change.substr(colon + 1);
  }
  std::string text;
  for (const auto& [key, value] : keys)
    text += value.empty() ? "" : key + ": " + value + "\n";
  return text;
}

Space parsed_clusters(const std::vector<std::string>& changes = {}) {
  return parse_space(space_of_clusters(changes), "clusters.yaml");
}

std::string wrong_with_clusters(const std::vector<std::string>& changes) {
  try {
    parsed_clusters(changes);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

void expect_said(const std::string& said, const std::string& part) {
  EXPECT_NE(said.find(part), std::string::npos) << part << "\n" << said;
}

TEST(ClusterSpace, DesignsAreClustersAndStrategies) {
  const Space space = parsed_clusters();
  ASSERT_TRUE(is_of_clusters(space));
  EXPECT_EQ(space.workload.runs, std::vector<std::string>{"training"});
  const std::vector<FrontRequest> fronts{{0, {Objective::latency, Objective::memory}}};
  EXPECT_EQ(space.fronts, fronts);
  const DesignId id = space.id_of({1, 1, 0});
  const DesignedCluster made = cluster_of(space, id);
  EXPECT_EQ(made.cluster.devices, 16);
  EXPECT_EQ(made.workload.transformer->layers, 4);
  EXPECT_TRUE(made.device.table.has_value());
  const ParallelStrategy strategy = strategy_of(space, id, 16);
  EXPECT_EQ(strategy.axes[AxisRole::data], 4); // 16 / (2 * 2)
  EXPECT_EQ(strategy.axes[AxisRole::tensor], 2);
  EXPECT_EQ(strategy.schedule, PipelineKind::gpipe);
  EXPECT_THROW(strategy_of(space, space.id_of({1, 2, 0}), 16), InfeasibleError); // 3 * 2
}

TEST(ClusterSpace, StrategiesShareAClusterAndNothingElseDoes) {
  const Space space = parsed_clusters();
  const auto key = [&](std::vector<std::uint32_t> choices) {
    return cluster_key(space, space.id_of(choices));
  };
  EXPECT_EQ(key({0, 0, 0}), key({0, 2, 1}));
  EXPECT_NE(key({0, 0, 0}), key({1, 0, 0}));
  const Space trained = parsed_clusters(
      {"parameters:{rate: [1, 2]}", "cluster:" + kClusterData + "dgx_a100.yaml",
       "parallel:{data: rest, global_batch: 32}",
       "training:{loss: cross_entropy, optimizer: {type: sgd, learning_rate: \"${rate / 10}\"}}"});
  EXPECT_NE(cluster_key(trained, 0), cluster_key(trained, 1));
  const Space tiers =
      parsed_clusters({"parameters:{tiers: [1, 3]}", "parallel:{data: rest, global_batch: 32}",
                       "cluster:{device: {table: " + kClusterData +
                           "a100.yaml}, tiers: [{for: {i: tiers}, name: \"tier ${i}\", size: 2, "
                           "bandwidth_gb_per_s: 1, latency_ns: 10}]}"});
  EXPECT_NE(cluster_key(tiers, 0), cluster_key(tiers, 1));
  EXPECT_EQ(cluster_of(tiers, 1).cluster.devices, 8);
}

TEST(ClusterSpace, KeysOfTheSpaceStandForThoseOfTheFile) {
  const Space space = parsed_clusters(
      {"parameters:{bandwidth: [25, 50], cluster: [dgx_a100, dgx_h100]}",
       "cluster:{file: \"" + kClusterData +
           "${cluster}.yaml\", host_ns_per_kernel: 7, tiers: [{name: links, size: 8, "
           "bandwidth_gb_per_s: \"${bandwidth}\", latency_ns: 1000}]}",
       "parallel:{data: rest, global_batch: 32}"});
  const DesignedCluster made = cluster_of(space, space.id_of({1, 0}));
  EXPECT_EQ(made.cluster.name, "DGX A100");
  ASSERT_EQ(made.cluster.tiers.size(), 1U);
  EXPECT_EQ(made.cluster.tiers[0].bandwidth_gb_per_s, 50);
  EXPECT_EQ(made.device.table->host_ns_per_kernel, 7);
  // Its files, and those that they name.
  for (const char* name : {"dgx_a100.yaml", "dgx_h100.yaml", "a100.yaml", "h100.yaml"})
    EXPECT_NE(std::ranges::find(space.files, kClusterData + name), space.files.end()) << name;
}

TEST(ClusterSpace, TheDeviceMayBeTheChipOfTheSpace) {
  const Space space = parsed_clusters(
      {"parameters:{chip: [edge_tpu, edge_tpu_22nm], size: [2, 4]}",
       "cluster:{tiers: [{name: net, size: \"${size}\", bandwidth_gb_per_s: 1, latency_ns: 10}]}",
       "chip:" + std::string(MONET_SOURCE_DIR) + "/data/hardware/${chip}.yaml",
       "parallel:{data: rest, global_batch: 32}"});
  EXPECT_EQ(space.fronts.size(), 3U);
  const DesignedCluster made = cluster_of(space, space.id_of({0, 1}));
  EXPECT_EQ(made.cluster.devices, 4);
  EXPECT_EQ(made.device.chip->name, space.chip(space.id_of({0, 1})).name);
}

TEST(ClusterSpace, WhatIsWrongIsSaidAtItsPlace) {
  // Lines are in the order of the keys.
  expect_said(wrong_with_clusters({"parallel:{datta: rest, global_batch: 32}"}),
              "clusters.yaml:2:12: unknown key 'datta'");
  expect_said(wrong_with_clusters({"parameters:{devices: [8], tensor: [], schedule: [gpipe]}"}),
              "clusters.yaml:3:36: parameter 'tensor' has no values");
  expect_said(
      wrong_with_clusters({"parameters:{devices: [8], tensor: [1], schedule: [1f1b, gipe]}"}),
      "clusters.yaml:2:68: 'gipe' is not one of gpipe, ");
  expect_said(wrong_with_clusters({"cluster:{file: " + kClusterData + "selene.yaml, nodes: 3}"}),
              "clusters.yaml:1:");
  expect_said(wrong_with_clusters({"cluster:{file: " + kClusterData + "selene.yaml, nodes: 3}"}),
              "unknown key 'nodes'");
  expect_said(wrong_with_clusters({"cluster:{file: nowhere.yaml}"}), "nowhere.yaml");
  expect_said(wrong_with_clusters({"parallel:{data: rest, tensor: rest, global_batch: 32}"}),
              "'data' and 'tensor' cannot both be the rest");
  expect_said(wrong_with_clusters({"parallel:{data: rest}"}), "needs 'global_batch'");
  expect_said(wrong_with_clusters({"parallel:"}), "clusters.yaml:1:1: key 'parallel' is missing");
  expect_said(wrong_with_clusters({"runs:[training]"}), "unknown key 'runs'");
  expect_said(wrong_with_clusters({"fronts:[{objectives: [latency, energy]}]"}),
              "clusters.yaml:2:9: kernel tables have no energy");
  expect_said(wrong_with_clusters({"fronts:[{objectives: [error]}]"}), "needs 'accuracy:'");
  expect_said(wrong_with_clusters(
                  {"workload:{batch: 4, transformer: {layers: 4, hidden: 512, heads: 8, sequence: "
                   "256, vocabulary: 1024}}"}),
              "'batch' follows from micro_batch and data");
  expect_said(wrong_with_clusters(
                  {"cluster:{device: {table: x.yaml}, tiers: []}",
                   "chip:" + std::string(MONET_SOURCE_DIR) + "/data/hardware/edge_tpu.yaml"}),
              "'chip:' defines the devices");
  expect_said(wrong_with_clusters({"parallel:{data: rest, global_batch: 32, variants: {tensor: {1: "
                                   "{zeor: 1}, 2: {}, 3: {}}}}"}),
              "unknown key 'zeor'");
}

TEST(ClusterSpace, TheExampleIsOneOfTheDocs) {
  const std::string root = std::string(MONET_SOURCE_DIR) + "/";
  const std::string docs = read_file(root + "docs/reference/space-file.md");
  const Space space = read_space(root + "examples/cluster/transformer_edge_space.yaml");
  EXPECT_EQ(space.size(), 12U);
  for (const Parameter& parameter : space.parameters)
    expect_said(docs, "  " + parameter.name + ": [" + parameter.values.front().text);
  EXPECT_EQ(strategy_of(space, space.id_of({1, 1, 0}), 4).axes[AxisRole::data], 2);
}

TEST(ClusterSpace, ItsHashChangesWithTheFilesThatItNames) {
  const Folder folder;
  const auto write = [&](const std::string& table) {
    for (const auto& entry : std::filesystem::directory_iterator(kClusterData)) {
      if (entry.path().extension() != ".md")
        write_file_atomically(folder / entry.path().filename().string(),
                              read_file(entry.path().string()) + "\n");
    }
    write_file_atomically(folder / "a100_nccl.csv",
                          read_file(kClusterData + "a100_nccl.csv") + table);
    write_file_atomically(
        folder / "space.yaml",
        space_of_clusters({"cluster:dgx_a100.yaml", "parameters:{tensor: [1, 2]}",
                           "parallel:{data: rest, tensor: \"${tensor}\", global_batch: 8}"}));
    return read_space(folder / "space.yaml").content_hash;
  };
  EXPECT_EQ(write(""), write(""));
  EXPECT_NE(write(""), write("# more\n"));
}

} // namespace
} // namespace monet::test
