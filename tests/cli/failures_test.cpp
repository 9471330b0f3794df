#include "cli/run_monet.hpp"

#include <gtest/gtest.h>

#include <csignal>

namespace monet::test {
namespace {

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
  EXPECT_EQ(ran.err, "error: none.onnx: cannot be opened: No such file or directory\n"
                     "error: none.yaml: cannot be opened: No such file or directory\n"
                     "error: none_either.yaml: cannot be opened: No such file or directory\n");
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
