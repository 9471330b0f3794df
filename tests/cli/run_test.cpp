#include "cli/run_monet.hpp"
#include "report/json_schema.hpp"

#include "monet/base/files.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace monet::test {
namespace {

namespace fs = std::filesystem;

double sum(const nlohmann::json& list, const char* key) {
  double total = 0;
  for (const auto& entry : list)
    total += entry.at(key).get<double>();
  return total;
}

void expect_conserved(const nlohmann::json& step) {
  const double energy = step.at("energy_pj").get<double>();
  EXPECT_EQ(sum(step.at("layers"), "energy_pj"), energy);
  EXPECT_EQ(sum(step.at("phases"), "energy_pj"), energy);
  EXPECT_EQ(sum(step.at("cores"), "energy_pj") + sum(step.at("links"), "energy_pj"), energy);
  EXPECT_EQ(sum(step.at("phases"), "latency_cycles"), step.at("latency_cycles").get<double>());
  EXPECT_EQ(sum(step.at("layers"), "macs"), step.at("macs").at("total").get<double>());
  EXPECT_EQ(sum(step.at("phases"), "macs"), step.at("macs").at("total").get<double>());
  double owners = 0;
  for (const auto& [key, bytes] : step.at("memory").items()) {
    if (key != "peak_cycle")
      owners += bytes.get<double>();
  }
  EXPECT_EQ(owners, step.at("peak_memory_bytes").get<double>());
}

std::vector<std::string> examples() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(repository("examples"))) {
    if (entry.path().extension() == ".yaml")
      names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// Searches tell how far they are where they take seconds: lines that begin with a time.
std::string without_progress(const std::string& text) {
  std::istringstream lines(text);
  std::string rest;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind('[', 0) != 0)
      rest += line + "\n";
  }
  return rest;
}

class Example : public testing::TestWithParam<std::string> {};

TEST_P(Example, WritesAConsistentResult) {
  const Scratch scratch;
  const Ran ran =
      run_monet({"run", repository("examples/" + GetParam() + ".yaml")}, scratch.path());
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(without_progress(ran.err), "");
  const std::string folder = "out/" + GetParam() + "/";
  EXPECT_NE(ran.out.find("\nreport: " + folder + "report.html\n"), std::string::npos) << ran.out;
  const auto result = parse_file(scratch / (folder + "result.json"));
  const auto schema = parse_file(repository("docs/result.schema.json"));
  EXPECT_EQ(schema_violations(schema, result), std::vector<std::string>{});
  expect_conserved(result);
  if (result.contains("inference"))
    expect_conserved(result.at("inference"));
  const auto trace = parse_file(scratch / (folder + "trace.json"));
  EXPECT_GE(trace.at("traceEvents").size(), result.at("timeline").at("runs").size());
  EXPECT_GT(read_file(scratch / (folder + "training.onnx")).size(), 0U);
  // No path of this machine in the provenance.
  EXPECT_EQ(result.at("provenance").dump().find('/'), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(All, Example, testing::ValuesIn(examples()),
                         [](const auto& example) { return example.param; });

TEST(Run, ResultsDoNotDependOnThreadsAndReportsCanBeMadeAgain) {
  const Scratch scratch;
  const std::string example = repository("examples/edge_resnet18_cifar.yaml");
  ASSERT_EQ(run_monet({"run", example, "-o", "one", "--jobs", "1"}, scratch.path()).code, 0);
  ASSERT_EQ(run_monet({"run", example, "-o", "many", "--jobs", "4"}, scratch.path()).code, 0);
  for (const char* name : {"result.json", "report.html", "trace.json", "training.onnx"}) {
    EXPECT_EQ(read_file(scratch / ("one/" + std::string(name))),
              read_file(scratch / ("many/" + std::string(name))))
        << name;
  }
  ASSERT_EQ(run_monet({"report", "one/result.json", "-o", "again.html"}, scratch.path()).code, 0);
  EXPECT_EQ(read_file(scratch / "again.html"), read_file(scratch / "one/report.html"));
}

TEST(Run, PrintsPhasesBesideInference) {
  const Scratch scratch;
  const Ran ran = run_monet({"run", repository("examples/edge_resnet18_cifar.yaml"), "-o", "out"},
                            scratch.path());
  ASSERT_EQ(ran.code, 0) << ran.err;
  expect_golden("run_edge_resnet18_cifar.txt", ran.out);
}

} // namespace
} // namespace monet::test
