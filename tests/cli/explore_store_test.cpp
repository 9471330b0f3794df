// monet explore with a store: the same table after any kill, for any threads and processes; and
// what it says of stores that cannot be used.
#include "base/shared/rng.hpp"
#include "cli/run_monet.hpp"

#include "monet/base/files.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <regex>

namespace monet::test {
namespace {

using Json = nlohmann::json;

class ExploreStore : public ::testing::Test {
protected:
  ExploreStore() { space_ = small_study(scratch_); }

  std::vector<std::string> arguments(const std::vector<std::string>& more) const {
    std::vector<std::string> all{"explore", space_,     "--strategy",
                                 "random",  "--budget", fmt::format("{}", budget_)};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  Ran explore(const std::vector<std::string>& more) const { return run_monet(arguments(more)); }

  /// Behind something else than a shell's plain call; its exit code, what it says on stderr in
  /// `err`.
  int behind(const std::string& prefix, const std::vector<std::string>& more) {
    std::string command = prefix + " '" + MONET_BINARY + "'";
    for (const std::string& argument : arguments(more))
      command += " '" + argument + "'";
    const int status =
        std::system((command + " >/dev/null 2>'" + (scratch_ / "err") + "'").c_str());
    err_ = read_file(scratch_ / "err");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  /// Of a run without a store.
  const std::string& table() {
    if (table_.empty()) {
      const Ran ran = explore({"--jobs", "2", "--export-csv", scratch_ / "table.csv"});
      EXPECT_EQ(ran.code, 0) << ran.err;
      table_ = read_file(scratch_ / "table.csv");
      EXPECT_EQ(std::count(table_.begin(), table_.end(), '\n'), budget_ + 1);
    }
    return table_;
  }

  /// Designs evaluated now and those that were stored, as the tool says.
  static std::pair<int, int> counts(const std::string& err) {
    std::smatch match;
    if (!std::regex_search(err, match, std::regex("(\\d+) designs evaluated now, (\\d+) from")))
      return {-1, -1};
    return {std::stoi(match[1]), std::stoi(match[2])};
  }

  /// CPU time of all that was run and has ended.
  static double children_seconds() {
    rusage used{};
    ::getrusage(RUSAGE_CHILDREN, &used);
    return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e-6 * static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
  }

  Scratch scratch_;
  int budget_ = 40;
  std::string space_, table_, err_;
};

TEST_F(ExploreStore, KilledAtAnyMomentAndResumedGivesTheSameTable) {
  budget_ = 60;
  RandomStream random(4);
  const std::string store = scratch_ / "s.db";
  const double others = children_seconds();
  table();
  const double longest = (children_seconds() - others) / 5; // so that some designs are stored first
  int killed = 0;
  for (int kill = 0; kill < 20; ++kill) {
    const Ran ran = run_signalled(arguments({"--store", store, "--resume", "--jobs", "1"}), SIGKILL,
                                  longest * random.unit());
    EXPECT_TRUE(ran.code == 0 || ran.code == 137) << ran.err;
    killed += ran.code == 137 ? 1 : 0;
  }
  EXPECT_GT(killed, 5);
  const std::string csv = scratch_ / "resumed.csv";
  const Ran ran = explore({"--store", store, "--resume", "--export-csv", csv});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto [now, before] = counts(ran.err);
  EXPECT_EQ(now + before, budget_) << ran.err;
  EXPECT_GT(before, 0);
  EXPECT_EQ(read_file(csv), table());
  const Ran again = explore({"--store", store, "--resume", "--export-csv", csv});
  EXPECT_EQ(counts(again.err), std::pair(0, budget_));
  EXPECT_EQ(read_file(csv), table());
}

TEST_F(ExploreStore, IsTheSameForThreadsProcessesAndJobs) {
  std::vector<Json> results;
  const auto compare = [&](const std::string& name) {
    EXPECT_EQ(read_file(scratch_ / (name + ".csv")), table()) << name;
    results.push_back(parse_file(scratch_ / (name + ".json")));
    results.back().erase("seconds");
    EXPECT_EQ(results.back(), results.front()) << name;
  };
  const auto outputs = [&](const std::string& name) {
    return std::vector<std::string>{"--export-csv", scratch_ / (name + ".csv"), "--json",
                                    scratch_ / (name + ".json"), "--store"};
  };
  std::vector<std::string> options = outputs("one");
  options.insert(options.end(), {scratch_ / "one.db", "--jobs", "1"});
  EXPECT_EQ(explore(options).code, 0);
  compare("one");
  // Two processes at once.
  std::string command;
  for (const char* name : {"left", "right"}) {
    command += std::string("'") + MONET_BINARY + "'";
    options = outputs(name);
    options.insert(options.end(), {scratch_ / "shared.db", "--resume", "--jobs", "1"});
    for (const std::string& argument : arguments(options))
      command += " '" + argument + "'";
    command += " >/dev/null 2>'" + (scratch_ / name) + "' & ";
  }
  EXPECT_EQ(std::system((command + " wait").c_str()), 0);
  compare("left");
  compare("right");
  const auto [left, stored_left] = counts(read_file(scratch_ / "left"));
  const auto [right, stored_right] = counts(read_file(scratch_ / "right"));
  EXPECT_EQ(left + right, budget_);
  if (!has_component("mpi"))
    return;
  options = outputs("mpi");
  options.push_back(scratch_ / "mpi.db");
  EXPECT_EQ(behind("mpirun --allow-run-as-root --oversubscribe -n 3", options), 0) << err_;
  EXPECT_NE(err_.find("3 processes, "), std::string::npos) << err_;
  compare("mpi");
}

TEST_F(ExploreStore, AFullDiskIsSaidAndLosesNothing) {
  const std::string store = scratch_ / "s.db";
  // In blocks of 512 or 1024 bytes, as the shell has it; the tables alone are 50 kB.
  EXPECT_EQ(behind("trap '' XFSZ; ulimit -f 160; exec ", {"--store", store, "--jobs", "1"}), 5);
  EXPECT_NE(err_.find("error: " + store + ": cannot be "), std::string::npos) << err_;
  EXPECT_NE(err_.find("what was stored before is safe"), std::string::npos) << err_;
  const std::string csv = scratch_ / "resumed.csv";
  const Ran ran = explore({"--store", store, "--resume", "--export-csv", csv});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(read_file(csv), table());
}

TEST_F(ExploreStore, CtrlCEndsItWithTheDesignsSoFar) {
  const std::string store = scratch_ / "s.db";
  const std::vector<std::string> command =
      arguments({"--store", store, "--jobs", "1", "--json", "-"});
  const Ran ran = run_interrupted_at_work(command, 0.4, [&] { std::filesystem::remove(store); });
  if (ran.code != 0) { // it was faster
    EXPECT_EQ(ran.code, 130) << ran.err;
    EXPECT_NE(ran.err.find("--resume continues"), std::string::npos) << ran.err;
    EXPECT_TRUE(Json::parse(ran.out).at("interrupted"));
  }
  const std::string csv = scratch_ / "resumed.csv";
  const Ran rest = explore({"--store", store, "--resume", "--export-csv", csv});
  EXPECT_EQ(rest.code, 0) << rest.err;
  EXPECT_EQ(counts(rest.err).second, std::max(0, counts(ran.err).first));
  EXPECT_EQ(read_file(csv), table());
}

TEST_F(ExploreStore, WhatCannotBeUsedIsSaid) {
  const std::string store = scratch_ / "s.db";
  const auto refused = [&](const std::vector<std::string>& more, int code, const char* said) {
    const Ran ran = explore(more);
    EXPECT_EQ(ran.code, code) << ran.err;
    EXPECT_NE(ran.err.find(said), std::string::npos) << ran.err;
    EXPECT_EQ(ran.out, "");
  };
  budget_ = 2;
  EXPECT_EQ(explore({"--store", store}).code, 0);
  const std::string good = read_file(store);
  refused({"--store", store}, 3, "already holds 2 designs of this space: use --resume");
  refused({"--resume"}, 2, "--resume requires --store");
  refused({"--store", scratch_ / "no/s.db"}, 5, "cannot be created: No such file or directory");
  refused({"--store", scratch_.path()}, 5, "is a folder");
  refused({"--store", space_}, 3, "is not a store of designs");
  write_file_atomically(store, good.substr(0, good.size() / 2));
  refused({"--store", store, "--resume"}, 3, "is damaged");
  write_file_atomically(store, good);
  scratch_.file("space.yaml", read_file(space_) + "\n# changed\n");
  refused({"--store", store, "--resume"}, 3, "holds designs of the space 'edge of the study'");
  EXPECT_EQ(read_file(store), good);
  const Ran no_budget = run_monet({"explore", space_, "--strategy", "lhs"});
  EXPECT_EQ(no_budget.code, 2);
  EXPECT_NE(no_budget.err.find("--strategy lhs requires --budget"), std::string::npos);
}

} // namespace
} // namespace monet::test
