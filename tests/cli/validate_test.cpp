// monet validate: every shipped file is of a known kind and valid; errors have their places.
#include "cli/run_monet.hpp"

#include "monet/base/files.hpp"

#include <gtest/gtest.h>

#include <set>

namespace monet::test {
namespace {

std::vector<std::string> shipped(const std::set<std::string>& extensions) {
  std::vector<std::string> files;
  for (const char* folder : {"data", "examples"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(repository(folder))) {
      if (entry.is_regular_file() && extensions.contains(entry.path().extension().string()))
        files.push_back(entry.path().string());
    }
  }
  std::ranges::sort(files);
  return files;
}

TEST(Validate, EveryShippedFileIsValid) {
  std::vector<std::string> files = shipped({".yaml", ".yml", ".onnx"});
  EXPECT_GT(files.size(), 100U);
  std::vector<std::string> arguments{"validate"};
  arguments.insert(arguments.end(), files.begin(), files.end());
  const Ran ran = run_monet(arguments);
  EXPECT_EQ(ran.code, 0) << ran.err;
  for (const std::string& file : files) {
    const std::size_t at = ran.out.find(file + ": ");
    ASSERT_NE(at, std::string::npos) << file;
    const std::string line = ran.out.substr(at, ran.out.find('\n', at) - at);
    EXPECT_TRUE(line.ends_with(", valid")) << line;
  }
}

TEST(Validate, KindsAreThoseOfTheContent) {
  for (const auto& [file, kind] : std::map<std::string, std::string>{
           {"data/hardware/edge_tpu.yaml", "system file"},
           {"data/hardware/cores/edge_tpu_pe.yaml", "core file"},
           {"data/spaces/cores/unit_array.yaml", "template of a core file"},
           {"data/training/adam.yaml", "training file"},
           {"data/spaces/edge.yaml", "hardware space"},
           {"data/cluster/selene.yaml", "cluster file"},
           {"data/cluster/a100.yaml", "kernel table"},
           {"data/workload/gemm/bert_large.yaml", "table of products"},
           {"data/workload/resnet8.onnx", "ONNX model"},
           {"examples/core/product.yaml", "list of layers"},
           {"examples/core/dataflow.yaml", "mapping file"},
           {"examples/cluster/gpt3_175b_plan.yaml", "cluster experiment"},
           {"examples/numerics/brief.yaml", "training experiment"},
           {"examples/interleaved_gradients/paper.yaml", "study of backward passes"},
           {"examples/edge_resnet18_cifar.yaml", "experiment"}}) {
    const Ran ran = run_monet({"validate", repository(file)});
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(ran.out, repository(file) + ": " + kind + ", valid\n");
  }
}

TEST(Validate, ErrorsOfAllFilesHaveTheirPlaces) {
  const Scratch scratch;
  scratch.file("e.yaml", "workload: {network: none.onnx}\nhardware: none.yaml\n");
  scratch.file("t.yaml", "loss: mse\nlr: 1\n");
  scratch.file("good.yaml", "loss: mse\n");
  scratch.file("x.yaml", "colour: red\n");
  scratch.file("n.onnx", "");
  const Ran ran =
      run_monet({"validate", "e.yaml", "t.yaml", "good.yaml", "x.yaml", "n.onnx"}, scratch.path());
  EXPECT_EQ(ran.code, 3);
  EXPECT_EQ(ran.out, "good.yaml: training file, valid\n");
  for (const char* said :
       {"error: e.yaml:1:21: 'none.onnx' cannot be opened",
        "error: e.yaml:2:11: 'none.yaml' cannot be opened", "error: t.yaml:2:1: unknown key 'lr'",
        "error: x.yaml: the keys of this file are those of no file of MONET",
        "error: n.onnx: the file is empty"})
    EXPECT_NE(ran.err.find(said), std::string::npos) << said << "\n" << ran.err;
}

} // namespace
} // namespace monet::test
