// kill -9 at any moment: files are whole or not there, and stores go on to the same table. And how
// soon the tool ends when it is asked to.
#include "base/shared/rng.hpp"
#include "cli/run_monet.hpp"
#include "level.hpp"

#include "monet/base/files.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>

namespace monet::test {
namespace {

namespace fs = std::filesystem;

/// Moments for each way to run the tool.
const int kKills = cases(1, 2, 40);

class Kills : public ::testing::Test {
protected:
  Kills() {
    space_ = small_study(scratch_);
    fs::create_directory(out());
  }

  std::string out() const { return scratch_ / "out"; }

  /// Whether all that lies in the folder of results can be used. What was being
  /// written has the ending .tmp; .monet.lock holds nothing once its run is dead.
  void expect_whole_files() {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(out())) {
      const fs::path& path = entry.path();
      if (!entry.is_regular_file() || path.extension() == ".tmp" || path.extension() == ".lock")
        continue;
      const std::string text = read_file(path.string());
      const std::string kind = path.extension().string();
      if (kind == ".json")
        EXPECT_TRUE(nlohmann::json::accept(text)) << path;
      else if (kind == ".html")
        EXPECT_EQ(text.substr(text.find_last_not_of('\n') - 6, 7), "</html>") << path;
      else if (kind == ".onnx")
        EXPECT_EQ(run_monet({"graph", path.string()}).code, 0) << path;
      else if (kind == ".csv")
        EXPECT_EQ(text.back(), '\n') << path;
      else
        EXPECT_TRUE(kind == ".yaml" || kind == ".db" ||
                    path.string().find(".db-") != path.string().npos)
            << path << " is nothing that was asked for";
      ++files_;
    }
  }

  /// A process group of its own, so that mpirun's children go with it.
  static int run_killed(const std::string& command, double seconds) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::setpgid(0, 0);
      ::execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
      ::_exit(127);
    }
    ::setpgid(child, child);
    ::usleep(static_cast<useconds_t>(seconds * 1e6));
    ::kill(-child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    return status;
  }

  std::string explore(const std::string& more) const {
    return fmt::format(
        "'{}' explore '{}' --strategy random --budget 12 --store '{}/s.db' --resume {}",
        MONET_BINARY, space_, out(), more);
  }

  /// Kills a command at random moments of its CPU time, and then lets it end.
  void expect_whole_results(const std::vector<std::string>& command, double longest) {
    int killed = 0;
    for (int kill = 0; kill < kKills; ++kill) {
      killed += run_signalled(command, SIGKILL, random_.unit() * longest).code == 137 ? 1 : 0;
      expect_whole_files();
    }
    EXPECT_GT(killed, 0);
    const Ran ran = run_monet(command);
    EXPECT_EQ(ran.code, 0) << ran.err;
    files_ = 0;
    expect_whole_files();
    EXPECT_GE(files_, 4);
  }

  /// Kills explorations in one store at random moments, and then lets one end.
  void expect_the_same_table(const std::string& before, const std::string& jobs) {
    const std::string outputs =
        fmt::format(" -o '{0}/report' --export-csv '{0}/table.csv' {1} >'{2}' 2>&1", out(), jobs,
                    scratch_ / "said");
    const std::string command = before + explore(outputs) + "; code=$?; wait; exit $code";
    const std::string table = scratch_ / "expected.csv";
    const Ran ran = run_monet(
        {"explore", space_, "--strategy", "random", "--budget", "12", "--export-csv", table});
    ASSERT_EQ(ran.code, 0) << ran.err;
    for (int kill = 0; kill < kKills; ++kill) {
      run_killed(command, random_.unit() * longest_);
      expect_whole_files();
    }
    int status = std::system(command.c_str());
    while (WEXITSTATUS(status) == 5) // a rank of the run before has not seen yet that it is alone
      status = std::system(command.c_str());
    EXPECT_EQ(WEXITSTATUS(status), 0) << read_file(scratch_ / "said");
    EXPECT_EQ(read_file(out() + "/table.csv"), read_file(table));
    expect_whole_files();
  }

  Scratch scratch_;
  RandomStream random_{11};
  std::string space_;
  double longest_ = 2; ///< seconds
  int files_ = 0;
};

// The first signal, though nobody reads; after 20 seconds more `timeout` would kill (137).
TEST_F(Kills, OneSignalEndsTheWaitForAReader) {
  ASSERT_EQ(::mkfifo((out() + "/pipe").c_str(), 0600), 0);
  for (const auto& [signal, code] : {std::pair("INT", 130), {"TERM", 143}}) {
    const int status = std::system(
        fmt::format("timeout --preserve-status -k 20 -s {} 1 '{}' graph '{}' --batch 2 --json "
                    "'{}/pipe' >/dev/null 2>&1",
                    signal, MONET_BINARY, repository("data/workload/lstm.onnx"), out())
            .c_str());
    EXPECT_EQ(WEXITSTATUS(status), code) << signal;
  }
}

TEST_F(Kills, RunLeavesWholeFiles) {
  // Soon done, so that some moments are of its writing.
  expect_whole_results({"run", repository("examples/study/batch.yaml"), "-o", out()}, 0.18);
}

TEST_F(Kills, OptimiseLeavesWholeFiles) {
  expect_whole_results(
      {"optimise", "joint", "--hardware", repository("data/hardware/edge_tpu.yaml"), "--workload",
       small_network("gated_mlp"), "--training", repository("data/training/adam.yaml"),
       "--evaluations", "3", "--levels", "1", "--report", out() + "/report", "--plan-out",
       out() + "/plan", "--json", out() + "/found.json"},
      longest_);
}

TEST_F(Kills, ThreadsGoOnToTheSameTable) {
  expect_the_same_table("", "--jobs 2");
}

TEST_F(Kills, ProcessesGoOnToTheSameTable) {
  const std::string other =
      explore(fmt::format("--jobs 1 --export-csv '{}/other.csv' >/dev/null 2>&1", out()));
  expect_the_same_table(other + " & ", "--jobs 1");
}

TEST_F(Kills, RanksGoOnToTheSameTable) {
  if (!has_component("mpi"))
    GTEST_SKIP();
  expect_the_same_table("mpirun --allow-run-as-root --oversubscribe -n 3 ", "--jobs 1");
}

} // namespace
} // namespace monet::test
