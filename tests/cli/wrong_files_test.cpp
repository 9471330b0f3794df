// Files of another kind than a command reads: one error that says what the file is.
#include "cli/run_monet.hpp"

#include "monet/base/files.hpp"

#include <gtest/gtest.h>

namespace monet::test {
namespace {

using namespace std::string_literals;

/// What a command that fails with exit code 3 says, without "error: ".
std::string refusal(const Scratch& folder, const std::vector<std::string>& arguments) {
  const Ran ran = run_monet(arguments, folder.path());
  EXPECT_EQ(ran.code, 3) << ran.err;
  EXPECT_EQ(ran.out, "");
  return ran.err.substr(0, 7) == "error: " ? ran.err.substr(7) : ran.err;
}

void expect_beginning(const std::string& text, const std::string& beginning) {
  EXPECT_EQ(text.substr(0, beginning.size()), beginning);
  EXPECT_EQ(std::ranges::count(text, '\n'), 1) << text;
}

const std::string kExperiment = "workload: {network: n.onnx}\nhardware: h.yaml\n";
const std::string kSystem = "name: s\ncores: {0: c.yaml}\ncore_connectivity: []\n";
const std::string kCore = "name: c\nmemories: {}\noperational_array: {}\n";
const std::string kSpace = "name: s\nparameters: {a: [1]}\nchip: {}\ncores: {}\n";

TEST(WrongFiles, BinaryFilesAreNamedWhereTextIsExpected) {
  const Scratch scratch;
  const std::string onnx = read_file(repository("data/workload/resnet8.onnx"));
  const std::vector<std::pair<std::string, std::string>> cases{
      {onnx, "this is an ONNX model, not a "},
      {"PK\x03\x04\0\0\0\0net/data.pkl\0"s, "this is a PyTorch file (a zip archive)"},
      {"PK\x03\x04\0\0\0\0a.txt\0"s, "this is a zip archive"},
      {"\x80\x02\x8A\x0Alm\0"s, "this is a Python pickle"},
      {"\x89PNG\r\n\x1A\n\0"s, "this is a PNG picture"},
      {"\x93NUMPY\x01\0"s, "this is a NumPy array"},
      {"%PDF-1.7\n"s, "this is a PDF document"},
      {"\xFF\xFE"
       "n\0a\0"s,
       "this is UTF-16 text"}};
  for (const auto& [bytes, message] : cases) {
    scratch.file("f", bytes);
    for (const auto& command : std::vector<std::vector<std::string>>{
             {"run", "f"},
             {"explore", "f"},
             {"cluster", "f"},
             {"train", "f"},
             {"report", "f", "-o", "out"},
             {"core", "--hardware", "f", "--workload", small_network("gated_mlp")}})
      expect_beginning(refusal(scratch, command), "f: " + message);
  }
}

TEST(WrongFiles, WhatIsNoModelIsNamedWhereAModelIsExpected) {
  const Scratch scratch;
  const std::string onnx = read_file(repository("data/workload/resnet8.onnx"));
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "the file is empty, where an ONNX model is expected"},
      {onnx.substr(0, 3000), "the file ends in the middle of the ONNX model, after 3000 bytes"},
      {onnx.substr(0, onnx.size() - 1), "the file ends in the middle of the ONNX model"},
      {"PK\x03\x04\0\0\0\0net/data.pkl\0"s,
       "this is a PyTorch file (a zip archive), not an ONNX model (export the network with "
       "torch.onnx.export"},
      {kSystem, "this is not an ONNX model but a text file (system file)"},
      {"hello\n", "this is not an ONNX model but a text file\n"}};
  for (const auto& [bytes, message] : cases) {
    scratch.file("n.onnx", bytes);
    expect_beginning(refusal(scratch, {"graph", "n.onnx"}), "n.onnx: " + message);
  }
}

TEST(WrongFiles, KindsOfYamlFilesAreRecognised) {
  const Scratch scratch;
  const std::vector<std::pair<std::string, std::string>> kinds{
      {kExperiment, "an experiment"},
      {kSystem, "a system file"},
      {kCore, "a core file"},
      {kSpace, "a hardware space"},
      {"cluster: c.yaml\nworkload: {}\n", "a cluster experiment"},
      {"network: n.onnx\ndata: {}\n", "a training experiment"},
      {"name: c\ntiers: []\ndevice: {}\n", "a cluster file"},
      {"name: t\npeak_tflops: {}\n", "a kernel table"},
      {"stacks: []\n", "a stacks file"},
      {"layers: []\n", "a table of products"},
      {"loss: mse\n", "a training file"},
      {"optimizer: {type: sgd}\n", "a training file"},
      {"- {name: default, core_allocation: [0]}\n", "a mapping file"},
      {"- {id: 0, operator_type: Gemm}\n", "a list of layers"},
      {"{\"schema_version\": 1}\n", "a result file"}};
  const std::vector<std::pair<std::vector<std::string>, std::string>> commands{
      {{"run", "f.yaml"}, "an experiment"},
      {{"explore", "f.yaml"}, "a hardware space"},
      {{"cluster", "f.yaml"}, "a cluster experiment"},
      {{"train", "f.yaml"}, "a training experiment"},
      {{"core", "--hardware", "f.yaml", "--workload", small_network("gated_mlp")}, "a core file"},
      {{"graph", small_network("gated_mlp"), "--training", "f.yaml"}, "a training file"}};
  for (const auto& [text, is] : kinds) {
    scratch.file("f.yaml", text);
    for (const auto& [command, expected] : commands) {
      if (is == expected)
        continue;
      expect_beginning(refusal(scratch, command),
                       "f.yaml: this is " + is + ", where " + expected + " is expected (");
    }
  }
}

// An experiment with a mistake is no file of another kind.
TEST(WrongFiles, AFileOfTheKindIsReadByItsReader) {
  const Scratch scratch;
  scratch.file("e.yaml", "workload: {network: n.onnx}\nhardwre: h.yaml\n");
  EXPECT_NE(refusal(scratch, {"run", "e.yaml"}).find("unknown key 'hardwre' (did you mean"),
            std::string::npos);
}

TEST(WrongFiles, MissingFilesNameTheNearest) {
  const Scratch scratch;
  std::filesystem::create_directories(scratch.path() / "data/training");
  scratch.file("data/training/adam.yaml", "loss: mse\n");
  scratch.file("chip.yaml", kSystem);
  scratch.file("e.yaml", "workload: {network: n.onnx}\nhardware: chpi.yaml\ntraining: adam.yml\n");
  const std::string network = small_network("gated_mlp");
  expect_beginning(refusal(scratch, {"graph", network, "--training", "adam"}),
                   "adam: cannot be opened: No such file or directory (did you mean "
                   "'data/training/adam.yaml'?)");
  expect_beginning(refusal(scratch, {"graph", network, "--training", "data/training/adma.yaml"}),
                   "data/training/adma.yaml: cannot be opened: No such file or directory (did you "
                   "mean 'data/training/adam.yaml'?)");
  EXPECT_EQ(refusal(scratch, {"run", "e.yaml"}),
            "e.yaml:1:21: 'n.onnx' cannot be opened: No such file or directory\n"
            "error: e.yaml:3:11: 'adam.yml' cannot be opened: No such file or directory (did you "
            "mean 'data/training/adam.yaml'?)\n"
            "error: e.yaml:2:11: 'chpi.yaml' cannot be opened: No such file or directory (did you "
            "mean 'chip.yaml'?)\n");
}

TEST(WrongFiles, TabsOfTheIndentationAreNamed) {
  const Scratch scratch;
  scratch.file("e.yaml", "name: x\nworkload:\n\tnetwork: n.onnx\nhardware: h.yaml\n");
  EXPECT_EQ(refusal(scratch, {"run", "e.yaml"}),
            "e.yaml:3:1: not valid YAML: this line is indented with a tab (YAML forbids tabs for "
            "indentation; use spaces)\n");
  scratch.file("e.yaml", "workload:\n  network: n.onnx\n \tbatch: 4\n");
  expect_beginning(refusal(scratch, {"run", "e.yaml"}), "e.yaml:3:2: not valid YAML: this line is");
}

TEST(WrongFiles, KeysOfOtherToolsAreTranslated) {
  const Scratch scratch;
  scratch.file("t.yaml", "criterion: mse\noptimizer: {type: sgd, lr: 0.1, wd: 0.1}\n");
  EXPECT_EQ(refusal(scratch, {"graph", small_network("gated_mlp"), "--training", "t.yaml"}),
            "t.yaml:2:24: unknown key 'lr' (did you mean 'learning_rate'?)\n"
            "error: t.yaml:2:33: unknown key 'wd' (did you mean 'weight_decay'?)\n"
            "error: t.yaml:1:1: unknown key 'criterion' (did you mean 'loss'?)\n");
}

} // namespace
} // namespace monet::test
