#include "cli/run_monet.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

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

TEST(Failures, AnUnwritableOutputIsBadInput) {
  const Scratch scratch;
  scratch.file("occupied", "a file, not a folder");
  const Ran ran = run_monet(
      {"run", repository("examples/edge_resnet18_cifar.yaml"), "-o", "occupied"}, scratch.path());
  EXPECT_EQ(ran.code, 3);
  EXPECT_EQ(ran.err.rfind("error: occupied: cannot be created: ", 0), 0U) << ran.err;
}

// Ctrl-C while the experiment file is being read: the stage after it does not start.
TEST(Failures, AnInterruptStopsBeforeTheNextStage) {
  const Scratch scratch;
  const std::string pipe = scratch / "e.yaml";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::execl(MONET_BINARY, "monet", "run", pipe.c_str(), static_cast<char*>(nullptr));
    ::_exit(127);
  }
  std::ofstream writer(pipe); // returns once the tool has opened the other end
  ASSERT_EQ(::kill(child, SIGINT), 0);
  writer << "workload: {network: n.onnx}\nhardware: h.yaml\n";
  writer.close();
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
}

} // namespace
} // namespace monet::test
