// The figures of docs/validation.md for two chips that have been measured.
#include "cli/run_monet.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <map>

namespace monet::test {
namespace {

struct Measured {
  const char* chip;
  const char* network;
  const char* mapping;
};

constexpr Measured kDiana{"diana", "diana_resnet18", "diana"};
constexpr Measured kJia{"jia_4x4", "jia_resnet50", "jia"};

nlohmann::json scheduled(const Measured& one, const std::vector<std::string>& more) {
  std::vector<std::string> arguments{
      "schedule",
      "--hardware",
      repository(std::string("data/hardware/") + one.chip + ".yaml"),
      "--workload",
      repository(std::string("data/workload/") + one.network + ".onnx"),
      "--mapping",
      repository(std::string("examples/stream/") + one.mapping + "_mapping.yaml"),
      "--json",
      "-"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Ran ran = run_monet(arguments);
  EXPECT_EQ(ran.code, 0) << ran.err;
  return nlohmann::json::parse(ran.out);
}

std::int64_t ours(const Measured& one, const std::string& mode) {
  const nlohmann::json json =
      scheduled(one, {"--mode", mode, "--verify", "--precision",
                      "{weights: int8, activations: int8, accumulate: int16}"});
  return json.at("latency_cycles").get<std::int64_t>();
}

std::int64_t coala(const Measured& one) {
  return scheduled(one, {"--model", "stream-coala", "--mode", "fused"})
      .at("latency_cycles")
      .get<std::int64_t>();
}

TEST(Silicon, Diana) {
  EXPECT_EQ(ours(kDiana, "fused"), 541'106);
  EXPECT_EQ(ours(kDiana, "auto"), 541'106);
  EXPECT_EQ(ours(kDiana, "layer-by-layer"), 709'339);
  EXPECT_EQ(coala(kDiana), 991'381);
}

TEST(Silicon, JiasArray) {
  EXPECT_EQ(ours(kJia, "fused"), 67'848);
  EXPECT_EQ(ours(kJia, "auto"), 67'848);
  EXPECT_EQ(ours(kJia, "layer-by-layer"), 250'112);
  EXPECT_EQ(coala(kJia), 72'888);
}

TEST(Silicon, WeightsOfDianasCoresAreTwoMemories) {
  std::map<std::string, std::int64_t> capacities;
  const nlohmann::json json = scheduled(kDiana, {"--model", "stream-coala", "--mode", "fused"});
  for (const auto& memory : json.at("memory_peaks"))
    capacities[memory.at("memory").get<std::string>() + memory.at("cores").dump()] =
        memory.at("capacity_bits").get<std::int64_t>();
  constexpr std::int64_t kKiB = 8192;
  EXPECT_EQ(capacities.at("l1_w[0]"), 64 * kKiB);
  EXPECT_EQ(capacities.at("l1_w[2]"), 256 * kKiB);
  EXPECT_EQ(capacities.at("sram_256KB[0,1,2,3]"), 256 * kKiB);
}

} // namespace
} // namespace monet::test
