#include "cli/run_monet.hpp"
#include "report/json_schema.hpp"
#include "report/trace_rules.hpp"

#include "monet/base/files.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

namespace monet::test {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

void replace(std::string& text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
}

/// Twelve of the study's designs with a small network; the four with 512 bytes of memory cannot
/// run it.
std::string small_space(const Scratch& scratch, const std::string& name = "space.yaml") {
  std::string text = read_file(repository("data/spaces/edge_study.yaml"));
  replace(text, "../workload/resnet18_cifar.onnx, batch: 4",
          repository("data/workload/gpt2_nano.onnx") + ", batch: 1");
  replace(text, "[16, 32, 64, 128]", "[16, 32]");
  replace(text, "[1, 2, 4, 8]", "[8]");
  replace(text, "[0.5, 1, 2, 3, 4]", "[0.00048828125, 0.5, 2]");
  replace(text, "[8, 16, 32, 48, 64]", "[16]");
  replace(text, "[1, 2, 4, 6, 8]", "[1, 2]");
  replace(text, "[1, 2, 4, 6, 8]", "[2]");
  return scratch.file(name, text);
}

const Json& figures_of(const Json& result, const std::string& run) {
  return run == "training" ? result : result.at("inference");
}

TEST(ExploreOutput, WritesTheResultItsPageAndTheBestDesignsInFull) {
  const Scratch scratch;
  const Ran ran = run_monet(
      {"explore", small_space(scratch), "-o", scratch / "out", "--design", "8", "--jobs", "2"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json json = parse_file(scratch / "out/explore.json");
  EXPECT_EQ(schema_violations(parse_file(repository("docs/explore.schema.json")), json),
            std::vector<std::string>{});
  EXPECT_EQ(json.at("designs"), 12);
  EXPECT_EQ(json.at("evaluated"), 8);
  EXPECT_EQ(json.at("infeasible"), 4);
  EXPECT_NE(ran.out.find("Front of training: latency, energy"), std::string::npos) << ran.out;
  const auto reports = json.at("reports").get<std::vector<std::string>>();
  EXPECT_NE(std::find(reports.begin(), reports.end(), "8"), reports.end());
  for (const std::string run : {"inference", "training"}) {
    for (const std::string objective : {"latency", "energy"}) {
      const Json& best = json.at("best").at(run).at(objective);
      const std::string id = std::to_string(best.at("id").get<int>());
      EXPECT_NE(std::find(reports.begin(), reports.end(), id), reports.end());
      const Json result = parse_file(scratch / ("out/designs/" + id + "/result.json"));
      for (const char* key : {"latency_cycles", "energy_pj", "peak_memory_bytes"})
        EXPECT_EQ(figures_of(result, run).at(key), best.at(key)) << id << " " << run << " " << key;
      for (const char* file : {"report.html", "trace.json", "system.yaml", "element.yaml"})
        EXPECT_TRUE(fs::is_regular_file(scratch / ("out/designs/" + id + "/" + file))) << file;
      EXPECT_EQ(trace_violations(parse_file(scratch / ("out/designs/" + id + "/trace.json"))),
                std::vector<std::string>{});
    }
  }
  EXPECT_NE(read_file(scratch / "out/report.html").find("\"kind\":\"explore\""), std::string::npos);
}

TEST(ExploreOutput, DependsOnJobsInItsTimeAlone) {
  const Scratch scratch;
  const std::string space = small_space(scratch);
  const auto json = [&](const std::string& jobs) {
    const Ran ran = run_monet({"explore", space, "--json", "-", "--jobs", jobs});
    EXPECT_EQ(ran.code, 0) << ran.err;
    Json found = Json::parse(ran.out);
    EXPECT_GT(found.at("seconds"), 0);
    found.erase("seconds");
    return found;
  };
  EXPECT_EQ(json("1"), json("2"));
}

/// The example of formats and chips, with trainings of six steps.
std::string formats_space(const Scratch& scratch) {
  std::string text = read_file(repository("examples/spaces/small_formats.yaml"));
  replace(text, "train: 400, test: 200", "train: 48, test: 32");
  replace(text, "../../data/workload", repository("data/workload"));
  replace(text, "../../data/hardware", repository("data/hardware"));
  return scratch.file("formats.yaml", text);
}

TEST(ExploreFormats, GivesTheErrorsOfShortTrainingsWithTheFigures) {
  const Scratch scratch;
  const Ran ran = run_monet({"explore", formats_space(scratch), "-o", scratch / "out",
                             "--export-csv", scratch / "designs.csv", "--jobs", "2"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.out.find("Front of training: energy, error"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find(" %\n"), std::string::npos) << ran.out;
  const Json json = parse_file(scratch / "out/explore.json");
  EXPECT_EQ(schema_violations(parse_file(repository("docs/explore.schema.json")), json),
            std::vector<std::string>{});
  EXPECT_EQ(json.at("evaluated"), 6);
  const std::size_t width = json.at("columns").size();
  EXPECT_EQ(json.at("columns").at(width - 2), "error");
  EXPECT_EQ(json.at("columns").at(width - 1), "gradients_flushed");
  for (std::size_t i = 0; i < 3; ++i) { // chips differ in their figures alone
    const Json& one = json.at("rows").at(i);
    const Json& other = json.at("rows").at(i + 3);
    EXPECT_EQ(one.at(width - 2), other.at(width - 2));
    EXPECT_NE(one.at(width - 4), other.at(width - 4));
    EXPECT_GT(one.at(width - 2), 0);
  }
  const Json& best = json.at("best").at("training").at("error");
  const std::string id = best.at("id").dump();
  const Json result = parse_file(scratch / ("out/designs/" + id + "/result.json"));
  EXPECT_EQ(result.at("energy_pj"), best.at("energy_pj")) << "in the formats of the design";
  EXPECT_EQ(json.at("fronts").at("training: energy, error").at("box").at("error").at(0),
            best.at("error"));
  EXPECT_TRUE(json.at("sensitivity").at("training").contains("error"));
  const Ran same = run_monet({"explore", "--compare", "out/explore.json", "out/explore.json",
                              "--of", "training", "training", "--json", "-"},
                             scratch.path());
  ASSERT_EQ(same.code, 0) << same.err;
  bool is_compared = false;
  const Json compared = Json::parse(same.out);
  for (const Json& row : compared.at("pairs").at(0).at("best")) {
    is_compared = is_compared || row.at("objective") == "error";
    EXPECT_EQ(row.at("b_over_a"), 1);
    EXPECT_EQ(row.at("best_of_a_in_b"), 1);
  }
  EXPECT_TRUE(is_compared);
}

TEST(ExploreFormats, IsTheSameForThreadsProcessesAndAfterAnEnd) {
  const Scratch scratch;
  const std::string space = formats_space(scratch);
  const auto table = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"explore", space, "--export-csv", scratch / "t.csv"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Ran ran = run_monet(arguments);
    EXPECT_EQ(ran.code, 0) << ran.err;
    return read_file(scratch / "t.csv");
  };
  const std::string one = table({"--jobs", "1"});
  EXPECT_EQ(table({"--store", scratch / "s.db", "--budget", "2", "--jobs", "2"}).substr(0, 300),
            one.substr(0, 300));
  EXPECT_EQ(table({"--store", scratch / "s.db", "--resume", "--jobs", "2"}), one);
  if (!has_component("mpi"))
    return;
  const std::string command = std::string("mpirun --allow-run-as-root --oversubscribe -n 2 '") +
                              MONET_BINARY + "' explore '" + space + "' --export-csv '" +
                              (scratch / "mpi.csv") + "' >/dev/null 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(read_file(scratch / "mpi.csv"), one);
}

TEST(ExploreOutput, RefusesReportsOfDesignsThatAreNotThere) {
  const Scratch scratch;
  const Ran ran =
      run_monet({"explore", small_space(scratch), "-o", scratch / "out", "--design", "12"});
  EXPECT_EQ(ran.code, 3);
  EXPECT_NE(ran.err.find("has no design 12: the last is 11"), std::string::npos) << ran.err;
  EXPECT_FALSE(fs::exists(scratch / "out"));
}

TEST(ExploreOutput, ADesignThatCannotRunCostsNoOtherReport) {
  const Scratch scratch;
  const Ran ran = run_monet(
      {"explore", small_space(scratch), "-o", scratch / "out", "--design", "0", "--design", "5"});
  EXPECT_EQ(ran.code, 4);
  EXPECT_NE(ran.err.find("infeasible: design 0: "), std::string::npos) << ran.err;
  const auto reports =
      parse_file(scratch / "out/explore.json").at("reports").get<std::vector<std::string>>();
  EXPECT_GE(reports.size(), 2U);
  EXPECT_EQ(std::count(reports.begin(), reports.end(), "5"), 1);
  EXPECT_EQ(std::count(reports.begin(), reports.end(), "0"), 0);
  for (const std::string& id : reports)
    EXPECT_TRUE(fs::is_regular_file(scratch / ("out/designs/" + id + "/report.html"))) << id;
}

TEST(ExploreCompare, RunsOfOneFileAndOfTwo) {
  const Scratch scratch;
  const std::string space = small_space(scratch);
  ASSERT_EQ(run_monet({"explore", space, "--json", scratch / "a.json"}).code, 0);
  ASSERT_EQ(run_monet({"explore", space, "--json", scratch / "b.json", "--strategy", "random",
                       "--budget", "5"})
                .code,
            0);
  const Ran same =
      run_monet({"explore", "--compare", "a.json", "a.json", "-o", "out"}, scratch.path());
  ASSERT_EQ(same.code, 0) << same.err;
  EXPECT_NE(same.out.find("A: a.json (inference)\nB: a.json (training)"), std::string::npos);
  EXPECT_NE(read_file(scratch / "out/compare.html").find("explore-comparison"), std::string::npos);
  const Ran two =
      run_monet({"explore", "--compare", "a.json", "b.json", "--json", "-"}, scratch.path());
  ASSERT_EQ(two.code, 0) << two.err;
  const Json json = Json::parse(two.out);
  EXPECT_EQ(json.at("pairs").size(), 2U);
  const Json whole = parse_file(scratch / "a.json");
  for (const Json& pair : json.at("pairs")) {
    const auto run = pair.at("a").at("run").get<std::string>();
    for (const auto& [name, front] : pair.at("fronts").items()) { // nothing beats that of all
      EXPECT_EQ(front.at("a").at("dominated"), 0);
      EXPECT_EQ(front.at("a").at("hypervolume"),
                whole.at("fronts").at(run + ": " + name).at("hypervolume"));
      EXPECT_GE(front.at("a").at("hypervolume"), front.at("b").at("hypervolume"));
    }
  }
  const Ran chosen =
      run_monet({"explore", "--compare", "b.json", "a.json", "--of", "training", "inference"},
                scratch.path());
  EXPECT_EQ(chosen.code, 0) << chosen.err;
  EXPECT_NE(chosen.out.find("A: b.json (training)"), std::string::npos) << chosen.out;
  EXPECT_EQ(run_monet({"report", "out/compare.json", "-o", "again.html"}, scratch.path()).code, 0);
  EXPECT_EQ(read_file(scratch / "again.html"), read_file(scratch / "out/compare.html"));
}

TEST(ExploreCompare, StoresAsWellAsResults) {
  const Scratch scratch;
  const Ran explored = run_monet({"explore", small_space(scratch), "--json", scratch / "a.json",
                                  "--store", scratch / "a.sqlite"});
  ASSERT_EQ(explored.code, 0) << explored.err;
  const auto pairs = [&](const std::string& first, const std::string& second) {
    const Ran ran =
        run_monet({"explore", "--compare", first, second, "--json", "-"}, scratch.path());
    EXPECT_EQ(ran.code, 0) << ran.err;
    Json found = Json::parse(ran.out).at("pairs");
    for (Json& pair : found)
      pair.at("a").erase("label");
    return found;
  };
  EXPECT_EQ(pairs("a.sqlite", "a.json"), pairs("./a.json", "a.json"));
}

TEST(ExploreCompare, RefusesWhatIsNoExploration) {
  const Scratch scratch;
  scratch.file("result.json", R"({"schema_version": 1, "kind": "training"})");
  scratch.file("parts.json", R"({"schema_version": 1, "kind": "explore", "name": "x"})");
  scratch.file("empty.json", R"({"schema_version": 1, "kind": "explore", "name": "x", "space": {},
    "runs": ["training"], "fronts": {}, "best": {}, "columns": [], "rows": []})");
  scratch.file("wrong.json", R"({"schema_version": 1, "kind": "explore", "name": "x",
    "space": {"content_hash": ""}, "runs": ["training"], "fronts": {"f": {"run": 3}}, "best": {},
    "columns": [], "rows": []})");
  for (const auto& [file, message] : std::vector<std::pair<std::string, std::string>>{
           {"result.json", "is not a result of monet explore"},
           {"parts.json", "parts of it are missing"},
           {"empty.json", "has no front"},
           {"wrong.json", "has no front"},
           {"none.json", "none.json"}}) {
    const Ran ran = run_monet({"explore", "--compare", file, file}, scratch.path());
    EXPECT_EQ(ran.code, 3) << file << ran.err;
    EXPECT_NE(ran.err.find(message), std::string::npos) << file << ": " << ran.err;
  }
}

} // namespace
} // namespace monet::test
