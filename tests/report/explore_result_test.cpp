#include "base/shared/pareto.hpp"
#include "base/shared/rng.hpp"
#include "report/json_schema.hpp"
#include "report/shared/explore_result.hpp"
#include "report/shared/text.hpp"

#include "monet/base/errors.hpp"
#include "monet/base/files.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

namespace monet::test {
namespace MONET_TEST_FILE {

using Json = nlohmann::ordered_json;

Parameter numbers(const std::string& name, std::uint32_t count) {
  Parameter parameter{name, {}};
  for (std::uint32_t i = 1; i <= count; ++i)
    parameter.values.push_back({true, static_cast<double>(i), std::to_string(i)});
  return parameter;
}

Space space_of(std::vector<Parameter> parameters) {
  Space space;
  space.name = "toy";
  space.content_hash = "0123456789abcdef";
  space.parameters = std::move(parameters);
  space.workload.runs = {"inference", "training"};
  space.fronts = {{0, {Objective::latency, Objective::energy}},
                  {1, {Objective::latency, Objective::energy}},
                  {1, {Objective::latency, Objective::energy, Objective::area}}};
  return space;
}

Space toy_space() {
  Parameter kind{"kind", {{false, 0, "small"}, {false, 0, "large"}}};
  return space_of({numbers("pe", 2), kind, {"mb", {{true, 0.5, "0.5"}, {true, 8, "8"}}}});
}

/// Twice the elements halve the cycles; large ones cost twice the energy. 8 MB in a large one is
/// too much.
ExplorationResult toy_result() {
  ExplorationResult result;
  result.seconds = 1.5;
  for (DesignId id = 0; id < 8; ++id) {
    const std::int64_t elements = 1 + static_cast<std::int64_t>(id / 4);
    const bool large = id / 2 % 2 == 1;
    const bool much = id % 2 == 1;
    DesignResult design{id, true, "", static_cast<double>(elements), 0.25, 0, {}};
    if (large && much) {
      design.feasible = false;
      design.reason = "area 1" + std::to_string(id) + ".5 mm2 is above 10,000 mm2";
    } else {
      const std::int64_t work = large ? 300 : 600;
      const double energy = (large ? 2 : 1) * (much ? 1.5 : 1) * 1000;
      design.runs = {{work / elements, energy, 100}, {3 * work / elements, 4 * energy, 400}};
    }
    result.results.push_back(design);
  }
  return result;
}

Json toy_json() {
  return explore_json(toy_space(), toy_result(), {"exhaustive", 7, 0, ""},
                      {"1.0", "abc", 7, {}, {}});
}

/// Costs at random from so few values that there are ties; one in five is infeasible.
ExplorationResult random_result(const Space& space, std::uint64_t seed, std::uint64_t values) {
  ExplorationResult result;
  RandomStream random(seed);
  for (DesignId id = 0; id < space.size(); ++id) {
    DesignResult design{id, random.below(5) > 0, "", 0, 0, 0, {}};
    design.area_mm2 = static_cast<double>(1 + random.below(values));
    const auto number = [&] { return static_cast<std::int64_t>(1 + random.below(values)); };
    for (int run = 0; design.feasible && run < 2; ++run)
      design.runs.push_back({number(), static_cast<double>(number()), number()});
    if (!design.feasible)
      design.reason = "no";
    result.results.push_back(design);
  }
  return result;
}

Json compared(const ComparedRun& a, const ComparedRun& b) {
  const std::vector<std::pair<ComparedRun, ComparedRun>> pairs{{a, b}};
  return comparison_json(pairs);
}

std::vector<std::string> violations(const Json& json) {
  const auto schema =
      nlohmann::json::parse(read_file(MONET_SOURCE_DIR "/docs/explore.schema.json"));
  return schema_violations(schema, nlohmann::json::parse(json_text(json)));
}

TEST(ExploreResult, IsWhatItWasForAToySpace) {
  Json json = toy_json();
  EXPECT_EQ(violations(json), std::vector<std::string>{});
  json.erase("sensitivity"); // has tests of its own
  const std::string path = MONET_SOURCE_DIR "/tests/golden/explore_toy.json";
  EXPECT_EQ(json, Json::parse(read_file(path))) << json_text(json);
}

TEST(ExploreResult, SchemaHoldsWithoutAnyResult) {
  const Json json = explore_json(toy_space(), {}, {"random", 1, 10, "all are known"}, {});
  EXPECT_EQ(violations(json), std::vector<std::string>{});
  EXPECT_EQ(json.at("evaluated"), 0);
  EXPECT_FALSE(exploration_table(json).empty());
}

TEST(ExploreResult, FrontsAndBestAreThoseOfBruteForce) {
  const Space space = space_of({numbers("a", 5), numbers("b", 6)});
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const ExplorationResult result = random_result(space, seed, 2 + seed % 10);
    const Json json = explore_json(space, result, {"exhaustive", seed, 0, ""}, {});
    auto wanted = space.fronts.begin();
    for (const auto& [name, front] : json.at("fronts").items()) {
      std::set<DesignId> brute;
      for (const DesignResult& one : result.results) {
        const auto beats = [&](const DesignResult& other) {
          return other.feasible &&
                 dominates(objective_values(other, *wanted), objective_values(one, *wanted));
        };
        if (one.feasible && std::none_of(result.results.begin(), result.results.end(), beats))
          brute.insert(one.id);
      }
      std::set<DesignId> found;
      for (const Json& design : front.at("designs"))
        found.insert(design.at("id").get<DesignId>());
      EXPECT_EQ(found, brute) << name << " of seed " << seed;
      ++wanted;
    }
    for (const DesignResult& one : result.results) {
      if (one.feasible) {
        EXPECT_LE(json.at("best").at("training").at("energy").at("energy_pj").get<double>(),
                  one.runs[1].energy_pj);
      }
    }
  }
}

TEST(ExploreResult, LatencyIsInSecondsWhereThereIsAFrequency) {
  ExplorationResult result = toy_result();
  for (DesignResult& design : result.results)
    design.frequency_hz = design.id < 4 ? 1e9 : 1e6; // the faster in cycles are slower
  const Json json = explore_json(toy_space(), result, {"exhaustive", 1, 0, ""}, {});
  const Json& best = json.at("best").at("inference").at("latency");
  EXPECT_EQ(best.at("id"), 2);
  EXPECT_DOUBLE_EQ(best.at("latency_seconds").get<double>(), 300e-9);
}

TEST(ExploreResult, NoDesignIsCalledBestWhereABetterOneMayHaveBeenSkipped) {
  ExplorationResult result = toy_result();
  result.skipped_by_bound = 1;
  const Json json = explore_json(toy_space(), result, {"halving", 1, 0, ""}, {});
  const Json& best = json.at("best");
  EXPECT_TRUE(best.at("training").contains("area"));   // a front asks for it
  EXPECT_FALSE(best.at("inference").contains("area")); // none does
  EXPECT_FALSE(best.at("training").contains("memory"));
  EXPECT_EQ(best.at("inference").at("energy"), toy_json().at("best").at("inference").at("energy"));
}

TEST(ExploreResult, TenThousandRowsOfTwoRunsTakeLessThanTwoMegabytes) {
  const Space space = space_of({numbers("simd_units", 4), numbers("lanes", 4), numbers("memory", 5),
                                numbers("register_kb", 5), numbers("x", 5), numbers("y", 5)});
  ASSERT_EQ(space.size(), 10'000U);
  ExplorationResult result = random_result(space, 3, 1'000'000'000);
  for (DesignResult& design : result.results) {
    design.area_mm2 = random_unit(1, design.id);
    design.peak_power_w = random_unit(2, design.id);
    for (StepFigures& run : design.runs)
      run.energy_pj = 1e12 * random_unit(3, design.id);
  }
  const Json json = explore_json(space, result, {"exhaustive", 1, 0, ""}, {});
  EXPECT_EQ(json.at("rows").size(), 10'000U);
  EXPECT_LT(json_text(json).size(), 2'000'000U);
}

TEST(ExploreResult, LargeTablesKeepFrontsAndASampleOfTheSeed) {
  const Space space = space_of({numbers("a", 200), numbers("b", 150)});
  const ExplorationResult result = random_result(space, 5, 1'000'000);
  const auto made = [&](std::uint64_t seed) {
    return explore_json(space, result, {"exhaustive", seed, 0, ""}, {});
  };
  const Json json = made(1);
  EXPECT_EQ(violations(json), std::vector<std::string>{});
  std::set<DesignId> rows;
  for (const Json& row : json.at("rows"))
    rows.insert(row.at(0).get<DesignId>());
  EXPECT_GE(rows.size(), kMaxExploreRows);
  EXPECT_EQ(rows.size() + json.at("rows_left_out").get<std::size_t>(), 30'000U);
  for (const auto& [name, front] : json.at("fronts").items()) {
    for (const Json& design : front.at("designs"))
      EXPECT_TRUE(rows.contains(design.at("id").get<DesignId>()));
  }
  EXPECT_EQ(made(1), json);
  EXPECT_NE(made(2).at("rows"), json.at("rows"));
}

TEST(ExploreResult, TableHasFrontsBestDesignsAndReasons) {
  const std::string table = exploration_table(toy_json());
  for (const char* part :
       {"6 evaluated, 2 infeasible", "Front of training: latency, energy: 2 designs",
        "Best for inference", "area # mm2 is above # mm2", "small", "0.5"})
    EXPECT_NE(table.find(part), std::string::npos) << part << "\n" << table;
}

TEST(ExploreComparison, CountsWhatEachFrontDominates) {
  const Space space = space_of({numbers("a", 5), numbers("b", 6)});
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const std::array sides{random_result(space, seed, 20), random_result(space, seed + 999, 20)};
    const Json one = explore_json(space, sides[0], {"nsga2", 1, 0, ""}, {});
    const Json two = explore_json(space, sides[1], {"lhs", 1, 0, ""}, {});
    const Json json =
        compared({&one, "training", "one"}, {&two, "training", "two"}).at("pairs").at(0);
    EXPECT_EQ(json.at("fronts").size(), 2U);
    const Json& front = json.at("fronts").at("latency, energy");
    const auto points = [](const Json& designs) {
      std::vector<Objectives> found;
      for (const Json& design : designs)
        found.push_back(
            {design.at("latency_cycles").get<double>(), design.at("energy_pj").get<double>()});
      return found;
    };
    const auto a = points(one.at("fronts").at("training: latency, energy").at("designs"));
    const auto b = points(two.at("fronts").at("training: latency, energy").at("designs"));
    const auto beaten = [](const auto& some, const auto& others) {
      return std::count_if(some.begin(), some.end(), [&](const Objectives& point) {
        return std::any_of(others.begin(), others.end(),
                           [&](const Objectives& other) { return dominates(other, point); });
      });
    };
    EXPECT_EQ(front.at("a").at("dominated"), beaten(a, b));
    EXPECT_EQ(front.at("b").at("dominated"), beaten(b, a));
    // Of all designs, as the box of one exploration is.
    Objectives worst(2, 0);
    for (const ExplorationResult& side : sides) {
      for (const DesignResult& design : side.results) {
        const Objectives values =
            design.feasible ? objective_values(design, space.fronts[1]) : Objectives(2, 0);
        for (std::size_t i = 0; i < 2; ++i)
          worst[i] = std::max(worst[i], values[i]);
      }
    }
    EXPECT_EQ(front.at("reference"), Json(worst));
    const Json itself =
        compared({&one, "training", "one"}, {&one, "training", "one"}).at("pairs").at(0);
    EXPECT_EQ(itself.at("fronts").at("latency, energy").at("a").at("hypervolume"),
              one.at("fronts").at("training: latency, energy").at("hypervolume"));
    if (front.at("a").at("dominated") == a.size()) { // then B's volume is the larger
      EXPECT_GT(front.at("b").at("hypervolume"), front.at("a").at("hypervolume"));
    }
  }
}

TEST(ExploreComparison, SaysWhatTheBestDesignOfARunComesToInTheOther) {
  const Json json = toy_json();
  const Json both =
      compared({&json, "inference", "toy: inference"}, {&json, "training", "toy: training"});
  const Json& pair = both.at("pairs").at(0);
  const Json& energy = pair.at("best").at(1);
  EXPECT_EQ(energy.at("objective"), "energy");
  EXPECT_EQ(energy.at("b_over_a"), 4);
  EXPECT_EQ(energy.at("best_of_a_in_b"), 1);
  EXPECT_EQ(pair.at("fronts").at("latency, energy").at("shared"), 2);
  const std::string table = comparison_table(both);
  for (const char* part : {"A: toy: inference", "latency, energy", "4.000x", "pe 2, kind large"})
    EXPECT_NE(table.find(part), std::string::npos) << part << "\n" << table;
}

// Latencies in seconds are compared in a box in seconds, others in one in cycles.
TEST(ExploreComparison, BoxesHaveTheUnitOfTheComparison) {
  ExplorationResult with_frequency = toy_result();
  for (DesignResult& design : with_frequency.results)
    design.frequency_hz = 1e6;
  const Json seconds = explore_json(toy_space(), with_frequency, {"lhs", 1, 0, ""}, {});
  const Json cycles = toy_json();
  const auto reference = [](const Json& a, const Json& b) {
    const Json both = compared({&a, "inference", "a"}, {&b, "inference", "b"});
    const Json& front = both.at("pairs").at(0).at("fronts").at("latency, energy");
    return front.at("latency_in").get<std::string>() + " " + json_text(front.at("reference"));
  };
  EXPECT_EQ(reference(seconds, seconds), "seconds [0.0006,2000.0]");
  EXPECT_EQ(reference(seconds, cycles), "cycles [600.0,2000.0]");
}

TEST(ExploreComparison, RefusesRunsThatAreNotThere) {
  Json json = toy_json();
  const auto compare = [&](const char* run) {
    return compared({&json, "training", "toy"}, {&json, run, "other"});
  };
  try {
    compare("finetuning");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "other: has no run 'finetuning'");
  }
  json["fronts"].erase("inference: latency, energy");
  EXPECT_THROW(compare("inference"), InputError);
}

} // namespace MONET_TEST_FILE
} // namespace monet::test
