// The store: what is put in comes out to the last bit, whatever happens to the process or the disk,
// or an error says why not.
#include "explore/store/sqlite.hpp"
#include "explore/toys.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/files.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <limits>

namespace monet::test {
namespace MONET_TEST_FILE {

namespace fs = std::filesystem;

StoreOptions resume() {
  StoreOptions options;
  options.resume = true;
  options.version = "1.2";
  options.git_hash = "abc";
  return options;
}

StoreOptions read_only() {
  StoreOptions options;
  options.read_only = true;
  return options;
}

/// What the error of opening it says; "" without one.
std::string refusal(const std::string& path, const Space& space,
                    const StoreOptions& options = resume()) {
  try {
    rows_of(*open_store(path, space, options));
    return "";
  } catch (const InputError& error) {
    EXPECT_EQ(std::string(error.what()).rfind(path, 0), 0U) << error.what();
    return error.what();
  } catch (const OutputError& error) {
    EXPECT_FALSE(options.read_only) << error.what();
    EXPECT_EQ(std::string(error.what()).rfind(path, 0), 0U) << error.what();
    return error.what();
  }
}

void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in '" << text << "'";
}

/// Runs in a process of its own; its exit code (gtest's failures are code 1), 128 + signal.
int in_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    int code = 255;
    try {
      code = body();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "child: %s\n", error.what());
    }
    ::_exit(testing::Test::HasFailure() ? 1 : code);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(Store, GivesBackEveryBit) {
  const Folder folder;
  const Space space = toy_space({10, 10});
  std::vector<DesignResult> results = toy_results(90);
  using Limits = std::numeric_limits<double>;
  results.push_back({90,
                     true,
                     "",
                     Limits::denorm_min(),
                     Limits::max(),
                     Limits::infinity(),
                     {{std::numeric_limits<std::int64_t>::max(), -1.0 / 3, -5}, {0, 3, 0}}});
  {
    const auto store = open_store(folder / "s.db", space, {});
    store->put(std::span(results).subspan(40));
    store->put(std::span(results).first(40));
    EXPECT_EQ(rows_of(*store), results);
  }
  const auto store = open_store(folder / "s.db", space, resume());
  EXPECT_EQ(rows_of(*store), results);
  EXPECT_EQ(store->size(), 91U);
  const std::vector<DesignId> ids{90, 99, 3};
  const auto found = store->find(ids);
  EXPECT_EQ(found, (std::vector<std::optional<DesignResult>>{results[90], {}, results[3]}));
}

TEST(Store, RefusesADesignThatComesTwice) {
  const Folder folder;
  for (const bool file : {false, true}) {
    const auto store = file ? open_store(folder / "s.db", toy_space({9}), {}) : memory_store();
    store->put(toy_results(3));
    const std::vector<DesignResult> again{toy_result(5), toy_result(2)};
    EXPECT_THROW(store->put(again), InternalError);
    EXPECT_EQ(store->size(), file ? 3U : 4U);
  }
  DesignResult unlike = toy_result(7);
  unlike.feasible = true;
  unlike.runs.resize(1);
  const auto store = open_store(folder / "s.db", toy_space({9}), resume());
  EXPECT_THROW(store->put({&unlike, 1}), InternalError);
}

TEST(Store, IsOfOneSpaceAndIsNotTakenForAnother) {
  const Folder folder;
  const std::string path = folder / "s.db";
  const Space space = toy_space({9});
  open_store(path, space, {})->put(toy_results(3));
  expect_part(refusal(path, space, {}), "already holds 3 designs of this space: use --resume");
  expect_part(refusal(path, toy_space({9}, "beef")),
              "holds designs of the space 'toy' (hash feed)");
  EXPECT_EQ(refusal(path, space), "");
  {
    const auto at_work = open_store(path, space, resume());
    EXPECT_EQ(refusal(path, space, {}), "");
  }
  expect_part(refusal(path, space, {}), "use --resume");
  for (const auto& [version, said] : {std::pair{99, "newer"}, std::pair{0, "older"}}) {
    sqlite::Database(path, sqlite::Access::read_write)
        .execute(fmt::format("PRAGMA user_version = {}", version));
    const std::string bytes = read_file(path);
    expect_part(refusal(path, space), said);
    EXPECT_EQ(read_file(path), bytes);
  }
  const std::string foreign = folder / "foreign.db";
  sqlite::Database(foreign, sqlite::Access::read_write).execute("CREATE TABLE t(x)");
  const std::string bytes = read_file(foreign);
  expect_part(refusal(foreign, space), "database of another program");
  EXPECT_EQ(read_file(foreign), bytes);
}

TEST(Store, SaysWhatIsWrongWithItsFile) {
  const Folder folder;
  const Space space = toy_space({9});
  expect_part(refusal(folder.path(), space), "is a folder");
  expect_part(refusal("/dev/null", space), "not a regular file");
  expect_part(refusal(folder / "no/s.db", space), "its folder does not exist");
  expect_part(refusal(folder / "s.db", space, read_only()), "does not exist");
  write_file_atomically(folder / "text.db", std::string(5000, 'x'));
  expect_part(refusal(folder / "text.db", space), "is not a store of designs");
  write_file_atomically(folder / "empty.db", "");
  expect_part(refusal(folder / "empty.db", space, read_only()), "is empty");
  EXPECT_EQ(refusal(folder / "empty.db", space, {}), "");
  // Names that SQLite would take for something else.
  for (const char* name : {"a?mode=memory.db", "b%20#.db", ":memory:"}) {
    open_store(folder / name, space, {});
    EXPECT_TRUE(fs::exists(folder / name)) << name;
  }
}

TEST(Store, NoticesDamage) {
  const Folder folder;
  const std::string path = folder / "s.db";
  const Space space = toy_space({600});
  const std::vector<DesignResult> results = toy_results(600);
  open_store(path, space, {})->put(results);
  const std::string good = read_file(path);
  RandomStream random(3);
  int noticed = 0;
  const auto check = [&](const std::string& bytes, const std::string& what) {
    write_file_atomically(path, bytes);
    try {
      const std::vector<DesignResult> rows = rows_of(*open_store(path, space, resume()));
      // Where it was of no matter to the rows.
      EXPECT_EQ(rows, results) << what;
    } catch (const InputError& error) {
      ++noticed;
    } catch (const OutputError& error) { // the header has a byte that says who may write
      ++noticed;
    }
    for (const char* more : {"-wal", "-shm", "-owners"})
      fs::remove(path + more);
  };
  for (int trial = 0; trial < 100; ++trial) {
    std::string bytes = good;
    const std::size_t at = random.below(bytes.size());
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.below(8)));
    check(bytes, fmt::format("bit flipped in byte {}", at));
  }
  EXPECT_GT(noticed, 40);
  noticed = 0;
  constexpr std::size_t kPage = 4096;
  for (std::size_t page = 0; page * kPage < good.size(); ++page) {
    std::string bytes = good;
    bytes.replace(page * kPage, kPage, kPage, '\0');
    check(bytes, fmt::format("page {} zeroed", page));
    check(good.substr(0, page * kPage + 100), fmt::format("cut in page {}", page));
  }
  EXPECT_GT(static_cast<std::size_t>(noticed), good.size() / kPage);
}

TEST(Store, ClaimsEndWithTheirProcess) {
  const Folder folder;
  const std::string path = folder / "s.db";
  const Space space = toy_space({9});
  const std::vector<DesignId> ids{4, 2, 6, 8};
  std::array<int, 2> said{};
  ASSERT_EQ(::pipe(said.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto store = open_store(path, space, resume());
    const auto mine = store->claim(ids, 2);
    const char done = mine == std::vector<DesignId>{4, 2} ? 'y' : 'n';
    if (::write(said[1], &done, 1) == 1)
      ::pause();
    ::_exit(0);
  }
  char done = 0;
  ASSERT_EQ(::read(said[0], &done, 1), 1);
  EXPECT_EQ(done, 'y');
  ::close(said[0]);
  ::close(said[1]);
  const auto store = open_store(path, space, resume());
  EXPECT_EQ(store->claim(ids, 1), std::vector<DesignId>{6});
  EXPECT_EQ(store->claim(ids, 9), std::vector<DesignId>{8});
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(store->claim(ids, 9), (std::vector<DesignId>{4, 2}));
  {
    const auto third = open_store(path, space, resume());
    EXPECT_TRUE(third->claim(ids, 9).empty());
    EXPECT_EQ(third->claim(std::vector<DesignId>{1}, 9).size(), 1U);
  }
  EXPECT_EQ(store->claim(std::vector<DesignId>{1}, 9).size(), 1U);
  EXPECT_TRUE(fs::exists(path + "-owners"));
}

TEST(Store, LeavesOneFileBehind) {
  const Folder folder;
  {
    const auto one = open_store(folder / "s.db", toy_space({9}), {});
    const auto two = open_store(folder / "s.db", toy_space({9}), {});
    one->put(toy_results(1));
  }
  const auto files = fs::directory_iterator(folder.path());
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

TEST(Store, SurvivesAFullDisk) {
  const Folder folder;
  const std::string path = folder / "s.db";
  const Space space = toy_space({100, 1000});
  const int stored = in_child([&] {
    constexpr rlim_t kBytes = 200000;
    const struct rlimit limit { kBytes, kBytes };
    std::signal(SIGXFSZ, SIG_IGN);
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const auto store = open_store(path, space, {});
    int puts = 0;
    try {
      for (; puts < 250; ++puts) {
        std::vector<DesignResult> batch;
        for (int i = 0; i < 20; ++i)
          batch.push_back(toy_result(static_cast<DesignId>(puts * 20 + i)));
        store->put(batch);
      }
    } catch (const OutputError& error) {
      expect_part(error.what(), path + ": cannot be ");
      expect_part(error.what(), "what was stored before is safe");
    }
    return puts;
  });
  ASSERT_GT(stored, 2);
  ASSERT_LT(stored, 250);
  const auto store = open_store(path, space, resume());
  EXPECT_EQ(rows_of(*store), toy_results(static_cast<DesignId>(stored) * 20));
  store->put(std::vector<DesignResult>{toy_result(99999)});
}

TEST(Store, ThatMayNotBeWrittenCanBeRead) {
  const Folder folder;
  const std::string path = folder / "s.db";
  const Space space = toy_space({9});
  open_store(path, space, {})->put(toy_results(3));
  const std::string bytes = read_file(path);
  const auto as_nobody = [&] {
    constexpr uid_t kNobody = 65534;
    if (::geteuid() == 0 && ::setuid(kNobody) != 0)
      return 2;
    expect_part(refusal(path, space), "read-only");
    const auto store = open_store(path, space, read_only());
    EXPECT_EQ(rows_of(*store), toy_results(3));
    EXPECT_THROW(store->put(toy_results(1)), InternalError);
    return 0;
  };
  fs::permissions(path, fs::perms(0444));
  fs::permissions(folder.path(), fs::perms(0777));
  EXPECT_EQ(in_child(as_nobody), 0);
  // A file that may be written in a folder that may not.
  fs::permissions(path, fs::perms(0666));
  fs::permissions(folder.path(), fs::perms(0555));
  EXPECT_EQ(in_child([&] {
              if (::geteuid() == 0 && ::setuid(65534) != 0)
                return 2;
              EXPECT_NE(refusal(path, space), "");
              EXPECT_EQ(rows_of(*open_store(path, space, read_only())), toy_results(3));
              return 0;
            }),
            0);
  fs::permissions(folder.path(), fs::perms(0755));
  EXPECT_EQ(read_file(path), bytes);
}

TEST(Store, ShowsParametersByTheirNames) {
  const Folder folder;
  Space space = toy_space({2, 3, 4});
  space.parameters[0].name = "pe \"array\"";
  space.parameters[1].name = "Reason";
  space.parameters[2].values[1] = {false, 0, "it's"};
  space.parameters[2].values[3] = {true, 0.5, "0.5"};
  open_store(folder / "s.db", space, resume())->put(toy_results(24));
  sqlite::Database database(folder / "s.db", sqlite::Access::read_only);
  EXPECT_EQ(database.integer("SELECT count(*) FROM exploration WHERE \"pe \"\"array\"\"\" = 1"),
            12);
  EXPECT_EQ(database.text("SELECT group_concat(id) FROM exploration WHERE parameter_Reason = 2 AND "
                          "p2 = 'it''s'"),
            "9,21");
  EXPECT_EQ(database.integer("SELECT count(*) FROM exploration WHERE p2 = 0.5"), 6);
  EXPECT_EQ(database.text("SELECT tool_version || git_hash FROM exploration LIMIT 1"), "1.2abc");
  EXPECT_EQ(database.integer("SELECT training_latency_cycles FROM exploration WHERE id = 23"),
            toy_result(23).runs.at(1).latency_cycles);
  EXPECT_EQ(database.text("SELECT value FROM about WHERE name = 'space_hash'"), "feed");
}

TEST(Store, KnowsItsSpaceWithoutTheSpacesFiles) {
  const Folder folder;
  Space space = toy_space({2, 3});
  space.parameters[1].values[1] = {false, 0, "hbm2e"};
  space.parameters[1].values[2] = {true, 0.125, "0.125"};
  space.fronts = {{1, {Objective::power, Objective::latency}}, {0, {Objective::area}}};
  open_store(folder / "s.db", space, {})->put(toy_results(3));
  const Space stored = stored_space(folder / "s.db");
  EXPECT_EQ(stored.name, "toy");
  EXPECT_EQ(stored.content_hash, "feed");
  EXPECT_EQ(stored.files, space.files);
  EXPECT_EQ(stored.workload.runs, space.workload.runs);
  EXPECT_EQ(stored.fronts, space.fronts);
  ASSERT_EQ(stored.parameters.size(), 2U);
  EXPECT_EQ(stored.parameters[1].name, "p1");
  EXPECT_EQ(stored.parameters[1].values, space.parameters[1].values);
  EXPECT_EQ(rows_of(*open_store(folder / "s.db", stored, read_only())), toy_results(3));
  write_file_atomically(folder / "text.db", "text");
  EXPECT_THROW(stored_space(folder / "text.db"), InputError);
}

Space toy_space_of_metrics() {
  Space space = toy_space({9});
  space.workload.runs = {"training"};
  space.workload.metrics = {"error", "gradients_flushed"};
  space.fronts = {{0, {Objective::error, Objective::energy}}};
  return space;
}

std::vector<DesignResult> results_of_metrics() {
  return {{1, true, "", 1, 0, 0, {{7, 0.1, 9}}, {{"error", 0.1 + 0.2}, {"gradients_flushed", 0}}},
          {2, false, "cannot run", 1, 0, 0, {}, {}}};
}

TEST(Store, KeepsMetricsBesideTheRuns) {
  const Folder folder;
  const Space space = toy_space_of_metrics();
  open_store(folder / "s.db", space, {})->put(results_of_metrics());
  EXPECT_EQ(rows_of(*open_store(folder / "s.db", space, read_only())), results_of_metrics());
  const Space stored = stored_space(folder / "s.db");
  EXPECT_EQ(stored.workload.metrics, space.workload.metrics);
  EXPECT_EQ(stored.workload.runs, space.workload.runs);
  EXPECT_EQ(stored.fronts, space.fronts);
  EXPECT_EQ(rows_of(*open_store(folder / "s.db", stored, read_only())), results_of_metrics());
  {
    sqlite::Database database(folder / "s.db", sqlite::Access::read_write);
    EXPECT_EQ(database.text("SELECT error FROM exploration WHERE id = 1"), "0.3");
    EXPECT_EQ(database.integer("SELECT error IS NULL FROM exploration WHERE id = 2"), 1);
    database.execute("UPDATE designs SET error = 0.25 WHERE id = 1");
  }
  expect_part(refusal(folder / "s.db", space, read_only()), "is damaged: the row of design 1");
  DesignResult other = results_of_metrics().front();
  other.id = 3;
  other.metrics.pop_back();
  EXPECT_THROW(open_store(folder / "s.db", space, resume())->put({&other, 1}), InternalError);
  EXPECT_EQ(designs_csv(results_of_metrics(), space),
            "id,p0,feasible,reason,area_mm2,peak_power_w,frequency_hz,training_latency_cycles,"
            "training_energy_pj,training_peak_memory_bytes,error,gradients_flushed\n"
            "1,1,1,,1,0,0,7,0.1,9,0.30000000000000004,0\n"
            "2,2,0,cannot run,1,0,0,,,,,\n");
}

TEST(Store, KeepsTrainings) {
  const Folder folder;
  const Space space = toy_space_of_metrics();
  const TrainingRecord first{"abc", 1, 0.1, 0}, second{"abc", 2, 0.3, 1e-300};
  {
    const auto store = open_store(folder / "s.db", space, {});
    EXPECT_EQ(store->find_training("abc", 1), std::nullopt);
    store->put_training(second);
    store->put_training(first);
    store->put_training({"abc", 1, 0.9, 0.9}); // what is there stays
  }
  const auto store = open_store(folder / "s.db", space, read_only());
  EXPECT_EQ(store->trainings(), (std::vector<TrainingRecord>{first, second}));
  EXPECT_EQ(store->find_training("abc", 2), second);
  EXPECT_EQ(store->find_training("ab", 2), std::nullopt);
  EXPECT_THROW(store->put_training(first), InternalError);
}

/// A store of toy_space({2}) as the first version of the tables wrote it.
const char* const kFirstVersion = R"(
CREATE TABLE about(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE tools(number INTEGER PRIMARY KEY, version TEXT NOT NULL, git_hash TEXT NOT NULL, UNIQUE(version, git_hash));
CREATE TABLE parameters(position INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE parameter_values(position INTEGER, choice INTEGER, value, PRIMARY KEY(position, choice)) WITHOUT ROWID;
CREATE TABLE owners(number INTEGER PRIMARY KEY AUTOINCREMENT);
CREATE TABLE claims(id INTEGER PRIMARY KEY, owner INTEGER NOT NULL);
CREATE TABLE designs(id INTEGER PRIMARY KEY, feasible INTEGER NOT NULL, reason TEXT NOT NULL, area_mm2 REAL NOT NULL, peak_power_w REAL NOT NULL, frequency_hz REAL NOT NULL, "inference_latency_cycles" INTEGER, "inference_energy_pj" REAL, "inference_peak_memory_bytes" INTEGER, "training_latency_cycles" INTEGER, "training_energy_pj" REAL, "training_peak_memory_bytes" INTEGER, tool INTEGER NOT NULL, checksum INTEGER NOT NULL);
CREATE VIEW exploration AS SELECT d.id, (SELECT value FROM parameter_values WHERE position = 0 AND choice = d.id / 1 % 2) AS "p0", d."feasible", d."reason", d."area_mm2", d."peak_power_w", d."frequency_hz", d."inference_latency_cycles", d."inference_energy_pj", d."inference_peak_memory_bytes", d."training_latency_cycles", d."training_energy_pj", d."training_peak_memory_bytes", t.version AS tool_version, t.git_hash AS git_hash FROM designs AS d LEFT JOIN tools AS t ON t.number = d.tool;
INSERT INTO about VALUES('file_0', 'toy.yaml'), ('file_1', 'toy.onnx'), ('space', 'toy'), ('space_hash', 'feed');
INSERT INTO tools VALUES(1, '0.1', 'old');
INSERT INTO parameters VALUES(0, 'p0');
INSERT INTO parameter_values VALUES(0, 0, 0), (0, 1, 1);
INSERT INTO designs VALUES(0, 1, '', 0.5, 2.0, 1e9, 10, 0.25, 30, 40, 0.125, 60, 1, 6785939949377813229);
INSERT INTO designs VALUES(1, 0, 'too small', 1.5, 0.0, 0.0, NULL, NULL, NULL, NULL, NULL, NULL, 1, -4622015262354153157);
PRAGMA application_id = 1297043013;
PRAGMA user_version = 1;
)";

TEST(Store, OpensWhatTheVersionBeforeWrote) {
  const Folder folder;
  const std::string path = folder / "s.db";
  sqlite::Database(path, sqlite::Access::read_write).execute(kFirstVersion);
  const Space space = toy_space({2});
  const std::vector<DesignResult> rows{
      {0, true, "", 0.5, 2, 1e9, {{10, 0.25, 30}, {40, 0.125, 60}}},
      {1, false, "too small", 1.5, 0, 0, {}}};
  const std::string bytes = read_file(path);
  {
    const auto store = open_store(path, space, read_only());
    EXPECT_EQ(rows_of(*store), rows);
    EXPECT_EQ(store->trainings(), std::vector<TrainingRecord>{});
    EXPECT_EQ(store->find_training("a", 1), std::nullopt);
    EXPECT_EQ(rows_of(*open_store(path, stored_space(path), read_only())), rows);
  }
  EXPECT_EQ(read_file(path), bytes) << "read only";
  {
    const auto store = open_store(path, space, resume());
    EXPECT_EQ(rows_of(*store), rows);
    store->put_training({"a", 1, 0.5, 0});
  }
  EXPECT_EQ(rows_of(*open_store(path, space, resume())), rows);
  sqlite::Database database(path, sqlite::Access::read_write);
  EXPECT_EQ(database.integer("PRAGMA user_version"), 2);
  EXPECT_EQ(
      database.text("SELECT version FROM tools WHERE number = (SELECT min(tool) FROM designs)"),
      "0.1");
  database.execute("PRAGMA user_version = 3");
  expect_part(refusal(path, space), "was written by a newer version");
}

TEST(DesignsCsv, QuotesAndKeepsEveryBit) {
  Space space = toy_space({2, 2});
  space.parameters[0].name = "a,b";
  std::vector<DesignResult> results(2);
  results[0] = {1, true, "", 0.1, 2, 1e9, {{1, 0.30000000000000004, 2}, {3, 4, 5}}};
  results[1] = {2, false, "no \"L1\"\nat all", 7, 0, 0, {}};
  EXPECT_EQ(designs_csv(results, space),
            "id,\"a,b\",p1,feasible,reason,area_mm2,peak_power_w,frequency_hz,"
            "inference_latency_cycles,inference_energy_pj,inference_peak_memory_bytes,"
            "training_latency_cycles,training_energy_pj,training_peak_memory_bytes\n"
            "1,0,1,1,,0.1,2,1000000000,1,0.30000000000000004,2,3,4,5\n"
            "2,1,0,0,\"no \"\"L1\"\"\nat all\",7,0,0,,,,,,\n");
}

} // namespace MONET_TEST_FILE
} // namespace monet::test
