// monet backward: a product by hand, networks, what is refused, and a small study.
#include "cli/run_monet.hpp"
#include "report/json_schema.hpp"

#include "monet/base/files.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace monet::test {
namespace {

using Json = nlohmann::json;

const std::string kTables = "data/workload/gemm/";

std::vector<std::string> backward(std::vector<std::string> more,
                                  const std::string& hardware = "data/hardware/npu_small.yaml") {
  std::vector<std::string> all{"backward", "--hardware", repository(hardware)};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

Json backward_json_of(std::vector<std::string> more,
                      const std::string& hardware = "data/hardware/npu_small.yaml") {
  more.insert(more.end(), {"--json", "-"});
  const Ran ran = run_monet(backward(std::move(more), hardware));
  EXPECT_EQ(ran.code, 0) << ran.err;
  return Json::parse(ran.out);
}

/// A chip of a 2 x 2 array with so many bits of memory, 16 bits a cycle to DRAM.
std::string small_npu(const Scratch& scratch, const std::string& bits) {
  const std::string port = "{name: p, type: read_write, bandwidth_min: 16, bandwidth_max: 16, "
                           "allocation: ['I1, tl', 'I2, tl', 'O, tl', 'O, fl', 'I1, fh', 'I2, fh', "
                           "'O, fh', 'O, th']}";
  const auto core = [&](const std::string& name, const std::string& size, const std::string& kind,
                        const std::string& array) {
    scratch.file(name + ".yaml", "name: " + name + "\nkind: " + kind +
                                     "\nmemories:\n  memory:\n    size: " + size +
                                     "\n    r_cost: 1\n    w_cost: 1\n    operands: [I1, I2, O]\n"
                                     "    ports:\n      - " +
                                     port + "\n    served_dimensions: [D1]\n" + array);
  };
  core("array", bits, "array", "operational_array: {dimensions: [D1, D2], sizes: [2, 2]}\n");
  core("dram", "1_000_000_000", "offchip", "operational_array: {dimensions: [D1], sizes: [1]}\n");
  return scratch.file("npu.yaml", "name: npu\ncores: {0: array.yaml, 1: dram.yaml}\n"
                                  "offchip_core_id: 1\ncore_connectivity:\n"
                                  "  - {type: bus, cores: [0, 1], bandwidth: 16, "
                                  "unit_energy_cost: 0}\n");
}

// Y(2,2) = X(2,2) W(2,2) with elements of 2 bytes: five tensors of 8 bytes. Each product is one
// tile of t + 2R + C - 2 = 2 + 4 + 2 - 2 = 6 cycles. One after the other, each for itself: two
// factors come (64 + 64 bits, 8 cycles), 6 cycles, and the result leaves (4): 2 x 18 cycles and 48
// bytes. In turn: dY and W come (8), dX is computed while X comes (6), dW while dX leaves (6), dW
// leaves (4): 24 cycles and 40 bytes, the bound.
TEST(Backward, AProductByHand) {
  const Scratch scratch;
  const Ran ran = run_monet(
      {"backward", "--hardware", small_npu(scratch, "1024"), "--gemm", "2,2,2", "--json", "-"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json result = Json::parse(ran.out);
  const Json& techniques = result.at("techniques");
  EXPECT_EQ(techniques.size(), 9U);
  EXPECT_EQ(techniques.at("sequential").at("latency_cycles"), 36);
  EXPECT_EQ(techniques.at("sequential").at("dram_bytes"), 48);
  for (const char* together : {"interleave", "dx-major", "dw-major", "joint"}) {
    EXPECT_EQ(techniques.at(together).at("latency_cycles"), 24) << together;
    EXPECT_EQ(techniques.at(together).at("dram_bytes"), 40) << together;
    EXPECT_EQ(techniques.at(together).at("traffic_bytes").at("dy_read"), 8) << together;
    EXPECT_NEAR(techniques.at(together).at("gain").get<double>(), 12.0 / 36, 1e-12);
  }
  EXPECT_EQ(result.at("bound_dram_bytes"), 40);
  // dW read, weights read and written behind it: 3 x 8 bytes. On the chip W is written, dW is not.
  EXPECT_EQ(techniques.at("joint").at("separate_update_bytes"), 24);
  EXPECT_EQ(techniques.at("joint-update").at("separate_update_bytes"), 0);
  EXPECT_EQ(techniques.at("joint-update").at("traffic_bytes").at("dw_write"), 0);
  EXPECT_EQ(result.at("macs").at("backward_input"), 8);
}

void expect_consistent(const Json& result) {
  EXPECT_EQ(schema_violations(parse_file(repository("docs/backward.schema.json")), result),
            std::vector<std::string>{});
  for (const auto& [name, technique] : result.at("techniques").items()) {
    std::int64_t cycles = 0;
    std::int64_t bytes = 0;
    for (const Json& layer : result.at("layers")) {
      const Json& own = layer.at("techniques").at(name);
      cycles += own.at("latency_cycles").get<std::int64_t>();
      bytes += own.at("dram_bytes").get<std::int64_t>();
      std::int64_t of_tensors = 0;
      for (const auto& [tensor, moved] : own.at("traffic_bytes").items())
        of_tensors += moved.get<std::int64_t>();
      EXPECT_NEAR(static_cast<double>(of_tensors), own.at("dram_bytes").get<double>(), 9);
    }
    EXPECT_EQ(cycles, technique.at("latency_cycles").get<std::int64_t>()) << name;
    EXPECT_EQ(bytes, technique.at("dram_bytes").get<std::int64_t>()) << name;
  }
}

// On every layer the joint optimum is no slower than any other technique of the pair, and moves no
// less than the bound.
TEST(Backward, JointIsBestAndAboveItsBound) {
  for (const std::string hardware :
       {"data/hardware/npu_small.yaml", "data/hardware/npu_large.yaml"}) {
    for (const std::string network : {"ncf", "bert_tiny", "yolov2_tiny"}) {
      for (const char* tiles : {"array", "searched"}) {
        const Json result = backward_json_of({"--workload", repository(kTables + network + ".yaml"),
                                              "--batch", "4", "--tiles", tiles},
                                             hardware);
        expect_consistent(result);
        for (const Json& layer : result.at("layers")) {
          const Json& joint = layer.at("techniques").at("joint");
          for (const auto& [name, technique] : layer.at("techniques").items()) {
            if (name != "joint-update") {
              EXPECT_LE(joint.at("latency_cycles"), technique.at("latency_cycles"))
                  << network << " " << layer.at("name") << " " << name;
            }
          }
          EXPECT_GE(joint.at("dram_bytes"), layer.at("bound_dram_bytes")) << layer.at("name");
          EXPECT_GE(joint.at("latency_cycles"), layer.at("bound_latency_cycles"));
        }
      }
    }
  }
}

TEST(Backward, ANetworkIsItsProducts) {
  const Json result =
      backward_json_of({"--workload", repository("data/workload/resnet18_cifar.onnx"), "--batch",
                        "4", "--technique", "dx-major", "--im2col", "raw"});
  expect_consistent(result);
  EXPECT_EQ(result.at("layers").size(), 21U);
  EXPECT_EQ(result.at("techniques").size(), 3U);
  EXPECT_FALSE(result.at("layers")[0].at("has_dx").get<bool>());
  EXPECT_EQ(result.at("layers")[0].at("input_elements"), 4 * 3 * 32 * 32);
  // What monet graph counts for the gradients of weights and of activations.
  EXPECT_EQ(result.at("macs").at("backward_weight"), 2'221'690'880);
  EXPECT_EQ(result.at("macs").at("backward_input"), 4'436'303'872 - 2'221'690'880);
}

TEST(Backward, SeveralCoresShareEveryLayer) {
  const std::vector<std::string> net{"--workload",  repository(kTables + "bert_tiny.yaml"),
                                     "--batch",     "16",
                                     "--technique", "best-of-three"};
  std::map<std::string, std::int64_t> cycles;
  for (const std::string cores : {"1", "2", "4"}) {
    std::vector<std::string> more = net;
    more.insert(more.end(), {"--cores", cores, "--partition", "auto"});
    const Json result = backward_json_of(more, "data/hardware/npu_large.yaml");
    expect_consistent(result);
    EXPECT_EQ(result.at("machine").at("cores"), std::stoi(cores));
    EXPECT_EQ(result.at("machine").at("buffer_bytes"), std::stoll(cores) << 23);
    for (const Json& layer : result.at("layers")) {
      for (const auto& [name, technique] : layer.at("techniques").items())
        EXPECT_GE(technique.at("latency_cycles"), layer.at("bound_latency_cycles")) << name;
    }
    cycles[cores] = result.at("techniques").at("best-of-three").at("latency_cycles");
    if (cores != "1") {
      EXPECT_EQ(result.at("layers")[0].at("techniques").at("best-of-three").at("parts"),
                std::stoi(cores));
    }
  }
  EXPECT_LT(cycles.at("2"), cycles.at("1"));
  EXPECT_LT(cycles.at("4"), cycles.at("2"));
  // The chip of eight cores is the same as eight cores of the chip of one.
  const Json eight = backward_json_of(net, "data/hardware/npu_large_octa.yaml");
  EXPECT_EQ(eight.at("machine").at("cores"), 8);
  EXPECT_EQ(eight.at("machine").at("buffer_bytes"), 64 << 20);
}

TEST(Backward, TheTableFits120Columns) {
  const Ran ran = run_monet(backward(
      {"--workload", repository(kTables + "mobilenet.yaml"), "--batch", "4", "--tiles", "array"}));
  ASSERT_EQ(ran.code, 0) << ran.err;
  std::istringstream lines(ran.out);
  for (std::string line; std::getline(lines, line);)
    EXPECT_LE(line.size(), 120U) << line;
  for (const char* word : {"conv2.depthwise", "x32", "best-of-three", "\nbound "})
    EXPECT_NE(ran.out.find(word), std::string::npos) << word;
}

TEST(Backward, ThreadsChangeNothing) {
  const std::vector<std::string> net{"--workload", repository(kTables + "bert_tiny.yaml"),
                                     "--batch", "4"};
  std::vector<std::string> two = net;
  two.insert(two.end(), {"--jobs", "2"});
  EXPECT_EQ(backward_json_of(net).dump(), backward_json_of(two).dump());
}

void expect_refused(const Ran& ran, int code, const std::string& begins) {
  EXPECT_EQ(ran.code, code) << ran.err;
  EXPECT_EQ(ran.err.substr(0, begins.size()), begins);
  EXPECT_EQ(ran.out, "");
}

TEST(Backward, BadInputIsLocated) {
  const Scratch scratch;
  const std::string gemms = scratch.file("gemms.yaml", "layers:\n  - {m: 4, k: 0, n: 4}\n");
  expect_refused(run_monet(backward({"--workload", gemms})), 3,
                 "error: " + gemms + ":2:15: 'k' is 0; it must be 1 to 2^40\n");
  expect_refused(run_monet(backward({"--gemm", "4,0,4"})), 3,
                 "error: --gemm: a dimension is 0; it must be 1 to 2^40\n");
  expect_refused(run_monet(backward({"--gemm", "4,1099511627777,4"})), 3,
                 "error: --gemm: a dimension is 1099511627777; it must be 1 to 2^40\n");
  expect_refused(
      run_monet(backward({"--gemm", "1048576,1048576,1048576"})), 3,
      "error: --gemm: with a batch of 1 the layer 'gemm' has more than 2^40 rows or 2^45 "
      "multiplications\n");
  expect_refused(
      run_monet(backward({"--gemm", "4,4,4", "--technique", "dx-mayor"})), 3,
      "error: --technique: there is no technique 'dx-mayor' (did you mean 'dx-major'?)\n");
  expect_refused(
      run_monet({"backward", "--hardware", "none.yaml", "--gemm", "4,4,4"}, scratch.path()), 3,
      "error: none.yaml");
}

TEST(Backward, TheCommandLineIsChecked) {
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"--gemm", "4,4"},
        {},
        {"--gemm", "4,4,4", "--tiles", "round"},
        {"--gemm", "4,4,4", "--cores", "2", "--partition", "none"},
        {"--gemm", "4,4,4", "--cores", "0"},
        {"--gemm", "4,4,4", "-o", "out"}}) {
    const Ran ran = run_monet(backward(wrong));
    EXPECT_EQ(ran.code, 2) << ran.err;
    EXPECT_NE(ran.err, "");
  }
}

// Half of 64 bits hold a step of 1 x 1 x 1: an element of each factor and a sum of 32 bits do not.
TEST(Backward, AMemoryMayHoldNoTiles) {
  const Scratch scratch;
  const Ran ran =
      run_monet({"backward", "--hardware", small_npu(scratch, "64"), "--gemm", "2,2,2"});
  EXPECT_EQ(ran.code, 4) << ran.err;
  EXPECT_EQ(ran.err.rfind("infeasible: layer 'gemm': tiles of ", 0), 0U) << ran.err;
  EXPECT_NE(ran.err.find("bits are missing, the largest of them d"), std::string::npos) << ran.err;
}

const std::string kStudy = R"(
name: two <b>networks</b>
tables: TABLES
machines:
  small: {hardware: HARDWARE/npu_small.yaml, gb_per_s: 22, batch: 4}
  large: {hardware: HARDWARE/npu_large.yaml, gb_per_s: 150, batch: 8}
networks: {NCF: ncf, BERT: {small: bert_tiny, large: bert_tiny}}
cores: [2]
bandwidths_gb_per_s: [75]
batches: [16]
choices: {tiles: array, keep: steps, major: gradients}
published: {algorithm-1_small: 23.8}
ambiguities:
  a:
    what: sums
    ours: 4 bytes
    others: [{says: "2 bytes", choices: {partial_bits: 16}}]
  f:
    what: averages
    ours: of networks
    others: [{says: of cycles, choices: {average: time}}]
)";

std::string study_text() {
  std::string text = kStudy;
  for (const auto& [from, to] :
       std::map<std::string, std::string>{{"TABLES", repository("data/workload/gemm")},
                                          {"HARDWARE", repository("data/hardware")}}) {
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from))
      text.replace(at, from.size(), to);
  }
  return text;
}

TEST(BackwardStudy, SetsFiguresBesideThePapers) {
  const Scratch scratch;
  const std::string study = scratch.file("study.yaml", study_text());
  const Ran ran = run_monet({"backward", "--study", study, "-o", scratch / "out"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json result = parse_file(scratch / "out/study.json");
  std::map<std::string, Json> figures;
  for (const Json& figure : result.at("figures"))
    figures[figure.at("id").get<std::string>()] = figure;
  EXPECT_EQ(figures.at("algorithm-1_small").at("paper"), 23.8);
  for (const auto& [id, figure] : figures) {
    if (id == "dy_reads_dlrm")
      continue;
    const double ours = figure.at("ours").get<double>();
    EXPECT_LE(figure.at("lowest").get<double>(), ours) << id;
    EXPECT_GE(figure.at("highest").get<double>(), ours) << id;
    EXPECT_EQ(figure.at("assumptions").size(), 2U) << id;
  }
  // The mean of the networks' reductions, in whose table they are, too.
  double mean = 0;
  for (const Json& network : result.at("networks")) {
    const Json& best = network.at("techniques").at("best-of-three");
    const double forward = network.at("forward_latency_cycles").get<double>();
    const double before =
        forward + network.at("techniques").at("sequential").at("latency_cycles").get<double>();
    const double reduction =
        100 * (1 - (forward + best.at("latency_cycles").get<double>()) / before);
    EXPECT_NEAR(best.at("reduction_percent").get<double>(), reduction, 1e-9);
    mean += network.at("machine") == "large" ? reduction / 2 : 0;
  }
  EXPECT_NEAR(figures.at("best-of-three_large").at("ours").get<double>(), mean, 1e-9);
  EXPECT_LE(figures.at("algorithm-1_small").at("ours"),
            figures.at("best-of-three_small").at("ours"));
  EXPECT_LE(figures.at("best-of-three_small").at("ours"), figures.at("joint_small").at("ours"));
  EXPECT_TRUE(figures.at("algorithm-1_large").at("paper").is_null());
  const Ran page = run_monet({"report", scratch / "out/study.json", "-o", scratch / "again.html"});
  EXPECT_EQ(page.code, 0) << page.err;
  EXPECT_EQ(read_file(scratch / "again.html"), read_file(scratch / "out/study.html"));
  for (const char* file : {"figures.csv", "networks.csv", "study.txt"})
    EXPECT_GT(read_file(scratch / (std::string("out/") + file)).size(), 300U) << file;
  // With two threads the same.
  const Ran again =
      run_monet({"backward", "--study", study, "-o", scratch / "out2", "--jobs", "2"});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(read_file(scratch / "out2/study.json"), read_file(scratch / "out/study.json"));
}

TEST(BackwardStudy, ProblemsAreLocated) {
  const Scratch scratch;
  const auto refuse = [&](const std::string& from, const std::string& to, const std::string& says) {
    std::string text = study_text();
    text.replace(text.find(from), from.size(), to);
    const std::string study = scratch.file("study.yaml", text);
    const Ran ran = run_monet({"backward", "--study", study, "-o", scratch / "out"});
    EXPECT_EQ(ran.code, 3) << ran.err;
    EXPECT_NE(ran.err.find(says), std::string::npos) << ran.err;
  };
  refuse("tiles: array", "tiles: arrays",
         "study.yaml:11:18: 'tiles' is 'arrays'; it may be array, searched, divisors (did you mean "
         "'array'?)");
  refuse("batches:", "batchs:", "study.yaml:10:1: unknown key 'batchs' (did you mean 'batches'?)");
  refuse("cores: [2]", "cores: [1]", "study.yaml:8:8: 1 is not 2 to 64");
  refuse("algorithm-1_small: 23.8", "algorithm-1_small: high", "study.yaml:12:");
  refuse("NCF: ncf", "NCF: ncg", "ncg.yaml");
  refuse("batch: 8", "batch: 0", "study.yaml:6:10: 'batch' must be 1 to 2^20");
  const Ran none = run_monet({"backward", "--study", scratch / "study.yaml"});
  EXPECT_EQ(none.code, 2);
}

} // namespace
} // namespace monet::test
