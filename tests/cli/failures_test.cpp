#include "cli/run_monet.hpp"

#include "monet/base/files.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>

namespace monet::test {
namespace {

// Some 400 MB of address space: the numbers of the step do not fit.
TEST(Failures, TooLittleMemoryIsInfeasible) {
  const Scratch scratch;
  const int status = std::system(
      fmt::format("ulimit -v 400000; '{}' graph '{}' --batch 16 --execute >'{}' 2>&1", MONET_BINARY,
                  repository("data/workload/gpt_4x512.onnx"), scratch / "said")
          .c_str());
  const std::string said = read_file(scratch / "said");
  EXPECT_EQ(WEXITSTATUS(status), 4) << said;
  EXPECT_NE(said.find("bytes"), std::string::npos) << said;
}

TEST(Failures, WarningsAreOnStandardErrorAndInTheResult) {
  const Scratch scratch;
  scratch.file("m.yaml", "- {name: default}\n- {name: Tokeniser, core_allocation: [0]}\n");
  const Ran ran =
      run_monet({"schedule", "--hardware", repository("data/hardware/edge_tpu.yaml"), "--workload",
                 small_network("gated_mlp"), "--mapping", "m.yaml", "--json", "-"},
                scratch.path());
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.err.find("warning: m.yaml:2:3: entry 'Tokeniser' is ignored"), std::string::npos)
      << ran.err;
  const auto warnings = nlohmann::json::parse(ran.out).at("warnings");
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_EQ(warnings[0].at("where"), "m.yaml:2:3");
}

TEST(Failures, AMissingFileIsNamed) {
  const Scratch scratch;
  const Ran ran = run_monet({"run", "none.yaml"}, scratch.path());
  EXPECT_EQ(ran.code, 3);
  EXPECT_EQ(ran.err, "error: none.yaml: cannot be opened: No such file or directory\n");
  EXPECT_EQ(ran.out, "");
}

// Each problem on a line of its own, in one run, with its place; and nothing is written.
TEST(Failures, AnExperimentsProblemsAreAllReported) {
  const Scratch scratch;
  scratch.file("e.yaml", "nam: x\n"
                         "workload: {network: n.onnx, batch: 0, dimensions: {s: -1}}\n"
                         "schedule: {mode: fuse, stacks: s.yaml, halo: cache, priority: speed, "
                         "objective: latencie, lpf_limit: 99}\n"
                         "optimise: {fusion: {}}\n");
  const Ran ran = run_monet({"run", "e.yaml", "-o", "out"}, scratch.path());
  EXPECT_EQ(ran.code, 3);
  EXPECT_EQ(ran.out, "");
  expect_golden("experiment_errors.txt", ran.err);
  EXPECT_FALSE(std::filesystem::exists(scratch.path() / "out"));
}

TEST(Failures, ProblemsOfAllInputFilesComeTogether) {
  const Scratch scratch;
  scratch.file("e.yaml",
               "workload: {network: none.onnx}\nhardware: none.yaml\nmapping: none_either.yaml\n");
  const Ran ran = run_monet({"run", "e.yaml"}, scratch.path());
  EXPECT_EQ(ran.code, 3);
  EXPECT_EQ(ran.err, "error: e.yaml:1:21: 'none.onnx' cannot be opened: No such file or directory\n"
                     "error: e.yaml:2:11: 'none.yaml' cannot be opened: No such file or directory\n"
                     "error: e.yaml:3:10: 'none_either.yaml' cannot be opened: No such file or "
                     "directory\n");
}

TEST(Failures, ATrainingFilesProblemsNameThatFile) {
  const Scratch scratch;
  scratch.file("t.yaml", "loss: crossentropy\nstor: minimal\n");
  scratch.file("e.yaml", "workload: {network: n.onnx}\nhardware: h.yaml\ntraining: t.yaml\n");
  const Ran ran = run_monet({"run", "e.yaml"}, scratch.path());
  EXPECT_EQ(ran.code, 3);
  EXPECT_NE(ran.err.find("error: t.yaml:1:7: "), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("error: t.yaml:2:1: "), std::string::npos) << ran.err;
}

TEST(Failures, ControlCharactersOfAFileDoNotReachTheTerminal) {
  const Scratch scratch;
  const Ran ran = run_monet({"run", "a\x1B[2J.yaml"}, scratch.path());
  EXPECT_EQ(ran.code, 3);
  EXPECT_EQ(ran.err.find('\x1B'), std::string::npos);
}

// Ctrl-C as soon as there is who listens: the next stage does not start.
TEST(Failures, AnInterruptStopsBeforeTheNextStage) {
  const Scratch scratch;
  const Ran ran = run_signalled(
      {"run", repository("examples/edge_resnet18_cifar.yaml"), "-o", scratch / "out"}, SIGINT, 0);
  EXPECT_EQ(ran.code, 130) << ran.err;
  EXPECT_EQ(ran.out, "");
  EXPECT_FALSE(std::filesystem::exists(scratch / "out"));
}

} // namespace
} // namespace monet::test
