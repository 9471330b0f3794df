// The loop around a strategy: the same table for any threads and processes, and after any kill.
#include "explore/toys.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/files.hpp"
#include "monet/base/stop.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <mutex>
#include <thread>

namespace monet::test {
namespace {

StoreOptions resume() {
  StoreOptions options;
  options.resume = true;
  return options;
}

ExplorationResult explore_toy(const Space& space, DesignStore& store, DesignEvaluator& evaluator,
                              int jobs = 1, const SearchControl& control = {}) {
  ToyStrategy strategy(space.size(), 37);
  const auto runner = thread_runner(evaluator, jobs);
  return explore(space, strategy, store, *runner, control);
}

TEST(Explore, IsTheSameForAnyNumberOfThreads) {
  const Space space = toy_space({10, 10});
  for (const int jobs : {1, 2, 5}) {
    std::atomic<int> calls{0};
    ToyEvaluator evaluator([&](DesignId id) {
      ++calls;
      std::this_thread::sleep_for(std::chrono::microseconds(id % 7 * 50));
    });
    const auto store = memory_store();
    const ExplorationResult result = explore_toy(space, *store, evaluator, jobs);
    EXPECT_EQ(result.results, toy_results(100));
    EXPECT_EQ(rows_of(*store), toy_results(100));
    EXPECT_EQ(calls, 100);
    EXPECT_EQ(result.evaluated_now, 100U);
    EXPECT_FALSE(result.interrupted);
    const ExplorationResult again = explore_toy(space, *store, evaluator, jobs);
    EXPECT_EQ(again.results, result.results);
    EXPECT_EQ(again.evaluated_now, 0U);
    EXPECT_EQ(calls, 100);
  }
}

TEST(Explore, ThrowsWhatTheFirstDesignThrewAndKeepsTheRest) {
  const Space space = toy_space({1000});
  for (const int jobs : {1, 3}) {
    ToyEvaluator evaluator([](DesignId id) {
      // The strategy's first batch is 36 down to 0.
      if (id == 30 || id == 31 || id == 29)
        throw InputError({fmt::format("core_{}.yaml", id)}, "is bad");
    });
    const auto store = memory_store();
    try {
      explore_toy(space, *store, evaluator, jobs);
      FAIL();
    } catch (const InputError& error) {
      EXPECT_STREQ(error.what(), "core_31.yaml: is bad");
    }
    const std::vector<DesignResult> rows = rows_of(*store);
    ASSERT_GE(rows.size(), 5U);
    EXPECT_EQ(rows.back().id, 36U);
  }
}

TEST(Explore, TakesNoResultWithoutFiguresOrReason) {
  class Careless final : public DesignEvaluator {
  public:
    DesignResult evaluate(DesignId id) override {
      DesignResult result = toy_result(id);
      result.area_mm2 = std::numeric_limits<double>::quiet_NaN();
      return result;
    }
    DesignBound bound(DesignId) override { return {}; }
  } evaluator;
  const auto store = memory_store();
  EXPECT_THROW(explore_toy(toy_space({10}), *store, evaluator), InternalError);
  EXPECT_EQ(store->size(), 0U);
}

TEST(Explore, StopsWithWhatIsUnderWayAndGoesOnLater) {
  const Folder folder;
  const Space space = toy_space({100});
  std::atomic<bool> stop{false};
  std::atomic<int> calls{0};
  ToyEvaluator evaluator([&](DesignId) {
    if (++calls == 50)
      stop = true;
  });
  SearchControl control;
  control.stop = &stop;
  {
    const auto store = open_store(folder / "s.db", space, {});
    const ExplorationResult result = explore_toy(space, *store, evaluator, 2, control);
    EXPECT_TRUE(result.interrupted);
    EXPECT_EQ(result.results.size(), static_cast<std::size_t>(calls));
    EXPECT_EQ(rows_of(*store), result.results);
    EXPECT_LT(calls, 100);
  }
  stop = false;
  const int before = calls;
  const auto store = open_store(folder / "s.db", space, resume());
  std::vector<SearchProgress> told;
  control.progress = [&](const SearchProgress& state) { told.push_back(state); };
  const ExplorationResult result = explore_toy(space, *store, evaluator, 2, control);
  EXPECT_EQ(result.results, toy_results(100));
  EXPECT_EQ(static_cast<int>(result.evaluated_now), 100 - before);
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.back().done, 100);
  EXPECT_EQ(told.back().total, 100);
}

TEST(Explore, GivesUpDesignsThatTakeLong) {
  const Space space = toy_space({100});
  std::atomic<bool> stop{false};
  ToyEvaluator evaluator([&](DesignId id) {
    if (id % 37 != 20) // the first batch is 36 down to 0
      return;
    stop = true;
    for (;;) // whoever asks, ends it
      check_stop();
  });
  SearchControl control;
  control.stop = &stop;
  for (const int jobs : {1, 3}) {
    stop = false;
    const auto store = memory_store();
    const ExplorationResult result = explore_toy(space, *store, evaluator, jobs, control);
    EXPECT_TRUE(result.interrupted);
    EXPECT_GE(result.results.size(), 16U);
    EXPECT_EQ(rows_of(*store), result.results);
    for (const DesignResult& row : result.results)
      EXPECT_NE(row.id, 20U);
  }
}

/// Processes that share a store and a log of what they evaluated.
class Processes : public ::testing::Test {
protected:
  /// With `held_after`, all its threads stop after so many designs, and it holds what it claimed
  /// until it is killed.
  pid_t begin(int microseconds, int held_after = -1) {
    const pid_t child = ::fork();
    if (child != 0)
      return child;
    int code = 1;
    try {
      const int log = ::open((folder_ / "log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666);
      std::atomic<int> begun{0};
      ToyEvaluator evaluator([&](DesignId id) {
        if (const int before = begun++; held_after >= 0 && before >= held_after) {
          if (before == held_after)
            write_file_atomically(folder_ / "held", "");
          ::pause();
        }
        std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
        const std::string line = fmt::format("{}\n", id);
        if (::write(log, line.data(), line.size()) < 0)
          ::_exit(2);
      });
      const auto store = open_store(folder_ / "s.db", space_, resume());
      write_file_atomically(folder_ / fmt::format("open{}", ::getpid()), "");
      const ExplorationResult result = explore_toy(space_, *store, evaluator, 2);
      if (!HasFailure() && result.results == toy_results(space_.size()))
        code = 0;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "child: %s\n", error.what());
    }
    ::_exit(code);
  }
  /// Waits until it is so; false where the child ends before that.
  template <class Condition>
  static bool wait_until(pid_t child, Condition&& condition) {
    while (!condition()) {
      siginfo_t ended{};
      const int failed =
          ::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOHANG | WNOWAIT);
      if (failed != 0 || ended.si_pid == child)
        return condition();
      std::this_thread::yield();
    }
    return true;
  }
  bool exists(const std::string& name) const { return std::filesystem::exists(folder_ / name); }
  static int end(pid_t child) {
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  std::vector<DesignId> logged() const {
    if (!std::filesystem::exists(folder_ / "log"))
      return {};
    std::vector<DesignId> ids;
    DesignId id = 0;
    for (const char c : read_file(folder_ / "log")) {
      if (c == '\n')
        ids.push_back(std::exchange(id, 0));
      else
        id = id * 10 + static_cast<DesignId>(c - '0');
    }
    return ids;
  }
  std::vector<DesignResult> stored() const {
    return rows_of(*open_store(folder_ / "s.db", space_, resume()));
  }

  Folder folder_;
  Space space_ = toy_space({300});
};

TEST_F(Processes, ShareAStoreAndEvaluateNothingTwice) {
  const std::array children{begin(300), begin(700), begin(100)};
  for (const pid_t child : children)
    EXPECT_EQ(end(child), 0);
  std::vector<DesignId> ids = logged();
  EXPECT_EQ(ids.size(), 300U);
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(std::unique(ids.begin(), ids.end()), ids.end());
  EXPECT_EQ(stored(), toy_results(300));
}

TEST_F(Processes, TakeOverWhatAKilledOneHeld) {
  const pid_t first = begin(100, 20);
  EXPECT_TRUE(wait_until(first, [&] { return exists("held"); })); // else the second may do all
  const pid_t second = begin(100);
  EXPECT_TRUE(wait_until(second, [&] { return exists(fmt::format("open{}", second)); }));
  ::kill(first, SIGKILL);
  EXPECT_EQ(end(first), 128 + SIGKILL);
  EXPECT_EQ(end(second), 0);
  EXPECT_EQ(stored(), toy_results(300));
}

TEST_F(Processes, LoseNothingStoredAtAnyKill) {
  RandomStream random(11);
  std::vector<DesignResult> before;
  int killed = 0;
  int rounds = 0;
  // A machine that is busy elsewhere may get further in each round.
  for (; rounds < 20 && before.size() + 20 < space_.size(); ++rounds) {
    const std::size_t evaluated = logged().size();
    const pid_t child = begin(500);
    const std::size_t enough = evaluated + random.below(12);
    wait_until(child, [&] { return logged().size() >= enough; });
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(2000)));
    ::kill(child, SIGKILL);
    killed += end(child) == 128 + SIGKILL ? 1 : 0;
    const std::vector<DesignId> ids = logged();
    for (const DesignResult& row : before)
      EXPECT_EQ(std::count(ids.begin() + static_cast<std::ptrdiff_t>(evaluated), ids.end(), row.id),
                0);
    std::vector<DesignResult> after = stored();
    EXPECT_TRUE(std::includes(after.begin(), after.end(), before.begin(), before.end(),
                              [](const auto& a, const auto& b) { return a.id < b.id; }));
    before = std::move(after);
  }
  EXPECT_GT(2 * killed, rounds);
  EXPECT_GT(before.size(), 0U);
  EXPECT_EQ(end(begin(100)), 0);
  EXPECT_EQ(stored(), toy_results(300));
}

} // namespace
} // namespace monet::test
