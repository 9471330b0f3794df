#include "report/hand_made_step.hpp"

#include <gtest/gtest.h>

namespace monet::test {
namespace {

TEST(SummaryTable, ShowsPhasesStepAndInference) {
  EXPECT_EQ(
      summary_table(hand_made_step().json("a\x1B[2Jb")),
      "a\xEF\xBF\xBD[2Jb\n"
      "8 parameters, 2 compute cores, 90 ns\n"
      "\n"
      "                          forward  backward     update  training step  inference alone\n"
      "--------------------------------------------------------------------------------------\n"
      "MACs                            8         8          0             16               16\n"
      "latency (cycles)               30        40         20             90               90\n"
      "critical path (cycles)         30        40         20             90               90\n"
      "energy                     177 pJ   12.5 pJ  360.75 pJ      550.25 pJ        550.25 pJ\n"
      "  compute                    8 pJ    8.5 pJ       1 pJ        17.5 pJ          17.5 pJ\n"
      "  on-chip memory          4.75 pJ      4 pJ    3.75 pJ        12.5 pJ          12.5 pJ\n"
      "  links                     64 pJ      0 pJ     156 pJ         220 pJ           220 pJ\n"
      "  off-chip              100.25 pJ      0 pJ     200 pJ      300.25 pJ        300.25 pJ\n"
      "peak memory                  56 B      80 B       64 B           80 B             80 B\n"
      "  parameters                 32 B      32 B       32 B           32 B             32 B\n"
      "  gradients                   0 B      32 B       32 B           32 B             32 B\n"
      "  optimizer state             0 B       0 B        0 B            0 B              0 B\n"
      "  stored activations         16 B      16 B        0 B           16 B             16 B\n"
      "  temporaries                 8 B       0 B        0 B            0 B              0 B\n"
      "\n"
      "layer         phase  critical path (cycles)   share  span (cycles)     energy  off-chip\n"
      "---------------------------------------------------------------------------------------\n"
      "fc/dw      backward                      40  44.4 %             30    12.5 pJ       0 B\n"
      "fc          forward                      30  33.3 %             20     177 pJ      16 B\n"
      "fc/update    update                      20  22.2 %              6  360.75 pJ      32 B\n");
}

// Ten layers are listed, the largest first and equal ones in their order; the rest are one row.
TEST(SummaryTable, SumsUpTheLayersThatItDoesNotList) {
  nlohmann::ordered_json result = hand_made_step().json();
  const nlohmann::ordered_json layer = result["layers"][0];
  result["layers"] = nlohmann::ordered_json::array();
  for (int i = 0; i < 12; ++i) {
    result["layers"].push_back(layer);
    result["layers"].back()["name"] = "l" + std::to_string(i);
    result["layers"].back()["critical_path_cycles"] = i == 11 ? 35 : 5;
  }
  const std::string table = summary_table(result);
  EXPECT_NE(table.find("\nl11 "), std::string::npos);
  EXPECT_LT(table.find("\nl11 "), table.find("\nl0 "));
  EXPECT_LT(table.find("\nl0 "), table.find("\nl8 "));
  EXPECT_EQ(table.find("\nl9 "), std::string::npos);
  EXPECT_NE(
      table.find(
          "\n2 more                               10  11.1 %                 354 pJ      32 B\n"),
      std::string::npos)
      << table;
}

TEST(SummaryTable, InferenceHasOneColumn) {
  HandMade made = hand_made_step();
  made.step.training = false;
  const std::string table = summary_table(result_json("n", made.result(), nullptr, made.chip, {}));
  EXPECT_NE(table.find("\n                      inference\n"), std::string::npos) << table;
}

} // namespace
} // namespace monet::test
