#include "report/hand_made_step.hpp"
#include "report/shared/optimise_result.hpp"
#include "report/shared/search_result.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace monet::test {
namespace {

TEST(OptimiseResult, FiguresAreThoseOfTheStep) {
  const HandMade step = hand_made_step();
  const auto result = step.json();
  const auto row =
      figures_json("base", figures_of(step.timeline, step.tiles, step.step, step.chip));
  EXPECT_EQ(row.at("name"), "base");
  for (const char* key : {"latency_cycles", "energy_pj", "peak_memory_bytes"})
    EXPECT_EQ(row.at(key), result.at(key)) << key;
  EXPECT_EQ(row.at("stored_activations_bytes"), step.step.stored_bytes);
  std::int64_t moved = 0;
  for (const auto& layer : result.at("layers"))
    moved += layer.at("offchip_bytes").get<std::int64_t>();
  EXPECT_EQ(row.at("offchip_bytes"), moved);
}

TEST(OptimiseResult, MemoryOverTimeIsTheTimelinesInAThousandMoments) {
  HandMade step = hand_made_step();
  const auto memory = memory_over_time_json("before", step.timeline);
  EXPECT_EQ(memory.at("at").size(), step.timeline.live.size());
  std::int64_t most = 0;
  for (std::size_t i = 0; i < memory.at("at").size(); ++i) {
    std::int64_t sum = 0;
    for (const char* owner : {"parameters_bytes", "gradients_bytes", "optimizer_state_bytes",
                              "stored_activations_bytes", "temporaries_bytes"})
      sum += memory.at(owner).at(i).get<std::int64_t>();
    most = std::max(most, sum);
  }
  EXPECT_EQ(most, step.json().at("peak_memory_bytes"));
  step.timeline.live.clear();
  for (std::int64_t t = 0; t < 2500; ++t)
    step.timeline.live.push_back({Cycles{t}, {t, 0, 0, 0, 0}});
  const auto thinned = memory_over_time_json("long", step.timeline);
  EXPECT_EQ(thinned.at("at").size(), 834U); // of three each
  EXPECT_EQ(thinned.at("parameters_bytes").back(), 2499);
}

TEST(OptimiseResult, ATableComparesWithItsFirstRow) {
  const HandMade step = hand_made_step();
  auto rows = nlohmann::ordered_json::array(
      {figures_json("base", figures_of(step.timeline, step.tiles, step.step, step.chip))});
  rows.push_back(rows[0]);
  rows[1]["name"] = "half";
  rows[1]["latency_cycles"] = rows[0]["latency_cycles"].get<std::int64_t>() / 2;
  const std::string table = compared_table(rows);
  EXPECT_NE(table.find("(50.0 %)"), std::string::npos) << table;
  EXPECT_NE(table.find("(100.0 %)"), std::string::npos) << table;
}

TEST(OptimiseResult, GroupsAreStacksOfSeveralOperators) {
  TileGraph tiles;
  tiles.stack_of = {7, 3, 3, 0, 7, 1};
  EXPECT_EQ(groups_of(tiles), (std::vector<std::uint32_t>{0, 1, 1, kAlone, 0, kAlone}));
}

TEST(OptimiseResult, HoldsSearchesComparisonAndThePictureOfAFusedStep) {
  HandMade step = hand_made_step();
  const OptimisedStep same{
      {{{"kind", "fusion"}, {"objective", "latency"}}}, step.result(), step.result(), false};
  const auto alone = optimise_json(same, step.chip);
  EXPECT_EQ(alone.at("searches").size(), 1U);
  EXPECT_EQ(alone.at("compared").size(), 2U);
  EXPECT_EQ(alone.at("memory").size(), 2U);
  EXPECT_FALSE(alone.contains("picture"));
  HandMade fused = hand_made_step("<b>");
  fused.tiles.stack_of.assign(fused.step.graph.operators().size(), 0);
  const auto json = optimise_json({{}, step.result(), fused.result(), false}, step.chip);
  const std::string picture = json.at("picture").get<std::string>();
  EXPECT_EQ(picture.rfind("<svg ", 0), 0U);
  EXPECT_NE(picture.find(">group 1<"), std::string::npos);
  EXPECT_EQ(picture.find("<b>"), std::string::npos);
}

TEST(OptimiseResult, TellsByWhichObjectivesTheStepIsWorse) {
  HandMade step = hand_made_step();
  HandMade slower = hand_made_step();
  slower.timeline.makespan = step.timeline.makespan + step.timeline.makespan;
  std::vector<nlohmann::ordered_json> searches;
  for (const char* objective : {"latency", "memory", "front", "latency"})
    searches.push_back({{"kind", "fusion"}, {"objective", objective}});
  const auto json = optimise_json({searches, step.result(), slower.result(), true}, step.chip);
  EXPECT_EQ(json.at("interrupted"), true);
  ASSERT_EQ(json.at("worse").size(), 1U) << json.at("worse");
  EXPECT_EQ(json.at("worse")[0].at("objective"), "latency");
  EXPECT_EQ(json.at("worse")[0].at("after"), 2 * json.at("worse")[0].at("before").get<double>());
  EXPECT_EQ(worse_text(json), "worse than before the searches: latency 200.0 %\n");
  const auto better = optimise_json({searches, slower.result(), step.result(), false}, step.chip);
  EXPECT_EQ(better.at("worse").size(), 0U);
  EXPECT_EQ(worse_text(better), "");
}

TEST(OptimiseResult, ASearchTellsWhatItBeganWith) {
  Certificate found{110, 90, false, 100};
  const auto json = search_json({"fusion", "a", "latency", found, 1});
  EXPECT_EQ(json.at("start"), 100);
  EXPECT_EQ(json.at("worse_than_start"), true);
  EXPECT_EQ(worse_text("latency", found),
            "worse than the start of the search: latency 110 after 100 (110.0 %)\n");
  found.best = 100;
  EXPECT_EQ(worse_text("latency", found), "");
  found.best = std::numeric_limits<double>::infinity();
  EXPECT_EQ(worse_text("latency", found),
            "worse than the start of the search: no result was found\n");
  EXPECT_EQ(worse_text("latency", Certificate{}), ""); // a search that begins with nothing
  EXPECT_TRUE(search_json({"fusion", "a", "latency", {}, 1}).at("start").is_null());
}

} // namespace
} // namespace monet::test
