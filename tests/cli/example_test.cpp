// The experiments of examples/, as they are.
#include "cli/consistent_result.hpp"
#include "cli/run_monet.hpp"
#include "level.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

namespace monet::test {
namespace {

namespace fs = std::filesystem;

/// Choosing what is fused takes these longest: the slow level runs them as they are, others layer
/// by layer.
bool is_long_fused(const std::string& example) {
  return example == "edge_resnet18_cifar_fused" || example == "quad_core_resnet18_cifar_fused" ||
         example == "study/lora_fused" || example == "study/resnet18_fused";
}

const std::string kOptimised = "quad_core_gpt2_nano_optimised";

/// Some are left to the slow level; one has tests of its own (Run), and demo.sh runs three.
bool is_run_here(const std::string& example) {
  if (example == "edge_resnet18_cifar" || example == "fusemax_gpt2" || example == kOptimised)
    return false;
  return level() == Level::slow || example != "study/resnet18_fused_checkpointed";
}

/// Paths of experiments below examples/, without their extension.
std::vector<std::string> examples() {
  std::vector<std::string> names;
  for (const std::string folder : {"", "study/"}) {
    for (const auto& entry : fs::directory_iterator(repository("examples/" + folder))) {
      const std::string name = folder + entry.path().stem().string();
      if (entry.path().extension() == ".yaml" && is_run_here(name))
        names.push_back(name);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// Searches tell how far they are where they take seconds: lines that begin with a time.
std::string without_progress(const std::string& text) {
  std::istringstream lines(text);
  std::string rest;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind('[', 0) != 0)
      rest += line + "\n";
  }
  return rest;
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  ASSERT_NE(text.find(from), std::string::npos) << from;
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

/// The example's file, or one of its name that runs its step layer by layer.
std::string experiment_of(const Scratch& scratch, const std::string& example) {
  const std::string path = repository("examples/" + example + ".yaml");
  if (level() == Level::slow || !is_long_fused(example))
    return path;
  std::string text = read_file(path);
  replace_all(text, "mode: fused", "mode: layer-by-layer");
  replace_all(text, example.rfind("study/", 0) == 0 ? "../../data/" : "../data/",
              repository("data/"));
  return scratch.file(fs::path(path).filename().string(), text);
}

class Example : public testing::TestWithParam<std::string> {};

TEST_P(Example, WritesAConsistentResult) {
  const Scratch scratch;
  const Ran ran = run_monet({"run", experiment_of(scratch, GetParam())}, scratch.path());
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(without_progress(ran.err), "");
  const std::string folder = "out/" + fs::path(GetParam()).filename().string() + "/";
  EXPECT_NE(ran.out.find("\nreport: " + folder + "report.html\n"), std::string::npos) << ran.out;
  expect_consistent(scratch, folder);
}

TEST(Examples, OptimisedIsBetterInWhatItOptimises) {
  MONET_FROM_LEVEL(full);
  const Scratch scratch;
  const Ran ran =
      run_monet({"run", experiment_of(scratch, kOptimised), "--jobs", "2"}, scratch.path());
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(without_progress(ran.err), "");
  const std::string folder = "out/" + kOptimised + "/";
  expect_consistent(scratch, folder);
  const nlohmann::json optimise = parse_file(scratch / (folder + "result.json")).at("optimise");
  EXPECT_TRUE(optimise.at("worse").empty());
  const auto cycles = [&](int row) {
    return optimise.at("compared")[row].at("latency_cycles").get<double>();
  };
  EXPECT_LT(cycles(1), 0.95 * cycles(0));
}

INSTANTIATE_TEST_SUITE_P(All, Example, testing::ValuesIn(examples()), [](const auto& example) {
  std::string name = example.param;
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
});

} // namespace
} // namespace monet::test
