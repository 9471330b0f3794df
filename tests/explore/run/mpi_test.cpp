// The processes of an MPI job. The test starts itself under mpirun: what the job's processes do is
// chosen by the environment.
#include "explore/run/mpi_messages.hpp"
#include "explore/strategy/design_fronts.hpp"
#include "explore/toys.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/files.hpp"
#include "monet/explore/mpi_runner.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <thread>

namespace monet::test {
namespace {

TEST(MpiMessages, ComeOutAsTheyWentIn) {
  WorkMessage work{12, {1, 99, ~0ULL}, nullptr};
  EXPECT_EQ(unpack<WorkMessage>(pack(work)).ids, work.ids);
  EXPECT_EQ(unpack<WorkMessage>(pack(work)).position, 12U);
  EXPECT_EQ(unpack<WorkMessage>(pack(work)).fronts, nullptr);
  auto sent = std::make_shared<KnownFronts>();
  sent->fronts = {{{1, {Objective::energy, Objective::area}}, {}}, {{0, {Objective::latency}}, {}}};
  for (const Objectives& point : {Objectives{1, 5}, Objectives{0.1, 7}})
    sent->fronts[0].points.add(point);
  work.fronts = sent;
  const SharedFronts got = unpack<WorkMessage>(pack(work)).fronts;
  ASSERT_EQ(got->fronts.size(), 2U);
  for (std::size_t f = 0; f < 2; ++f) {
    EXPECT_EQ(got->fronts[f].request, sent->fronts[f].request);
    EXPECT_EQ(got->fronts[f].points.all(), sent->fronts[f].points.all());
  }
  ResultsMessage results;
  results.results = toy_results(50);
  results.results.front().metrics = {{"error", 0.1}, {"gradients_flushed", 0.2}};
  results.trainings = {{"a", 1, 0.5, 0.25}, {"b", ~0ULL, 0, 1}};
  results.received = 77;
  results.idle = true;
  results.evaluation_seconds = 0.25;
  results.failure = RemoteFailure{3, pack_error(std::make_exception_ptr(InfeasibleError("no")))};
  const std::string bytes = pack(results);
  const auto back = unpack<ResultsMessage>(bytes);
  EXPECT_EQ(back.results, results.results);
  EXPECT_EQ(back.trainings, results.trainings);
  work.trainings = results.trainings;
  EXPECT_EQ(unpack<WorkMessage>(pack(work)).trainings, work.trainings);
  EXPECT_EQ(back.received, 77U);
  EXPECT_TRUE(back.idle);
  EXPECT_EQ(back.failure->position, 3U);
  EXPECT_EQ(back.failure->error, results.failure->error);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_THROW(unpack<ResultsMessage>(bytes.substr(0, size)), InternalError);
}

TEST(MpiMessages, CarryErrorsOfEveryFamily) {
  const auto thrown_again = [](auto error) {
    throw_error(pack_error(std::make_exception_ptr(error)), 2);
  };
  try {
    thrown_again(InputError({"a.yaml", 3, 4, "core"}, "is bad", "did you mean b?"));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "a.yaml:3:4 [core]: is bad (did you mean b?)");
    EXPECT_EQ(error.problems().at(0).where.line, 3);
  }
  EXPECT_THROW(thrown_again(InfeasibleError("no")), InfeasibleError);
  EXPECT_THROW(thrown_again(InternalError("bug")), InternalError);
  EXPECT_THROW(thrown_again(std::bad_alloc()), std::bad_alloc);
}

constexpr DesignId kDesigns = 400;

Space toy_space_with_a_front() {
  Space space = toy_space({kDesigns});
  space.fronts = {{1, {Objective::latency, Objective::energy}}};
  return space;
}

/// Designs that this process of the job evaluated, in order.
std::vector<std::string> logged_in(const std::filesystem::path& folder, int rank) {
  const std::string path = (folder / fmt::format("log{}", rank)).string();
  if (!std::filesystem::exists(path))
    return {};
  std::vector<std::string> ids;
  const std::string text = read_file(path);
  for (std::size_t at = 0, line = 0; (line = text.find('\n', at)) != std::string::npos;
       at = line + 1)
    ids.push_back(text.substr(at, line - at));
  return ids;
}

/// Trains something for every design, and logs what others trained: "design process".
class TrainingEvaluator final : public DesignEvaluator {
public:
  TrainingEvaluator(std::shared_ptr<DesignEvaluator> designs, int rank, std::string log)
      : designs_(std::move(designs)), rank_(rank), log_(std::move(log)) {}
  DesignResult evaluate(DesignId id) override {
    const DesignResult result = designs_->evaluate(id);
    const std::lock_guard lock(mutex_);
    made_.push_back({fmt::format("{}", id), static_cast<std::uint64_t>(rank_), 0, 0});
    return result;
  }
  DesignBound bound(DesignId id) override { return designs_->bound(id); }
  std::vector<TrainingRecord> new_trainings() override {
    const std::lock_guard lock(mutex_);
    return std::exchange(made_, {});
  }
  void learn(std::span<const TrainingRecord> trainings) override {
    std::ofstream file(log_, std::ios::app);
    for (const TrainingRecord& training : trainings)
      file << training.key << ' ' << training.seed << '\n';
  }

private:
  std::shared_ptr<DesignEvaluator> designs_;
  int rank_;
  std::string log_;
  std::mutex mutex_;
  std::vector<TrainingRecord> made_;
};

constexpr std::size_t kBeforeHeld = 11;

/// What a process of the job does; writes "ok" and the figures, or the error, to the folder's file
/// "said". Each process logs the designs that it evaluates.
int take_part(const std::string& what, const std::filesystem::path& folder) {
  const std::unique_ptr<MpiSession> session = mpi_session();
  const std::string log_name = (folder / fmt::format("log{}", session->rank())).string();
  const int log = ::open(log_name.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666);
  const Space space = toy_space_with_a_front();
  const auto make = [&] {
    if (what == "bad_file" && session->rank() == 1)
      throw InputError({"net.onnx"}, "cannot be opened");
    MpiWorker worker;
    worker.identity = what == "other_space" && session->rank() == 2 ? "b" : "a";
    worker.evaluator = std::make_shared<ToyEvaluator>([&, log](DesignId id) {
      if (what == "held" && session->rank() == 1 && logged_in(folder, 1).size() == kBeforeHeld)
        ::pause(); // until it is killed
      std::this_thread::sleep_for(std::chrono::microseconds(500));
      if (what == "failing" && (id == 100 || id == 101 || id == 99))
        throw InputError({fmt::format("core_{}.yaml", id)}, "is bad");
      const std::string line = fmt::format("{}\n", id);
      if (::write(log, line.data(), line.size()) < 0)
        ::_exit(2);
    });
    if (what == "news")
      worker.evaluator = std::make_shared<TrainingEvaluator>(
          worker.evaluator, session->rank(),
          (folder / fmt::format("log{}", 3 + session->rank())).string());
    return worker;
  };
  if (session->rank() > 0) {
    serve_mpi(*session, 1, make);
    return 0;
  }
  std::string said;
  try {
    StoreOptions options;
    options.resume = true;
    const auto store = open_store((folder / "s.db").string(), space, options);
    const auto runner = mpi_runner(*session, make(), 2);
    std::atomic<bool> stop{false};
    SearchControl control;
    control.stop = &stop;
    control.progress = [&](const SearchProgress& state) {
      stop = what == "stopped" && state.done > 50;
    };
    ToyEvaluator own;
    ToyStrategy all(kDesigns, 111);
    const auto raced = make_strategy(space, own, {"racing", 0, 1, 1});
    Strategy& strategy = what == "race" ? *raced : all;
    const ExplorationResult result = explore(space, strategy, *store, *runner, control);
    const MpiFigures figures = runner->end();
    const bool good = result.interrupted || what == "race"
                          ? rows_of(*store) == result.results
                          : result.results == toy_results(kDesigns);
    said = fmt::format("{} {} {}", good ? "ok" : "wrong", figures.processes,
                       result.interrupted ? "interrupted" : "complete");
  } catch (const std::exception& error) {
    said = error.what();
  }
  write_file_atomically((folder / "said").string(), said);
  return 0;
}

class MpiJob : public ::testing::Test {
protected:
  /// Starts three processes, and returns mpirun's.
  pid_t begin(const std::string& what) {
    const pid_t child = ::fork();
    if (child != 0)
      return child;
    ::setenv("MONET_MPI_TEST", what.c_str(), 1);
    ::setenv("MONET_MPI_FOLDER", folder_.path().c_str(), 1);
    ::setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    ::setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    const int null = ::open("/dev/null", O_WRONLY);
    ::dup2(null, STDERR_FILENO); // mpirun's words on killed processes
    const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
    ::execlp("mpirun", "mpirun", "--oversubscribe", "-n", "3", self.c_str(), nullptr);
    ::_exit(127);
  }
  static int end(pid_t child) {
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  std::string said() const { return read_file(folder_ / "said"); }
  /// Designs evaluated by rank 0, 1, 2, in order.
  std::vector<std::string> logged(int rank) const { return logged_in(folder_.path(), rank); }
  std::vector<DesignResult> stored() const {
    return rows_of(*open_store(folder_ / "s.db", toy_space_with_a_front(), {.read_only = true}));
  }

  Folder folder_;
};

TEST_F(MpiJob, GivesTheTableOfOneProcess) {
  ASSERT_EQ(end(begin("all")), 0);
  EXPECT_EQ(said(), "ok 3 complete");
  EXPECT_EQ(stored(), toy_results(kDesigns));
  std::multiset<std::string> ids;
  for (int rank = 0; rank < 3; ++rank) {
    const std::vector<std::string> own = logged(rank);
    EXPECT_GT(own.size(), 10U) << "of process " << rank;
    ids.insert(own.begin(), own.end());
  }
  EXPECT_EQ(ids.size(), kDesigns);
  EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), kDesigns);
}

TEST_F(MpiJob, RacesOnAllProcesses) {
  ASSERT_EQ(end(begin("race")), 0);
  EXPECT_EQ(said(), "ok 3 complete");
  const Space space = toy_space_with_a_front();
  ToyEvaluator evaluator;
  const auto strategy = make_strategy(space, evaluator, {"racing", 0, 1, 1});
  const auto store = memory_store();
  explore(space, *strategy, *store, *thread_runner(evaluator, 1), {});
  EXPECT_EQ(stored(), rows_of(*store));
  EXPECT_GT(strategy->skipped_by_bound(), 100U);
  std::set<std::string> ids;
  for (int rank = 0; rank < 3; ++rank) {
    const std::vector<std::string> own = logged(rank);
    EXPECT_GT(own.size(), 10U) << "of process " << rank;
    ids.insert(own.begin(), own.end());
  }
  EXPECT_EQ(ids.size(), kDesigns);
}

TEST_F(MpiJob, TellsEveryProcessWhatOthersTrained) {
  ASSERT_EQ(end(begin("news")), 0);
  EXPECT_EQ(said(), "ok 3 complete");
  std::set<std::string> known; // to process 0
  for (int rank = 0; rank < 3; ++rank) {
    std::map<std::string, int> learned; // of each other process
    std::set<std::string> once;
    for (const std::string& line : logged(3 + rank)) {
      EXPECT_TRUE(once.insert(line).second) << line << " came twice to " << rank;
      ++learned[line.substr(line.find(' ') + 1)];
      if (rank == 0)
        known.insert(line.substr(0, line.find(' ')));
    }
    EXPECT_FALSE(learned.contains(std::to_string(rank))) << "its own";
    for (int other = 0; other < 3; ++other)
      EXPECT_TRUE(other == rank || learned[std::to_string(other)] > 10) << rank << " of " << other;
  }
  for (const std::string& id : logged(0))
    known.insert(id);
  EXPECT_EQ(known.size(), kDesigns) << "the first process knows all";
}

TEST_F(MpiJob, ThrowsWhatTheFirstDesignThrew) {
  // The strategy's first batch is 110 down to 0.
  ASSERT_EQ(end(begin("failing")), 0);
  EXPECT_EQ(said(), "core_101.yaml: is bad");
}

TEST_F(MpiJob, SaysWhenAProcessCannotBegin) {
  ASSERT_EQ(end(begin("bad_file")), 0);
  EXPECT_EQ(said(), "net.onnx: cannot be opened");
  ASSERT_EQ(end(begin("other_space")), 0);
  EXPECT_EQ(said(), "process 2: has another space or version of the tool than process 0 (b and a)");
}

TEST_F(MpiJob, StopsWithWhatIsUnderWay) {
  ASSERT_EQ(end(begin("stopped")), 0);
  EXPECT_EQ(said(), "ok 3 interrupted");
  EXPECT_LT(stored().size(), kDesigns);
  ASSERT_EQ(end(begin("all")), 0);
  EXPECT_EQ(said(), "ok 3 complete");
}

/// A process of the job other than mpirun, by its rank; 0 when there is none (yet).
pid_t process_of(const std::filesystem::path& folder, int rank) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    std::error_code error;
    if (name.find_first_not_of("0123456789") != std::string::npos)
      continue;
    std::ifstream file(entry.path() / "environ", std::ios::binary);
    const std::string environment{std::istreambuf_iterator<char>(file), {}};
    const auto has = [&](const std::string& text) {
      return environment.find(text + '\0') != std::string::npos;
    };
    if (has("MONET_MPI_FOLDER=" + folder.string()) &&
        has(fmt::format("OMPI_COMM_WORLD_RANK={}", rank)))
      return static_cast<pid_t>(std::stol(name));
  }
  return 0;
}

TEST_F(MpiJob, LosesNothingStoredWhenAWorkerIsKilled) {
  const pid_t job = begin("held");
  // Process 1 does not go on, and holds up the second batch at the latest.
  while (logged(1).size() < kBeforeHeld || !std::filesystem::exists(folder_ / "s.db") ||
         stored().size() < 50) {
    ASSERT_FALSE(std::filesystem::exists(folder_ / "said")) << said();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  const pid_t worker = process_of(folder_.path(), 1);
  ASSERT_GT(worker, 0);
  ::kill(worker, SIGKILL);
  EXPECT_NE(end(job), 0);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "said"));
  const std::vector<DesignResult> before =
      rows_of(*open_store(folder_ / "s.db", toy_space_with_a_front(), {.resume = true}));
  EXPECT_GE(before.size(), 50U);
  EXPECT_LT(before.size(), kDesigns);
  for (int rank = 0; rank < 3; ++rank)
    write_file_atomically(folder_ / fmt::format("log{}", rank), "");
  ASSERT_EQ(end(begin("all")), 0);
  EXPECT_EQ(said(), "ok 3 complete");
  EXPECT_EQ(stored(), toy_results(kDesigns));
  EXPECT_EQ(logged(0).size() + logged(1).size() + logged(2).size(), kDesigns - before.size());
}

} // namespace
} // namespace monet::test

int main(int argc, char** argv) {
  const char* what = std::getenv("MONET_MPI_TEST");
  if (what != nullptr)
    return monet::test::take_part(what, std::getenv("MONET_MPI_FOLDER"));
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
