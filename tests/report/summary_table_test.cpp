#include "report/hand_made_step.hpp"

#include <gtest/gtest.h>

namespace monet::test {
namespace {

TEST(SummaryTable, ShowsPhasesStepAndInference) {
  EXPECT_EQ(summary_table(hand_made_step().json("a\x1B[2Jb")), "");
}

TEST(SummaryTable, InferenceHasOneColumn) {
  HandMade made = hand_made_step();
  made.step.training = false;
  const std::string table = summary_table(result_json("n", made.result(), nullptr, made.chip, {}));
  EXPECT_NE(table.find("\n                      inference\n"), std::string::npos) << table;
}

} // namespace
} // namespace monet::test
