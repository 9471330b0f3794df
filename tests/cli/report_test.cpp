#include "cli/run_monet.hpp"

#include "monet/base/files.hpp"

#include <gtest/gtest.h>

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

} // namespace
} // namespace monet::test
