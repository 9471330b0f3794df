// monet explain: its rows equal runs with the change, and loop nests multiply to the tile.
#include "cli/run_monet.hpp"
#include "report/json_schema.hpp"

#include "monet/base/files.hpp"

#include <gtest/gtest.h>

namespace monet::test {
namespace {

using Json = nlohmann::json;

/// An experiment on a copy of a small chip, with `batch` and further lines.
std::string experiment(const Scratch& scratch, const std::string& name, const std::string& chip,
                       int batch, const std::string& more = "") {
  return scratch.file(
      name, "name: small\nworkload: {network: " + repository("data/workload/resnet8_16.onnx") +
                ", batch: " + std::to_string(batch) + "}\nhardware: " + chip +
                "\nschedule: {mode: layer-by-layer}\ntraining: {optimizer: {type: "
                "sgd}" +
                more + "}\n");
}

Json explained(const Scratch& scratch, const std::string& file,
               const std::vector<std::string>& more = {}) {
  std::vector<std::string> command{"explain", file, "--json", "-"};
  command.insert(command.end(), more.begin(), more.end());
  const Ran ran = run_monet(command, scratch.path());
  EXPECT_EQ(ran.code, 0) << ran.err;
  Json found = Json::parse(ran.out);
  EXPECT_EQ(
      schema_violations(Json::parse(read_file(repository("docs/explain.schema.json"))), found),
      std::vector<std::string>{});
  return found;
}

Json modelled(const Scratch& scratch, const std::string& file) {
  const Ran ran = run_monet({"run", file, "-o", "out"}, scratch.path());
  EXPECT_EQ(ran.code, 0) << ran.err;
  return Json::parse(read_file(scratch / "out/result.json"));
}

void expect_row(const Json& rows, const std::string& change, const Json& result) {
  for (const Json& row : rows) {
    if (row.at("change") != change)
      continue;
    for (const char* key : {"latency_cycles", "energy_pj", "peak_memory_bytes"})
      EXPECT_EQ(row.at(key), result.at(key)) << change << " " << key;
    return;
  }
  ADD_FAILURE() << "no row " << change;
}

using Edits = std::vector<std::pair<std::string, std::string>>;

/// Replaces every occurrence of texts in a file.
void edit(const std::string& path, const Edits& edits) {
  std::string text = read_file(path);
  for (const auto& [from, to] : edits) {
    std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    for (; at != std::string::npos; at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
  }
  write_file_atomically(path, text);
}

/// A copy of the shipped hardware with edits of edge_tpu.yaml, its array and its off-chip memory;
/// returns the system file.
std::string edited_chip(const Scratch& scratch, const std::string& folder, const Edits& system,
                        const Edits& array = {}, const Edits& dram = {}) {
  std::filesystem::copy(repository("data/hardware"), scratch / folder,
                        std::filesystem::copy_options::recursive);
  edit(scratch / (folder + "/edge_tpu.yaml"), system);
  edit(scratch / (folder + "/cores/edge_tpu_pe.yaml"), array);
  edit(scratch / (folder + "/cores/dram_64bit.yaml"), dram);
  return scratch / (folder + "/edge_tpu.yaml");
}

TEST(Explain, RowsEqualRunsWithTheChange) {
  const Scratch scratch;
  const std::string chip = repository("data/hardware/edge_tpu.yaml");
  const Json found = explained(scratch, experiment(scratch, "e.yaml", chip, 2));
  const Json& rows = found.at("what_if");
  const auto run = [&](const std::string& hardware, int batch, const std::string& more = "") {
    return modelled(scratch, experiment(scratch, "changed.yaml", hardware, batch, more));
  };
  EXPECT_EQ(found.at("latency_cycles"), run(chip, 2).at("latency_cycles"));
  expect_row(rows, "batch x2", run(chip, 4));
  expect_row(rows, "tensors in bf16",
             run(chip, 2, ", precision: {weights: bf16, activations: bf16, gradients: bf16}"));
  expect_row(rows, "links between cores x2",
             run(edited_chip(scratch, "links", {{"bandwidth: 32", "bandwidth: 64"}}), 2));
  expect_row(rows, "off-chip bandwidth x2",
             run(edited_chip(scratch, "dram", {{"bandwidth: 128", "bandwidth: 256"}}, {},
                             {{"_cost: 1000", "_cost: 2000"},
                              {"_min: 64", "_min: 128"},
                              {"_max: 64", "_max: 128"}}),
                 2));
}

TEST(Explain, ALayerHasItsLoopNest) {
  const Scratch scratch;
  const std::string file =
      experiment(scratch, "e.yaml", repository("data/hardware/npu_small.yaml"), 1);
  const std::string layer = "/layer1/layer1.0/conv1/Conv";
  const Ran ran = run_monet({"explain", file, "--layer", layer, "--no-what-if"}, scratch.path());
  ASSERT_EQ(ran.code, 0) << ran.err;
  for (const char* text : {"critical path", "runs ", "for ", "unrolled over", "tiles on"})
    EXPECT_NE(ran.out.find(text), std::string::npos) << text << "\n" << ran.out;
  const Json found = explained(scratch, file, {"--layer", layer, "--no-what-if"});
  ASSERT_EQ(found.at("layers").size(), 1U);
  EXPECT_EQ(found.at("layers")[0].at("name"), layer);
  EXPECT_FALSE(found.contains("what_if"));
}

/// A result is valid however large it is, but no experiment.
TEST(Explain, NamesLargeResults) {
  const Scratch scratch;
  std::string result = R"({"schema_version":1,"kind":"cluster","name":"n","timeline":{"passes":[0)";
  for (int i = 0; i < 1'000'001; ++i)
    result += ",0";
  scratch.file("r.json", result + "]}}");
  const Ran ran = run_monet({"explain", "r.json"}, scratch.path());
  EXPECT_EQ(ran.code, 3);
  EXPECT_NE(ran.err.find("this is a result"), std::string::npos) << ran.err;
  const Ran valid = run_monet({"validate", "r.json"}, scratch.path());
  EXPECT_EQ(valid.out, "r.json: result file, valid\n") << valid.err;
}

TEST(Explain, RefusesUnknownLayersAndSearches) {
  const Scratch scratch;
  const std::string file =
      experiment(scratch, "e.yaml", repository("data/hardware/npu_small.yaml"), 1);
  const Ran ran =
      run_monet({"explain", file, "--layer", "/layer1/layer1.0/conv1/Con"}, scratch.path());
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.err.find("did you mean '/layer1/layer1.0/conv1/Conv'"), std::string::npos)
      << ran.err;
  EXPECT_EQ(run_monet({"explain", repository("examples/quad_core_gpt2_nano_optimised.yaml")}).code,
            2);
}

} // namespace
} // namespace monet::test
