// Places for results that cannot be used: exit code 5, found before the work where that is
// possible, and nothing is left half-written.
#include "cli/run_monet.hpp"

#include "monet/base/files.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

namespace monet::test {
namespace {

namespace fs = std::filesystem;

class OutputPlaces : public ::testing::Test {
protected:
  OutputPlaces() { scratch_.file("occupied", "a file, not a folder"); }

  std::size_t files() const {
    const auto all = fs::recursive_directory_iterator(scratch_.path());
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }

  /// By a shell: `line` with the tool's path for "monet".
  Ran shell(const std::string& line) const {
    const std::string command =
        fmt::format("cd '{}' && monet() {{ '{}' \"$@\"; }}; {{ {}; }} >shell_out 2>shell_err",
                    scratch_.path().string(), MONET_BINARY, line);
    const int status = std::system(("bash -c " + quoted(command)).c_str());
    Ran ran{WEXITSTATUS(status), read_file(scratch_ / "shell_out"),
            read_file(scratch_ / "shell_err")};
    fs::remove(scratch_ / "shell_out");
    fs::remove(scratch_ / "shell_err");
    return ran;
  }

  static std::string quoted(const std::string& text) {
    std::string word = "'";
    for (const char c : text)
      word += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return word + "'";
  }

  Scratch scratch_;
  std::string network_ = repository("data/workload/gpt2_nano.onnx");
  std::string experiment_ = repository("examples/study/batch.yaml");
};

const std::vector<std::string>& step() {
  static const std::vector<std::string> options{
      "--hardware", repository("data/hardware/tpu_like_quad_core.yaml"),
      "--workload", repository("data/workload/resnet18_cifar.onnx"),
      "--batch",    "1",
      "--training", repository("data/training/adam.yaml")};
  return options;
}

std::vector<std::string> with(std::vector<std::string> command, bool a_step,
                              const std::string& option, const std::string& place) {
  if (a_step)
    command.insert(command.end(), step().begin(), step().end());
  command.insert(command.end(), {option, place});
  return command;
}

// Whatever option names the place, of whatever command: below a file there can be none. Nothing is
// read or searched before.
TEST_F(OutputPlaces, OfEveryOptionAreTriedFirst) {
  const std::string space = repository("data/spaces/edge_study.yaml");
  struct Case {
    std::vector<std::string> command;
    bool a_step = false; ///< gets a network and a chip, with which it would take long
    std::vector<std::string> options;
  };
  const std::vector<Case> cases{
      {{"run", experiment_}, false, {"-o"}},
      {{"graph", network_, "--batch", "1"}, false, {"-o", "--svg", "--json"}},
      {{"graph", network_, "--batch", "1", "--execute"}, false, {"--save"}},
      {{"core", "--hardware", "none.yaml", "--memories"}, false, {"--json"}},
      {{"backward", "--hardware", "none.yaml", "--gemm", "1,1,1"}, false, {"--json"}},
      {{"backward", "--study", "none.yaml", "-o", "out"}, false, {"--json"}},
      {{"schedule"}, true, {"--json"}},
      {{"optimise", "allocation"}, true, {"--json", "--report", "--mapping-out"}},
      {{"optimise", "fusion"}, true, {"--json", "--report", "--stacks-out"}},
      {{"optimise", "checkpointing"}, true, {"--json", "--report", "-o"}},
      {{"optimise", "joint"}, true, {"--json", "--report", "--plan-out"}},
      {{"explore", space}, false, {"--json", "-o", "--export-csv", "--store"}},
      {{"formats"}, false, {"--json"}},
      {{"formats", "--quantise", "none.npy", "--format", "fp8", "-o", "out.npy"},
       false,
       {"--scales", "--codes", "--json"}},
      {{"formats", "--quantise", "none.npy", "--format", "fp8"}, false, {"-o"}},
      {{"formats", "--gemm", "none.npy", "none.npy", "--mul", "fp8", "--acc", "fp32"},
       false,
       {"-o"}},
      {{"report", "none.json"}, false, {"-o"}},
      {{"train", "none.yaml"}, false, {"-o"}},
      {{"cluster", "none.yaml"}, false, {"-o", "--json"}},
  };
  for (const Case& one : cases) {
    for (const std::string& option : one.options) {
      const Ran ran =
          run_monet(with(one.command, one.a_step, option, "occupied/place"), scratch_.path());
      const std::string what = fmt::format("{} {}", fmt::join(one.command, " "), option);
      EXPECT_EQ(ran.code, 5) << what << "\n" << ran.err;
      EXPECT_EQ(ran.err, "error: occupied/place: cannot be created: Not a directory\n") << what;
      EXPECT_EQ(ran.out, "") << what;
    }
  }
  EXPECT_EQ(files(), 1U);
}

TEST_F(OutputPlaces, ExploreEndsBeforeItEvaluatesADesign) {
  const std::string store = scratch_ / "s.db";
  const Ran ran = run_monet({"explore", repository("data/spaces/edge_study.yaml"), "--strategy",
                             "random", "--budget", "18", "--store", store, "-o", "occupied/out"},
                            scratch_.path());
  EXPECT_EQ(ran.code, 5);
  EXPECT_EQ(ran.err, "error: occupied/out: cannot be created: Not a directory\n");
  EXPECT_EQ(files(), 1U); // the store has not been made
}

TEST_F(OutputPlaces, NothingIsLeftOfThoseOfAnotherFailure) {
  EXPECT_EQ(run_monet({"run", "none.yaml"}, scratch_.path()).code, 3);
  EXPECT_EQ(run_monet({"run", "none.yaml", "-o", "a/b/c"}, scratch_.path()).code, 3);
  EXPECT_EQ(
      run_monet({"graph", "none.onnx", "--json", "a.json", "-o", "b.onnx"}, scratch_.path()).code,
      3);
  EXPECT_EQ(files(), 1U);
}

// One folder for two options, and a file in a folder that is not there yet.
TEST_F(OutputPlaces, MayLieInEachOther) {
  const Ran ran = run_monet({"optimise",
                             "joint",
                             "--hardware",
                             step()[1],
                             "--workload",
                             network_,
                             "--batch",
                             "1",
                             "--rounds",
                             "1",
                             "--levels",
                             "0",
                             "--group-evaluations",
                             "0",
                             "--core-evaluations",
                             "0",
                             "--report",
                             "out",
                             "--plan-out",
                             "out/",
                             "--json",
                             "out/joint.json"},
                            scratch_.path());
  EXPECT_EQ(ran.code, 0) << ran.err;
  for (const char* name : {"result.json", "step.onnx", "joint.json"})
    EXPECT_TRUE(fs::is_regular_file(scratch_ / ("out/" + std::string(name)))) << name;
  EXPECT_FALSE(fs::exists(scratch_ / "out/.monet.lock"));
}

TEST_F(OutputPlaces, AFolderIsForOneRunAtATime) {
  const std::string folder = scratch_ / "out";
  {
    const LockedFolder other(folder);
    const Ran ran = run_monet({"run", experiment_, "-o", folder});
    EXPECT_EQ(ran.code, 5);
    EXPECT_EQ(ran.err, fmt::format("error: {}: is in use by another run: {}\n", folder,
                                   read_file(folder + "/.monet.lock")));
    EXPECT_EQ(ran.out, "");
  }
  const std::vector<std::string> command{"explore",    repository("data/spaces/edge_study.yaml"),
                                         "--strategy", "random",
                                         "--budget",   "40",
                                         "--jobs",     "1",
                                         "-o",         folder};
  EXPECT_EQ(run_signalled(command, SIGKILL, 0.2).code, 137);
  EXPECT_TRUE(fs::exists(folder + "/.monet.lock")); // which nobody holds any more
  const Ran ran = run_monet({"run", experiment_, "-o", folder});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_FALSE(fs::exists(folder + "/.monet.lock"));
}

TEST_F(OutputPlaces, AFullDiskLeavesWhatWasThere) {
  scratch_.file("f.json", "before");
  const Ran ran = shell("ulimit -f 1; monet graph " + network_ + " --batch 1 --json f.json");
  EXPECT_EQ(ran.code, 5) << ran.err;
  EXPECT_EQ(ran.err, "error: f.json: cannot be written: File too large\n");
  EXPECT_EQ(read_file(scratch_ / "f.json"), "before");
  EXPECT_EQ(files(), 2U);
  const Ran device = shell("monet graph " + network_ + " --batch 1 --json /dev/full");
  EXPECT_EQ(device.code, 5);
  EXPECT_EQ(device.err, "error: /dev/full: cannot be written: No space left on device\n");
}

TEST_F(OutputPlaces, AFullDiskAtTheEndOfAnExplorationLosesNoDesign) {
  const std::string space = repository("data/spaces/edge_study.yaml");
  const Ran ran =
      shell("ulimit -f 4; monet explore " + space +
            " --strategy random --budget 2 --jobs 1 -o out | cat; exit ${PIPESTATUS[0]}");
  EXPECT_EQ(ran.code, 5) << ran.err;
  EXPECT_NE(ran.err.find("cannot be written: File too large\n"), std::string::npos) << ran.err;
  EXPECT_NE(ran.out.find("2 evaluated"), std::string::npos) << ran.out;
}

TEST_F(OutputPlaces, AFolderThatVanishesIsSaid) {
  const std::string command = fmt::format(
      "mkdir gone && cd gone && rmdir ../gone && monet graph {} --batch 1 --json f.json", network_);
  const Ran ran = shell(command);
  EXPECT_EQ(ran.code, 5) << ran.err;
  EXPECT_EQ(ran.err, "error: f.json: cannot be created: No such file or directory\n");
}

TEST_F(OutputPlaces, StandardOutputIsOne) {
  const std::string graph = "monet graph " + network_ + " --batch 1";
  Ran ran = shell(graph + " >/dev/full");
  EXPECT_EQ(ran.code, 5);
  EXPECT_EQ(ran.err, "error: standard output: cannot be written: No space left on device\n");
  ran = shell(graph + " --json - >/dev/full");
  EXPECT_EQ(ran.code, 5);
  ran = shell("monet --help >/dev/full");
  EXPECT_EQ(ran.code, 5);
  ran = shell(graph + " >&-"); // and no file is taken for it
  EXPECT_EQ(ran.code, 5);
  EXPECT_EQ(ran.err, "error: standard output: is closed\n");
  ran = shell("monet graph none.onnx 2>/dev/full");
  EXPECT_EQ(ran.code, 3);
  ran = shell("monet graph none.onnx 2>&-");
  EXPECT_EQ(ran.code, 3);
}

// A reader that has what it wants: as with any other tool, not a word.
TEST_F(OutputPlaces, ReadersMayLeave) {
  const std::string run = "monet graph " + repository("data/workload/resnet18_cifar.onnx") +
                          " --batch 1 --json - -o written.onnx";
  for (const char* before :
       {"", "trap '' PIPE; "}) { // what the caller does with the signal is no matter
    const Ran ran = shell(fmt::format("{}{} | true; exit ${{PIPESTATUS[0]}}", before, run));
    EXPECT_EQ(ran.code, 141);
    EXPECT_EQ(ran.err, "");
    EXPECT_TRUE(fs::is_regular_file(scratch_ / "written.onnx"));
  }
  EXPECT_EQ(shell("monet graph --operators | head -1").err, "");
  EXPECT_EQ(shell("monet --help | true").err, "");
}

// Devices and pipes have no end, and may have no beginning.
TEST_F(OutputPlaces, OnlyFilesAreRead) {
  const std::string pipe = scratch_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::string system = repository("data/hardware/edge_tpu.yaml");
  for (const auto& [file, kind] : std::vector<std::pair<std::string, std::string>>{
           {"/dev/zero", "a device"}, {pipe, "a pipe"}, {scratch_.path().string(), "a folder"}}) {
    const std::vector<std::vector<std::string>> commands{
        {"report", file, "-o", scratch_ / "page.html"},
        {"graph", file},
        {"graph", network_, "--batch", "1", "--training", file},
        {"graph", network_, "--batch", "1", "--execute", "--numbers", "wte.weight=" + file},
        {"run", file, "-o", scratch_ / "out"},
        {"core", "--hardware", file, "--workload", network_},
        {"core", "--hardware", repository("data/hardware/cores/edge_tpu_pe.yaml"), "--workload",
         file},
        {"schedule", "--hardware", system, "--workload", network_, "--mapping", file},
        {"schedule", "--hardware", system, "--workload", network_, "--mode", "fused", "--stacks",
         file},
        {"optimise", "checkpointing", "--log", file, "--sweep"},
        {"explore", file},
        {"cluster", file},
        {"explore", "--compare", file, file},
        {"formats", "--quantise", file, "--format", "fp8", "-o", scratch_ / "out.npy"},
        {"formats", "--gemm", file, file, "--mul", "fp8", "--acc", "fp32", "-o",
         scratch_ / "out.npy"},
    };
    for (const std::vector<std::string>& command : commands) {
      const Ran ran = run_monet(command);
      EXPECT_EQ(ran.code, 3) << fmt::format("{}", fmt::join(command, " ")) << "\n" << ran.err;
      EXPECT_NE(ran.err.find(fmt::format("error: {}: is {}, not a file\n", file, kind)),
                std::string::npos)
          << fmt::format("{}", fmt::join(command, " ")) << "\n"
          << ran.err;
    }
  }
}

} // namespace
} // namespace monet::test
