// The figures of docs/validation.md for chips that have been measured.
#include "cli/run_monet.hpp"

#include "monet/base/files.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <array>
#include <cmath>
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

std::int64_t coala(const Measured& one, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments{"--model", "stream-coala", "--mode", "fused"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return scheduled(one, arguments).at("latency_cycles").get<std::int64_t>();
}

TEST(Silicon, Diana) {
  if (!has_component("reference"))
    GTEST_SKIP();
  EXPECT_EQ(ours(kDiana, "fused"), 541'106);
  EXPECT_EQ(ours(kDiana, "auto"), 541'106);
  EXPECT_EQ(ours(kDiana, "layer-by-layer"), 709'339);
  EXPECT_EQ(coala(kDiana), 991'381);
  EXPECT_EQ(coala(kDiana, {"--pooling", "once"}), 885'958);
}

TEST(Silicon, JiasArray) {
  if (!has_component("reference"))
    GTEST_SKIP();
  EXPECT_EQ(ours(kJia, "fused"), 67'848);
  EXPECT_EQ(ours(kJia, "auto"), 67'848);
  EXPECT_EQ(ours(kJia, "layer-by-layer"), 250'112);
  EXPECT_EQ(coala(kJia), 72'888);
}

TEST(Silicon, WeightsOfDianasCoresAreTwoMemories) {
  if (!has_component("reference"))
    GTEST_SKIP();
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

struct Product {
  const char* name;
  double microseconds;
};

/// LLMCompass's products on an A100 in fp16 of which each dimension is at least 512.
constexpr std::array kProducts{
    Product{"512x12288x12288", 611.8},     Product{"1024x12288x12288", 1199},
    Product{"2048x12288x12288", 2358.6},   Product{"4096x12288x12288", 4457.6},
    Product{"8192x12288x12288", 8621.6},   Product{"16384x12288x12288", 17030.7},
    Product{"32768x12288x12288", 35440.7}, Product{"8192x512x512", 47.1},
    Product{"8192x1024x1024", 92.7},       Product{"8192x2048x2048", 281.8},
    Product{"8192x4096x4096", 1021},       Product{"8192x8192x8192", 3961.4},
    Product{"8192x16384x16384", 15008.7},  Product{"8192x32768x32768", 61134.6}};

TEST(Silicon, ProductsOfAnA100) {
  const Ran ran =
      run_monet({"core", "--hardware", repository("data/hardware/a100.yaml"), "--workload",
                 repository("examples/core/a100_products.yaml"), "--json", "-"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  std::map<std::string, double> cycles;
  const nlohmann::json json = nlohmann::json::parse(ran.out);
  for (const auto& layer : json.at("layers"))
    cycles[layer.at("name").get<std::string>()] = layer.at("latency_cycles").get<double>();
  EXPECT_EQ(cycles.size(), 20U);
  double errors = 0;
  for (const Product& product : kProducts) {
    const double error = cycles.at(product.name) / 1410 / product.microseconds - 1;
    EXPECT_LT(std::abs(error), 0.08) << product.name;
    errors += std::abs(error);
  }
  EXPECT_NEAR(errors / kProducts.size(), 0.048, 0.001);
}

// Networks with operators of every kind, not only products, one kernel each at least.
TEST(Silicon, AnA100TrainsNetworks) {
  for (const char* network : {"resnet18_cifar", "gpt2_nano", "mobilenet_v2"}) {
    const Ran ran =
        run_monet({"schedule", "--hardware", repository("data/hardware/a100.yaml"), "--workload",
                   repository(std::string("data/workload/") + network + ".onnx"), "--batch", "4",
                   "--training", repository("data/training/sgd_fp16.yaml"), "--mode",
                   "layer-by-layer", "--verify", "--json", "-"});
    ASSERT_EQ(ran.code, 0) << network << ran.err;
    const nlohmann::json json = nlohmann::json::parse(ran.out);
    const auto layers = static_cast<double>(json.at("layers").size());
    EXPECT_GT(json.at("latency_cycles").get<double>(), layers * 36'660) << network;
  }
}

/// Multiply-accumulates of a training step in a cycle.
double step_rate(const std::string& network, const std::string& chip) {
  const Ran ran = run_monet({"schedule", "--hardware", chip, "--workload",
                             repository("data/workload/" + network + ".onnx"), "--training",
                             repository("data/training/sgd_fp16.yaml"), "--mode", "layer-by-layer",
                             "--verify", "--json", "-"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  const nlohmann::json json = nlohmann::json::parse(ran.out);
  double macs = 0;
  for (const auto& layer : json.at("layers"))
    macs += layer.at("macs").get<double>();
  return macs / json.at("latency_cycles").get<double>();
}

/// The chip's core without the instructions.
std::string without_instructions(std::string core) {
  const std::size_t begin = core.find("\nissue:");
  return core.erase(begin, core.find("\nmemories:") - begin);
}

// PULP-TrainLib measured 3.11 and 0.81.
TEST(Silicon, TrainingStepsOfPulp) {
  const std::string chip = repository("data/hardware/pulp_cluster.yaml");
  EXPECT_NEAR(step_rate("resnet8", chip), 5.20, 0.01);
  EXPECT_NEAR(step_rate("ds_cnn", chip), 3.03, 0.01);
  const Scratch scratch;
  const auto at = [](const char* name) {
    return read_file(repository(std::string("data/hardware/") + name));
  };
  scratch.file("pulp_processors.yaml", without_instructions(at("cores/pulp_processors.yaml")));
  scratch.file("pulp_l2.yaml", at("cores/pulp_l2.yaml"));
  const std::string ideal = scratch.file("pulp_cluster.yaml", at("pulp_cluster.yaml"));
  EXPECT_NEAR(step_rate("resnet8", ideal), 15.17, 0.01);
  EXPECT_NEAR(step_rate("ds_cnn", ideal), 14.65, 0.01);
}

} // namespace
} // namespace monet::test
