#include "monet/base/errors.hpp"
#include "monet/base/files.hpp"
#include "monet/optimise/log_search.hpp"

#include <gtest/gtest.h>

namespace monet {
namespace {

const std::string kSmall = std::string(MONET_SOURCE_DIR) + "/tests/fixtures/remat/small.log";

std::size_t buffer_named(const RecomputeProblem& problem, const std::string& name) {
  for (std::size_t b = 0; b < problem.buffers.size(); ++b)
    if (problem.buffers[b].name == name)
      return b;
  throw InternalError("no buffer " + name);
}

/// The error's text for a log of these lines.
std::string failure(const std::string& text) {
  try {
    parse_operator_log(text, "a.log");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(OperatorLog, OperatorsAndBuffersAreTheLogs) {
  const OperatorLog log = read_operator_log(kSmall);
  const RecomputeProblem& p = log.problem;
  ASSERT_EQ(p.ops.size(), 5U);
  EXPECT_EQ(p.ops[0].name, "mm:9");
  EXPECT_EQ(p.base_cost(), 57);
  // x, w (made before the step, used by it), h, relu's copy of v, n, m, g; 'old' is not used.
  ASSERT_EQ(p.buffers.size(), 7U);
  EXPECT_FALSE(p.buffers[buffer_named(p, "x")].producer);
  EXPECT_FALSE(p.buffers[buffer_named(p, "w")].producer);
  const auto h = static_cast<std::uint32_t>(buffer_named(p, "h"));
  const auto mutated = static_cast<std::uint32_t>(buffer_named(p, "v'"));
  EXPECT_EQ(p.ops[1].reads, (std::vector<std::uint32_t>{h})); // a view shares its storage
  EXPECT_TRUE(p.ops[1].writes.empty());
  EXPECT_EQ(p.ops[2].reads, (std::vector<std::uint32_t>{h}));
  EXPECT_EQ(p.ops[2].writes, (std::vector<std::uint32_t>{mutated}));
  EXPECT_EQ(p.buffers[mutated].bytes, 20);
  EXPECT_EQ(p.ops[3].writes.size(), 2U); // the third result shares v's storage
  // The copy named before the mutation still is what it was.
  EXPECT_NE(std::find(p.ops[4].reads.begin(), p.ops[4].reads.end(), h), p.ops[4].reads.end());
  EXPECT_TRUE(p.buffers[buffer_named(p, "g")].kept); // under the name w
  EXPECT_FALSE(p.buffers[buffer_named(p, "n")].kept);
}

TEST(OperatorLog, PeakAsWrittenAndFreedEarly) {
  const OperatorLog log = read_operator_log(kSmall);
  const RecomputeProblem& p = log.problem;
  // norm_backward: x 7, w 5, h, n, g 20 each, m 2
  EXPECT_EQ(log.recorded_peak_bytes, 74);
  EXPECT_EQ(replay(p, store_everything(p)).peak_bytes, 74);
  EXPECT_EQ(log.released[buffer_named(p, "v'")], 3U);
  EXPECT_EQ(log.released[buffer_named(p, "h")], 4U);
  EXPECT_EQ(log.released[buffer_named(p, "g")], 5U);
}

TEST(OperatorLog, AProgramThatHoldsNamesLongerNeedsMore) {
  const std::string held = R"({"INSTRUCTION":"CALL","NAME":"a","ARGS":[],"RESULT":["a"],"TIME":1}
{"INSTRUCTION":"MEMORY","NAME":"a","MEMORY":10}
{"INSTRUCTION":"CALL","NAME":"b","ARGS":["a"],"RESULT":["b"],"TIME":1}
{"INSTRUCTION":"MEMORY","NAME":"b","MEMORY":10}
{"INSTRUCTION":"CALL","NAME":"c","ARGS":["b"],"RESULT":["c"],"TIME":1}
{"INSTRUCTION":"MEMORY","NAME":"c","MEMORY":10}
{"INSTRUCTION":"RELEASE","NAME":"a"}
)";
  const OperatorLog log = parse_operator_log(held, "held.log");
  EXPECT_EQ(log.recorded_peak_bytes, 30);
  // b and c are still named at the end, and therefore kept
  EXPECT_EQ(replay(log.problem, store_everything(log.problem)).peak_bytes, 20);
  EXPECT_TRUE(log.problem.buffers[1].kept);
}

TEST(OperatorLog, CopyFromHasTwoSpellings) {
  std::string text = read_file(kSmall);
  text.replace(text.find("COPY_FROM"), 9, "COPYFROM");
  EXPECT_EQ(parse_operator_log(text, "other.log").recorded_peak_bytes, 74);
}

TEST(OperatorLog, ErrorsNameTheLine) {
  const std::string a = R"({"INSTRUCTION":"CONSTANT","NAME":"a"}
{"INSTRUCTION":"MEMORY","NAME":"a","MEMORY":"4"}
)";
  EXPECT_NE(failure("{").find("a.log:1"), std::string::npos);
  EXPECT_NE(failure(""), "");
  EXPECT_NE(failure(a), ""); // no operator
  const auto third = [&](const std::string& line) {
    const std::string what = failure(a + line);
    EXPECT_NE(what.find("a.log:3"), std::string::npos) << line << what;
    return what;
  };
  EXPECT_NE(third("[1]").find("JSON object"), std::string::npos);
  EXPECT_NE(third(R"({"NAME":"a"})").find("'INSTRUCTION' is missing"), std::string::npos);
  EXPECT_NE(third(R"({"INSTRUCTION":"JUMP"})").find("unknown instruction 'JUMP'"),
            std::string::npos);
  EXPECT_NE(third(R"({"INSTRUCTION":"RELEASE","NAME":"b"})").find("'b'"), std::string::npos);
  third(R"({"INSTRUCTION":"COPY","SRC":"a","DST":"a"})");
  third(R"({"INSTRUCTION":"COPY_FROM","SRC":"a","DST":"b"})");
  third(R"({"INSTRUCTION":"MEMORY","NAME":"a","MEMORY":"4"})"); // the second one
  third(R"({"INSTRUCTION":"ALIAS","NAME":"a","ALIAS":"0"})");   // of no argument
  const std::string call =
      R"({"INSTRUCTION":"CALL","NAME":"f","ARGS":["a"],"RESULT":["r"],"TIME":)";
  for (const char* time : {"-1}", "\"-1\"}", "1.5}", "\"x\"}", "99999999999999999999}",
                           "\"99999999999999999999\"}", "null}", "9007199254740993}"})
    third(call + time);
  third(R"({"INSTRUCTION":"MUTATE","NAME":"f","ARGS":["a"],"MUTATE":[1],"TIME":1})");
  third(R"({"INSTRUCTION":"CALL","NAME":"f","ARGS":["a","z"],"RESULT":[],"TIME":1})");
  const std::string unsized =
      failure(a + call + "1}\n" + R"({"INSTRUCTION":"RELEASE","NAME":"a"})");
  EXPECT_NE(unsized.find("a.log:4"), std::string::npos) << unsized;
  EXPECT_NE(unsized.find("MEMORY of 'r'"), std::string::npos) << unsized;
  const std::string much = R"({"INSTRUCTION":"MEMORY","NAME":"r","MEMORY":9007199254740992})";
  EXPECT_NE(failure(a + call + "1}\n" + much).find("2^53 bytes"), std::string::npos);
}

} // namespace
} // namespace monet
