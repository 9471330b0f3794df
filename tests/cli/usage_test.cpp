#include "cli/run_monet.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace monet::test {
namespace {

const std::vector<std::string> kSubcommands{"run",      "graph",    "core",    "backward",
                                            "schedule", "optimise", "explore", "formats",
                                            "cluster",  "report",   "validate"};

TEST(Usage, VersionAndComponentsAreOnStdout) {
  const Ran ran = run_monet({"--version"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out.rfind("monet 0.2.0 (", 0), 0U) << ran.out;
  const auto second = ran.out.find('\n') + 1;
  EXPECT_EQ(ran.out.find("components: "), second) << ran.out;
  EXPECT_EQ(ran.out.find('\n', second) + 1, ran.out.size());
  EXPECT_EQ(ran.err, "");
}

TEST(Usage, ABuildWithoutTheReferenceEnginesRefusesThem) {
  if (has_component("reference"))
    GTEST_SKIP();
  for (const auto& arguments :
       {std::vector<std::string>{"optimise", "fusion", "--model", "einsum", "--matmuls", "8,8,8"},
        {"schedule", "--model", "stream-coala", "--hardware", "c.yaml", "--workload", "n.onnx"}}) {
    const Ran ran = run_monet(arguments);
    EXPECT_EQ(ran.code, 2);
    EXPECT_EQ(ran.err.rfind("error: this build lacks --model ", 0), 0U) << ran.err;
  }
}

TEST(Usage, ABuildWithoutMpiRefusesItsJobs) {
  if (has_component("mpi"))
    GTEST_SKIP();
  ::setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
  const Ran ran = run_monet({"explore", "space.yaml"});
  ::unsetenv("OMPI_COMM_WORLD_SIZE");
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(ran.err.rfind("error: this build lacks MPI", 0), 0U) << ran.err;
}

TEST(Usage, HelpNamesEverySubcommand) {
  const Ran ran = run_monet({"--help"});
  EXPECT_EQ(ran.code, 0);
  for (const std::string& name : kSubcommands) {
    EXPECT_NE(ran.out.find("\n  " + name + " "), std::string::npos) << name;
  }
}

TEST(Usage, EveryHelpEndsWithAnExample) {
  for (const std::string& name : kSubcommands) {
    const Ran ran = run_monet({name, "--help"});
    EXPECT_EQ(ran.code, 0);
    const std::size_t last = ran.out.rfind('\n', ran.out.size() - 2) + 1;
    EXPECT_EQ(ran.out.rfind("Example: monet " + name + " ", std::string::npos), last) << ran.out;
  }
}

TEST(Usage, TheWordHelpIsTheOptionHelp) {
  for (const auto& words : {std::vector<std::string>{}, {"run"}, {"optimise", "fusion"}}) {
    std::vector<std::string> before{"help"};
    before.insert(before.end(), words.begin(), words.end());
    std::vector<std::string> after = words;
    after.emplace_back("--help");
    const Ran ran = run_monet(before);
    EXPECT_EQ(ran.code, 0);
    EXPECT_EQ(ran.out, run_monet(after).out);
  }
}

struct Wrong {
  std::vector<std::string> arguments;
  std::string message;
};

TEST(Usage, WrongCommandLinesExitWith2AndSayWhy) {
  const std::vector<Wrong> cases{
      {{}, "error: a subcommand is required: monet run, graph, core, "},
      {{"fly"}, "'fly' is not a subcommand; see --help"},
      {{"shedule"}, "'shedule' is not a subcommand: did you mean 'schedule'?"},
      {{"rnu"}, "'rnu' is not a subcommand: did you mean 'run'?"},
      {{"help", "rnu"}, "'rnu' is not a subcommand: did you mean 'run'?"},
      {{"run"}, "error: experiment is required; see --help\n"},
      {{"run", "e.yaml", "--outptu", "x"}, "unknown option '--outptu' (did you mean '--output'?)"},
      {{"schedule", "--hardwre=X"},
       "error: unknown option '--hardwre' (did you mean '--hardware'?)"},
      {{"schedule", "--fly"}, "unknown option '--fly'; see monet schedule --help"},
      {{"schedule", "-z"}, "unknown option '-z'; see monet schedule --help"},
      {{"optimise", "fusion", "--jbos", "2"}, "unknown option '--jbos' (did you mean '--jobs'?)"},
      {{"--verison"}, "unknown option '--verison' (did you mean '--version'?)"},
      {{"run", "e.yaml", "--jobs", "-1"}, "--jobs"},
      {{"graph", "n.onnx", "--batch", "0"}, "--batch"},
      {{"graph", "n.onnx", "--dim", "sequence"},
       "'sequence' is not of the form name=positive number"},
      {{"graph", "n.onnx", "--dim", "a=1", "--dim", "a=2"}, "'a' is given twice"},
      {{"graph", "n.onnx", "--dim", "a=99999999999999999999"}, "not of the form"},
      {{"schedule", "--hardware", "h", "--workload", "w", "--stacks", "s.yaml", "--mode",
        "layer-by-layer"},
       "--stacks has no effect layer by layer; leave out --mode"},
      {{"schedule", "--hardware", "h", "--workload", "w", "--mode", "fuse"}, "--mode"},
      {{"schedule", "--hardware", "h", "--workload", "w", "--halo", "none"}, "--halo"},
      {{"core", "--hardware", "h", "--workload", "w", "--objective", "speed"}, "--objective"},
      {{"core", "--hardware", "h", "--workload", "w", "--lpf-limit", "0"}, "--lpf-limit"},
      {{"core", "--hardware", "h", "--workload", "w", "--lpf-limit", "65"},
       "'65' is neither 1 to 64 nor none"},
      {{"core", "--hardware", "h", "--workload", "w", "--model", "zigzag"}, "--model"},
      {{"core", "--hardware", "h", "--workload", "w", "--choice", "widest-stop=on"},
       "'widest-stop' is not a choice of the model; did you mean 'widest-step'?"},
      {{"core", "--hardware", "h", "--workload", "w", "--choice", "widest-step"},
       "is not of the form name=on or name=off"},
      {{"core", "--hardware", "h", "--workload", "w.yaml", "--batch", "2"},
       "--batch and --dim are for ONNX networks"},
      {{"core", "--hardware", "h", "--workload", "w", "--generated", "0"}, "--generated"},
      {{"fusion"}, "'fusion' is not a subcommand: did you mean 'optimise fusion'?"},
      {{"optimise"}, "error: a subcommand is required: monet optimise allocation, fusion, "},
      {{"optimise", "fusoin"},
       "'fusoin' is not a subcommand of monet optimise: did you mean 'fusion'?"},
      {{"optimise", "joint"}, "an experiment file, or --hardware and --workload are required"},
      {{"optimise", "joint", "e.yaml", "--batch", "2"},
       "--batch must be set in the experiment file"}};
  for (const Wrong& wrong : cases) {
    const Ran ran = run_monet(wrong.arguments);
    EXPECT_EQ(ran.code, 2) << wrong.message;
    EXPECT_EQ(ran.out, "") << wrong.message;
    EXPECT_NE(ran.err.find(wrong.message), std::string::npos) << ran.err;
  }
}

} // namespace
} // namespace monet::test
