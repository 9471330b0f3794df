// Cores that compute in memory, analog and digital, against what ZigZag 3.8.5 found for them: area,
// clock and peak figures by part, and for every layer the mapping, its energy by part and by memory
// and its cycles.
#include "cli/run_monet.hpp"
#include "report/json_schema.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>

namespace monet::test {
namespace {

using Json = nlohmann::json;

constexpr double kSame = 1e-9;

const std::string kFolder = "tests/fixtures/zigzag/imc/";

/// Within kSame of each other, as a part of the larger.
void expect_same(const Json& found, const Json& expected, const std::string& what) {
  const double f = found.get<double>();
  const double e = expected.get<double>();
  EXPECT_LE(std::abs(f - e), kSame * std::max(std::abs(f), std::abs(e)))
      << what << ": " << f << ", not " << e;
}

/// All of ZigZag's parts; what it lacks is zero.
void expect_same_parts(const Json& found, const Json& expected, const std::string& what) {
  for (const auto& [part, figure] : expected.items())
    expect_same(found.at(part), figure, what + " " + part);
  for (const auto& [part, figure] : found.items()) {
    if (!expected.contains(part)) {
      EXPECT_EQ(figure.get<double>(), 0) << what << " " << part;
    }
  }
}

void expect_same_array(const Json& core, const Json& run) {
  const Json& imc = core.at("array").at("imc");
  expect_same_parts(imc.at("area_mm2"), run.at("area_mm2"), "area");
  expect_same_parts(imc.at("clock_ns"), run.at("clock_ns"), "clock");
  expect_same_parts(imc.at("peak_energy_per_cycle_pj"), run.at("peak_energy_per_cycle_pj"),
                    "energy of a cycle");
  expect_same(imc.at("zigzag_core_area_mm2"), run.at("core_area_mm2"), "area of the core");
  expect_same(imc.at("peak_tops"), run.at("peak").at("TOPS"), "TOPS");
  expect_same(imc.at("peak_tops_per_w"), run.at("peak").at("TOPS_per_W"), "TOPS/W");
  expect_same(imc.at("peak_tops_per_mm2"), run.at("peak").at("TOPS_per_mm2"), "TOPS/mm2");
}

/// pJ per memory, by operand, bottom-up.
std::map<std::string, std::vector<double>> memory_energies(const Json& layer) {
  std::map<std::string, std::vector<double>> energies;
  for (const Json& level : layer.at("memory_levels"))
    energies[level.at("operand").get<std::string>()].push_back(level.at("energy_pj").get<double>());
  return energies;
}

void expect_same_energies(const Json& layer, const Json& expected) {
  expect_same(layer.at("energy_pj"), expected.at("energy_pj"), "energy");
  expect_same_parts(layer.at("imc").at("energy_pj"), expected.at("mac"), "energy");
  const auto found = memory_energies(layer);
  ASSERT_EQ(found.size(), expected.at("memory").size());
  double all = 0;
  for (const auto& [operand, levels] : expected.at("memory").items()) {
    ASSERT_EQ(found.at(operand).size(), levels.size()) << operand;
    for (std::size_t l = 0; l < levels.size(); ++l) {
      expect_same(found.at(operand)[l], levels[l], operand + " at level " + std::to_string(l));
      all += found.at(operand)[l];
    }
  }
  for (const auto& [part, energy] : layer.at("imc").at("energy_pj").items())
    all += energy.get<double>();
  expect_same(all, layer.at("energy_pj"), "sum of the energies");
}

void expect_same_layer(const Json& layer, const Json& expected) {
  SCOPED_TRACE(expected.at("name").get<std::string>());
  EXPECT_EQ(layer.at("imc").at("rows"), expected.at("rows"));
  EXPECT_EQ(layer.at("imc").at("columns"), expected.at("columns"));
  expect_same(layer.at("imc").at("waves"), expected.at("waves"), "waves");
  expect_same(layer.at("imc").at("weight_reads"), expected.at("reads"), "reads of weights");
  expect_same(layer.at("ideal_cycles"), expected.at("ideal_cycles"), "ideal cycles");
  const Json& latency = layer.at("latency");
  const char* const parts[] = {"ideal_temporal_cycles", "stall_cycles", "onload_cycles",
                               "offload_cycles"};
  for (std::size_t p = 0; p < 4; ++p)
    expect_same(latency.at(parts[p]), expected.at("latency")[p], parts[p]);
  expect_same_energies(layer, expected);
  for (const Json& operand : layer.at("operand_mapping")) {
    std::vector<std::size_t> loops;
    for (const Json& level : operand.at("levels"))
      loops.push_back(level.at("loops").size());
    EXPECT_EQ(Json(loops).dump(),
              expected.at("loops").at(operand.at("operand").get<std::string>()).dump());
  }
}

Json costs_of(const Json& run) {
  const std::string workload = run.at("workload").get<std::string>();
  const bool network = workload.ends_with(".onnx");
  std::vector<std::string> all{"core", "--model", "zigzag-3.8", "--json", "-", "--generated", "3"};
  all.insert(all.end(), {"--lpf-limit", std::to_string(run.at("lpf").get<int>())});
  for (const char* name : {"hardware", "mapping"})
    all.insert(all.end(),
               {std::string("--") + name, repository(kFolder + run.at(name).get<std::string>())});
  all.insert(all.end(),
             {"--workload", repository((network ? "data/workload/" : kFolder) + workload)});
  if (network)
    all.insert(all.end(), {"--batch", "1"});
  if (run.at("mode") == "imc")
    all.insert(all.end(), {"--mixed", "--data-locality"});
  const Ran ran = run_monet(all);
  EXPECT_EQ(ran.code, 0) << ran.err;
  return ran.code == 0 ? Json::parse(ran.out) : Json();
}

class ImcRuns : public testing::TestWithParam<std::size_t> {
public:
  static Json runs() { return parse_file(repository(kFolder + "expected.json")); }
};

TEST_P(ImcRuns, AreZigZags) {
  const Json run = runs().at(GetParam());
  const Json found = costs_of(run);
  ASSERT_FALSE(found.is_null());
  expect_same_array(found.at("hardware").at("cores")[0], run);
  expect_same(found.at("area_mm2"), run.at("core_area_mm2"), "area");
  expect_same(found.at("energy_pj"), run.at("energy_pj"), "energy of all layers");
  expect_same(found.at("latency_cycles"), run.at("latency_cycles"), "cycles of all layers");
  std::map<std::string, Json> layers;
  for (const Json& layer : found.at("layers"))
    layers[layer.at("name").get<std::string>()] = layer;
  ASSERT_EQ(layers.size(), run.at("layers").size());
  for (const Json& expected : run.at("layers"))
    expect_same_layer(layers.at(expected.at("name").get<std::string>()), expected);
}

INSTANTIATE_TEST_SUITE_P(Runs, ImcRuns, testing::Range<std::size_t>(0, 9), [](const auto& run) {
  return ImcRuns::runs().at(run.param).at("name").template get<std::string>();
});

// Totals of the tool's own tests, of a list of layers. Its pooling and residual additions cost
// nothing, but data stay on the chip behind them: the classifier takes its input from there.
TEST(ImcCores, AreZigZagsWithLayersWithoutWeights) {
  const std::map<std::string, std::pair<double, double>> totals{
      {"aimc.yaml", {4264976904.6396008, 4371385}}, {"dimc.yaml", {4268285089.3547516, 5114707}}};
  for (const auto& [hardware, expected] : totals) {
    const Json found = costs_of({{"hardware", hardware},
                                 {"mapping", "default_imc.yaml"},
                                 {"workload", "resnet18_layers.yaml"},
                                 {"mode", "imc"},
                                 {"lpf", 6}});
    ASSERT_FALSE(found.is_null());
    expect_same(found.at("energy_pj"), expected.first, hardware);
    expect_same(found.at("latency_cycles"), expected.second, hardware);
    EXPECT_EQ(found.at("layers").size(), 21U);
    EXPECT_EQ(found.at("skipped").size(), 10U);
  }
}

// The two products of a layer's backward pass are costed on the systolic array of a chip, which is
// one core wherever the other stands.
TEST(ImcCores, AreNoNpu) {
  const Scratch scratch;
  const std::string cores = repository("data/hardware/cores/");
  const auto machine = [&](const std::string& listed) {
    const std::string chip =
        scratch.file("chip.yaml", "name: chip\ncores: " + listed + "\noffchip_core_id: 2\n" +
                                      "core_connectivity:\n  - {type: bus, cores: [0, 1, 2], " +
                                      "bandwidth: 128, unit_energy_cost: 0}\n");
    const Ran ran = run_monet(
        {"backward", "--hardware", chip, "--gemm", "64,64,64", "--timing", "core", "--json", "-"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    return ran.code == 0 ? Json::parse(ran.out).at("machine") : Json();
  };
  const std::string npu = cores + "npu_small_array.yaml";
  const std::string imc = cores + "imc_digital.yaml";
  const std::string dram = cores + "npu_small_dram.yaml";
  const Json after = machine("{0: " + npu + ", 1: " + imc + ", 2: " + dram + "}");
  const Json before = machine("{0: " + imc + ", 1: " + npu + ", 2: " + dram + "}");
  ASSERT_FALSE(after.is_null() || before.is_null());
  EXPECT_EQ(after.at("cores"), 1);
  EXPECT_EQ(after, before);
}

/// A training step in 8 bits on the shipped chip of digital arrays; `write_pj` for a weight.
Json step_with(const Scratch& scratch, const std::string& write_pj) {
  namespace fs = std::filesystem;
  const fs::path cores = scratch.path() / "cores";
  fs::create_directory(cores);
  for (const char* name : {"imc_digital.yaml", "simd_64.yaml", "lpddr5_64bit.yaml"})
    fs::copy_file(repository(std::string("data/hardware/cores/") + name), cores / name,
                  fs::copy_options::overwrite_existing);
  std::ifstream whole(cores / "imc_digital.yaml");
  std::string text{std::istreambuf_iterator<char>(whole), {}};
  const std::string given = "w_cost: 0.095\n";
  EXPECT_NE(text.find(given), std::string::npos);
  text.replace(text.find(given), given.size(), "w_cost: " + write_pj + "\n");
  std::ofstream(cores / "imc_digital.yaml") << text;
  fs::copy_file(repository("data/hardware/imc_digital.yaml"), scratch.path() / "chip.yaml",
                fs::copy_options::overwrite_existing);
  const std::string training = scratch.file(
      "training.yaml", "optimizer: {type: sgd, learning_rate: 0.1}\n"
                       "precision: {weights: int8, activations: int8, gradients: int8, "
                       "accumulate: int16}\n");
  const Ran ran =
      run_monet({"schedule", "--hardware", scratch / "chip.yaml", "--workload",
                 repository("data/workload/resnet20_cifar.onnx"), "--batch", "4", "--training",
                 training, "--mode", "layer-by-layer", "--verify", "--json", "-"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  return ran.code == 0 ? Json::parse(ran.out) : Json();
}

// The weights that a step updates are written into the cells again where they are next multiplied:
// in the forward pass and for the gradients of inputs.
TEST(ImcTraining, WritingWeightsIsPaidFor) {
  const Scratch scratch;
  const Json free = step_with(scratch, "0");
  const Json paid = step_with(scratch, "0.095");
  ASSERT_FALSE(free.is_null() || paid.is_null());
  EXPECT_EQ(schema_violations(parse_file(repository("docs/result.schema.json")), paid),
            std::vector<std::string>{});
  const auto parameters = paid.at("parameters").get<double>();
  const auto onchip = [](const Json& step) {
    return step.at("energy").at("onchip_memory_pj").get<double>();
  };
  EXPECT_GT(onchip(paid) - onchip(free), 0.095 * 1.8 * parameters);
}

} // namespace
} // namespace monet::test
