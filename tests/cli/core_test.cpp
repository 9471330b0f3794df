#include "cli/run_monet.hpp"
#include "report/json_schema.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <map>
#include <sstream>

namespace monet::test {
namespace {

std::vector<std::string> arguments(std::vector<std::string> more) {
  std::vector<std::string> all{"core",
                               "--hardware",
                               repository("data/hardware/cores/edge_tpu_pe.yaml"),
                               "--workload",
                               repository("data/workload/resnet18_cifar.onnx"),
                               "--batch",
                               "1"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(Core, LayersAddUp) {
  const Ran ran = run_monet(arguments({"--json", "-"}));
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
  double cycles = 0;
  for (const auto& layer : json.at("layers")) {
    const double latency = layer.at("latency_cycles").get<double>();
    double parts = 0;
    for (const auto& part : layer.at("latency"))
      parts += part.get<double>();
    EXPECT_EQ(parts, latency) << layer.at("name");
    cycles += latency;
    EXPECT_GE(layer.at("latency_cycles"), layer.at("ideal_cycles")) << layer.at("name");
    EXPECT_GT(layer.at("energy_pj").get<double>(), 0);
    EXPECT_LE(layer.at("utilisation").get<double>(), 1);
  }
  EXPECT_EQ(cycles, json.at("latency_cycles").get<double>());
  EXPECT_GE(json.at("layers").size(), 21U); // 20 convolutions and the classifier
}

TEST(Core, MoreUnrollingsAreNeverWorse) {
  double before = HUGE_VAL;
  for (const char* tried : {"0", "12", "2000"}) {
    const Ran ran = run_monet({"core", "--hardware", repository("examples/core/two_by_two.yaml"),
                               "--workload", repository("examples/core/product.yaml"), "--json",
                               "-", "--objective", "energy", "--unrollings", tried});
    if (std::string(tried) == "0") { // and the file has no dataflow
      EXPECT_EQ(ran.code, 4);
      continue;
    }
    ASSERT_EQ(ran.code, 0) << ran.err;
    const double energy = nlohmann::json::parse(ran.out).at("energy_pj").get<double>();
    EXPECT_LE(energy, before);
    before = energy;
  }
}

TEST(Core, TheTableListsTheLayersAndTheTotal) {
  const Ran ran = run_monet(arguments({}));
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out.rfind("layer ", 0), 0U);
  EXPECT_NE(ran.out.find("\ntotal "), std::string::npos);
}

TEST(Core, AMappingFileSetsTheUnrolling) {
  const Scratch scratch;
  const std::string mapping = scratch.file(
      "m.yaml",
      "- name: default\n  spatial_mapping:\n    D1:\n      - K, 2\n    D2:\n      - C, 4\n"
      "  memory_operand_links: {O: O, W: I2, I: I1}\n");
  const Ran ran = run_monet(arguments({"--mapping", mapping, "--json", "-"}));
  ASSERT_EQ(ran.code, 0) << ran.err;
  for (const auto& layer : nlohmann::json::parse(ran.out).at("layers")) {
    if (layer.at("op_type") != "Conv" || layer.at("dims").value("C", 0) % 4 != 0)
      continue;
    EXPECT_EQ(layer.at("spatial_mapping").at("D1").dump(), "[[\"K\",2.0]]") << layer.at("name");
  }
}

TEST(Core, AMappingFilesProblemsAreLocated) {
  const Scratch scratch;
  const std::string mapping =
      scratch.file("m.yaml", "- name: Conv\n  spatial_mapping:\n    D7:\n      - K, 2\n");
  const Ran ran = run_monet(arguments({"--mapping", mapping}));
  EXPECT_EQ(ran.code, 3);
  EXPECT_NE(ran.err.find("m.yaml:1:"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("the core has no array dimension 'D7'"), std::string::npos) << ran.err;
}

TEST(Core, TheTableFits120Columns) {
  for (const std::string network : {"gpt2_nano.onnx", "mobilenet_v2.onnx"}) {
    const Ran ran =
        run_monet({"core", "--hardware", repository("data/hardware/cores/edge_tpu_pe.yaml"),
                   "--workload", repository("data/workload/" + network), "--batch", "1"});
    ASSERT_EQ(ran.code, 0) << ran.err;
    std::istringstream lines(ran.out);
    for (std::string line; std::getline(lines, line);)
      EXPECT_LE(line.size(), 120U) << line;
    EXPECT_NE(ran.out.find("\nmappings: "), std::string::npos);
  }
}

std::vector<std::string> zigzag(const std::string& workload, std::vector<std::string> more) {
  std::vector<std::string> all{"core",
                               "--model",
                               "zigzag-3.8",
                               "--hardware",
                               repository("tests/fixtures/zigzag/tpu_like.yaml"),
                               "--mapping",
                               repository("tests/fixtures/zigzag/tpu_like_mapping.yaml"),
                               "--workload",
                               workload};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(Core, ZigZagsModelGivesZigZagsFigures) {
  const Ran ran =
      run_monet(zigzag(repository("data/workload/resnet18.onnx"), {"--batch", "1", "--json", "-"}));
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
  const auto expected =
      parse_file(repository("tests/fixtures/zigzag/tpu_like_resnet18_latency_lpf6.json"));
  EXPECT_EQ(json.at("latency_cycles").get<double>(), 3703960.5);
  EXPECT_NEAR(json.at("energy_pj").get<double>(), 1871436380.656, 1e-3);
  std::map<std::string, nlohmann::json> layers;
  for (const auto& layer : json.at("layers"))
    layers[layer.at("name").get<std::string>()] = layer;
  ASSERT_EQ(layers.size(), expected.at("layers").size());
  for (const auto& e : expected.at("layers")) {
    const auto& layer = layers.at(e.at("name").get<std::string>());
    EXPECT_EQ(layer.at("energy_pj"), e.at("energy_pj")) << e.at("name");
    EXPECT_EQ(layer.at("temporal_mapping"), e.at("order")) << e.at("name");
    const auto& latency = layer.at("latency");
    const std::vector<double> parts{
        latency.at("ideal_temporal_cycles").get<double>(), latency.at("stall_cycles").get<double>(),
        latency.at("onload_cycles").get<double>(), latency.at("offload_cycles").get<double>()};
    EXPECT_EQ(parts, e.at("latency").get<std::vector<double>>()) << e.at("name");
    for (const auto& operand : layer.at("operand_mapping")) {
      std::vector<std::size_t> loops;
      for (const auto& level : operand.at("levels"))
        loops.push_back(level.at("loops").size());
      EXPECT_EQ(loops, e.at("loops")
                           .at(operand.at("operand").get<std::string>())
                           .get<std::vector<std::size_t>>())
          << e.at("name");
    }
  }
}

const std::string kGemm = R"(
- id: 0
  name: fc
  operator_type: Gemm
  equation: O[d][k]+=I[d][c]*W[c][k]
  dimension_relations: []
  loop_dims: [C, D, K]
  loop_sizes: [64, 8, 96]
  operand_precision: {W: 8, I: 8, O: 16, O_final: 8}
  operand_source: {I: 0, W: 0}
)";

TEST(Core, AListOfLayersIsAWorkload) {
  const Scratch scratch;
  const std::string layers = scratch.file("layers.yaml", kGemm);
  const Ran ran = run_monet(zigzag(layers, {"--json", "-"}));
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
  ASSERT_EQ(json.at("layers").size(), 1U);
  const auto& layer = json.at("layers")[0];
  EXPECT_EQ(layer.at("name"), "fc");
  EXPECT_EQ(layer.at("macs"), 64 * 8 * 96);
  // 32 x 32 lanes: 2 steps of C, 8 of D, 3 of K.
  EXPECT_EQ(layer.at("latency").at("ideal_temporal_cycles"), 48);
  EXPECT_EQ(layer.at("operand_precision")[0].dump(),
            R"({"bits":8,"operand":"O","partial_bits":16})");
  // The same under our own model, without an extension, too.
  const std::string bare = scratch.file("layers", kGemm);
  EXPECT_EQ(run_monet({"core", "--hardware", repository("tests/fixtures/zigzag/tpu_like.yaml"),
                       "--workload", bare})
                .code,
            0);
}

TEST(Core, ALayersProblemsAreLocated) {
  const Scratch scratch;
  const std::string layers = scratch.file("layers.yaml", kGemm + "  colour: red\n");
  const Ran ran = run_monet(zigzag(layers, {}));
  EXPECT_EQ(ran.code, 3);
  EXPECT_NE(ran.err.find("layers.yaml:11:3: unknown key 'colour'"), std::string::npos) << ran.err;
}

TEST(Core, ALayersOperandsMayBeLinkedToOtherMemories) {
  const Scratch scratch;
  const std::string layers = scratch.file("layers.yaml", kGemm);
  const std::string mapping =
      scratch.file("m.yaml", "- name: fc\n  spatial_mapping:\n    D1: ['D, 8']\n    D2: ['C, 32']\n"
                             "  memory_operand_links: {O: O, W: I1, I: I2}\n");
  Ran ran = run_monet({"core", "--model", "zigzag-3.8", "--hardware",
                       repository("tests/fixtures/zigzag/tpu_like.yaml"), "--workload", layers,
                       "--mapping", mapping, "--json", "-"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  for (const auto& level : nlohmann::json::parse(ran.out).at("layers")[0].at("memory_levels")) {
    if (level.at("memory") == "rf_128B") {
      EXPECT_EQ(level.at("operand"), "I");
    }
  }
}

TEST(Core, ChoicesGoOnTopOfTheModel) {
  const Scratch scratch;
  const std::string layers = scratch.file("layers.yaml", kGemm);
  const auto provenance = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all{"--json", "-"};
    all.insert(all.end(), more.begin(), more.end());
    const Ran ran = run_monet(zigzag(layers, all));
    EXPECT_EQ(ran.code, 0) << ran.err;
    return nlohmann::json::parse(ran.out).at("provenance").at("options");
  };
  EXPECT_EQ(provenance({}).at("model"), "zigzag-3.8");
  EXPECT_EQ(provenance({"--choice", "widest-step=on"}).at("choice widest-step"), "on");
  EXPECT_EQ(provenance({"--lpf-limit", "none"}).at("lpf_limit"), "0");
}

TEST(Core, HelpListsTheChoices) {
  const Ran ran = run_monet({"core", "--help"});
  EXPECT_NE(ran.out.find("\n  first-partial-sums-free "), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("\n  free-unrolling "), std::string::npos) << ran.out;
}

TEST(Core, MemoriesAreShownWithoutAWorkload) {
  const std::string chip = repository("data/hardware/edge_tpu_22nm.yaml");
  const Ran table = run_monet({"core", "--hardware", chip, "--memories"});
  ASSERT_EQ(table.code, 0) << table.err;
  EXPECT_NE(table.out.find("4 x edge_tpu_pe"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("macros of 64 bit words"), std::string::npos) << table.out;
  const Ran ran = run_monet({"core", "--hardware", chip, "--memories", "--json", "-"});
  const auto json = nlohmann::json::parse(ran.out);
  EXPECT_GT(json.at("area_mm2").get<double>(), 10);
  EXPECT_GT(json.at("peak_power_w").get<double>(), 1);
  const Ran neither = run_monet({"core", "--hardware", chip});
  EXPECT_EQ(neither.code, 2);
  EXPECT_NE(neither.err.find("--workload is required"), std::string::npos) << neither.err;
}

TEST(Core, RefusesMappingsOfWhatIsNotThere) {
  const Scratch scratch;
  const std::string map =
      scratch.file("map.yaml", "- {name: default, spatial_mapping: {D1: ['K, 4096']}}\n"
                               "- {name: matmul9, spatial_mapping: {D1: ['ZZ, 2']}}\n");
  const Ran ran =
      run_monet({"core", "--hardware", repository("data/hardware/cores/mcu.yaml"), "--workload",
                 repository("examples/core/four_matmuls.yaml"), "--mapping", map});
  EXPECT_EQ(ran.code, 3);
  EXPECT_NE(ran.err.find("map.yaml:2:3: there is no layer 'matmul9', nor a type of operators (did "
                         "you mean 'matmul"),
            std::string::npos)
      << ran.err;
  EXPECT_NE(ran.err.find("map.yaml:2:3: no layer has a loop 'ZZ'"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("map.yaml:1:3: 'K, 4096' do not fit on 'D1' of the array"),
            std::string::npos)
      << ran.err;
}

/// What `--memories` says of a file of data/hardware, which has the form that the schema says.
nlohmann::json hardware_of(const std::string& file) {
  const Ran ran = run_monet(
      {"core", "--hardware", repository("data/hardware/" + file), "--memories", "--json", "-"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  auto hardware = nlohmann::json::parse(ran.out);
  auto schema = parse_file(repository("docs/result.schema.json"));
  schema = {{"$defs", schema.at("$defs")}, {"$ref", "#/$defs/hardware"}};
  EXPECT_EQ(schema_violations(schema, hardware), std::vector<std::string>{}) << file;
  return hardware;
}

/// Published systems of 16 x 4 units (Archimedes project).
TEST(Core, SystemsOnAnFpgaAreThosePublished) {
  struct System {
    const char* file;
    double luts;
    double dsps;
  };
  for (const System& system :
       {System{"fpga_fp32", 58420, 320}, System{"fpga_e5m2_e6m5", 42640, 0},
        System{"fpga_e5m2_q8.13", 43471, 0}, System{"fpga_e5m2_q11.13", 44876, 0}}) {
    const auto hardware = hardware_of("cores/" + std::string(system.file) + ".yaml");
    const auto& fpga = hardware.at("cores").at(0).at("array").at("mac").at("fpga");
    EXPECT_NEAR(fpga.at("system").at("luts").get<double>() / system.luts, 1, 0.05) << system.file;
    EXPECT_EQ(fpga.at("system").at("dsps").get<double>(), system.dsps) << system.file;
  }
}

TEST(Core, ModesHaveTheirPeaks) {
  const auto hardware = hardware_of("snax_mx.yaml");
  std::vector<double> peaks;
  for (const auto& mode : hardware.at("cores").at(0).at("array").at("modes"))
    peaks.push_back(mode.at("peak_gops"));
  EXPECT_EQ(peaks, (std::vector<double>{64, 256, 256, 512}));
}

/// A list of layers has bits, but no formats.
TEST(Core, LayersOnACoreWithModesNeedAFormat) {
  std::vector<std::string> command{"core", "--hardware",
                                   repository("data/hardware/cores/snax_mx_array.yaml"),
                                   "--workload", repository("examples/core/product.yaml")};
  const Ran without = run_monet(command);
  EXPECT_EQ(without.code, 2);
  EXPECT_NE(without.err.find("set the format of the layers with --format"), std::string::npos);
  command.insert(command.end(), {"--format", "mxfp8_e4m3"});
  const Ran with = run_monet(command);
  EXPECT_EQ(with.code, 0) << with.err;
  EXPECT_NE(with.out.find("C 4"), std::string::npos) << with.out;
  command.back() = "fp32";
  const Ran other = run_monet(command);
  EXPECT_EQ(other.code, 4);
  EXPECT_NE(other.err.find("has no mode that multiplies fp32"), std::string::npos) << other.err;
  command.back() = "fp99";
  EXPECT_EQ(run_monet(command).code, 2);
}

} // namespace
} // namespace monet::test
