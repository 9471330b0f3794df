#include "cli/run_monet.hpp"

#include "monet/base/files.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace monet::test {
namespace {

struct Wrong {
  std::string text;
  std::string message;
};

TEST(Report, RefusesWhatIsNoResult) {
  const Scratch scratch;
  const std::string deep(100000, '[');
  for (const Wrong& wrong : std::vector<Wrong>{
           {"{\n \"name\": oops}", "r.json:2:10: is not valid JSON"},
           {"", "r.json:1:1: is not valid JSON"},
           {deep, "r.json: is not a result: nested too deeply"},
           {"{\"x\": 1e400}", "r.json: is not a result: it has a number that is too large"},
           {"[]", "r.json: is not a result: not a JSON object"},
           {"{\"schema_version\": 2}", "schema_version is not 1"},
           {"{\"schema_version\": 1, \"name\": 3}", "'name' is not a string"}}) {
    scratch.file("r.json", wrong.text);
    const Ran ran = run_monet({"report", "r.json", "-o", "r.html"}, scratch.path());
    EXPECT_EQ(ran.code, 3);
    EXPECT_NE(ran.err.find(wrong.message), std::string::npos) << ran.err;
    EXPECT_FALSE(std::filesystem::exists(scratch.path() / "r.html"));
  }
}

TEST(Report, WarnsOfResultsWithoutTheCyclesOfTheCriticalPath) {
  const Scratch scratch;
  const std::string layer = R"({"name": "a", "latency_cycles": 1)";
  const auto page_of = [&](const std::string& end) {
    scratch.file("r.json",
                 R"({"schema_version": 1, "name": "n", "latency_cycles": 1, "energy_pj": 1,
        "memory": {}, "phases": [], "cores": [], "links": [], "layers": [)" +
                     layer + end + R"(}], "timeline": {}})");
    const Ran ran = run_monet({"report", "r.json", "-o", "r.html"}, scratch.path());
    EXPECT_EQ(ran.code, 0) << ran.err;
    return ran.err;
  };
  EXPECT_EQ(page_of(""), "warning: r.json: is of an older version: layers and phases have no "
                         "'critical_path_cycles', and layers no 'span_cycles'; the page shows 0 "
                         "(model the step again)\n");
  EXPECT_NE(read_file(scratch / "r.html").find("is of an older version"), std::string::npos);
  EXPECT_EQ(page_of(R"(, "critical_path_cycles": 1, "span_cycles": 1)"), "");
}

/// Of processes that have ended.
double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec);
}

TEST(Report, ReadsAMegabyteOfNestedListsAtOnce) {
  const Scratch scratch;
  std::string text = "[";
  for (int i = 0; i < 300'000; ++i)
    text += "{},";
  scratch.file("r.json", text + "{}]");
  const double before = processor_seconds();
  const Ran ran = run_monet({"report", "r.json", "-o", "r.html"}, scratch.path());
  EXPECT_EQ(ran.code, 3);
  EXPECT_NE(ran.err.find("not a JSON object"), std::string::npos) << ran.err;
  EXPECT_LT(processor_seconds() - before, 3.0); // 24 s where each bracket looked at all before it
}

} // namespace
} // namespace monet::test
