// Random budgets of memory on networks and chips, asked for one by one as users do: plans are
// within them and repeated by the command that is printed, larger budgets have no worse plans, and
// the joint search finds nothing worse than its parts do alone.
#include "level.hpp"
#include "run_monet.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace monet::test {
namespace {

using Json = nlohmann::json;

constexpr int kBudgets = 25;

struct Place {
  std::string name;
  std::string network;
  std::string chip;
};

/// What a step comes to.
struct Way {
  std::string name;
  std::int64_t peak_bytes = 0;
  double latency = 0;
};

Way way_of(const std::string& name, const Json& figures) {
  return {name, figures.at("peak_memory_bytes").get<std::int64_t>(),
          figures.at("latency_cycles").get<double>()};
}

class Budgets : public ::testing::TestWithParam<Place> {
protected:
  /// Little effort: what holds does not depend on it.
  Ran search(const std::string& kind, std::vector<std::string> more) const {
    const bool shipped = GetParam().network.starts_with("data/");
    const std::string network =
        shipped ? repository(GetParam().network) : small_network(GetParam().network);
    std::vector<std::string> all{
        "optimise",   kind,    "--hardware", repository("data/hardware/" + GetParam().chip),
        "--workload", network, "--training", repository("data/training/adam.yaml"),
        "--json",     "-"};
    if (shipped)
      more.insert(more.end(), {"--batch", "1"});
    if (kind == "joint")
      more.insert(more.end(), {"--levels", "2", "--rounds", "1"});
    if (kind != "checkpointing")
      more.insert(more.end(), {"--evaluations", "4"});
    all.insert(all.end(), more.begin(), more.end());
    return run_monet(all);
  }

  /// Budgets of random sizes, the largest first.
  static std::vector<std::int64_t> budgets(std::int64_t whole) {
    std::mt19937_64 random(1);
    std::vector<std::int64_t> all;
    for (int i = 0; i < kBudgets; ++i)
      all.push_back(whole * 6 / 10 + static_cast<std::int64_t>(random() % (whole / 2)));
    std::sort(all.rbegin(), all.rend());
    return all;
  }

  /// What groups, cores, and recomputation of given amounts of what is stored come to alone.
  std::vector<Way> parts() const {
    std::vector<Way> all;
    for (const char* kind : {"fusion", "allocation"}) {
      const Ran ran = search(kind, {});
      EXPECT_EQ(ran.code, 0) << ran.err;
      for (const Json& figures : Json::parse(ran.out).at("compared"))
        if (figures.contains("peak_memory_bytes"))
          all.push_back(way_of(kind, figures));
    }
    for (const char* share : {"20%", "40%", "60%", "80%"}) {
      const Ran ran =
          search("checkpointing", {"--memory", "stored", "--budget", share, "--priority", "order"});
      EXPECT_EQ(ran.code, 0) << ran.err;
      for (const Json& figures : Json::parse(ran.out).at("compared"))
        all.push_back(way_of(std::string("stored ") + share, figures));
    }
    return all;
  }
};

Json repeated(const std::string& repeat, const std::string& out) {
  std::istringstream words(repeat);
  std::vector<std::string> command{std::istream_iterator<std::string>(words), {}};
  command.erase(command.begin()); // monet
  command.insert(command.end(), {"--json", out});
  const Ran ran = run_monet(command);
  EXPECT_EQ(ran.code, 0) << ran.err;
  return parse_file(out);
}

TEST_P(Budgets, JointPlansAreWithinMonotoneRepeatedAndNoWorseThanTheParts) {
  MONET_FROM_LEVEL(slow);
  const Scratch scratch;
  std::vector<Way> all = parts();
  const Ran free = search("joint", {});
  ASSERT_EQ(free.code, 0) << free.err;
  const Json unlimited = Json::parse(free.out).at("compared");
  double before = unlimited.back().at("latency_cycles").get<double>();
  for (const Way& part : all)
    EXPECT_LE(before, part.latency) << part.name;
  int found = 0;
  for (const std::int64_t budget :
       budgets(unlimited.front().at("peak_memory_bytes").get<std::int64_t>())) {
    SCOPED_TRACE(budget);
    const Ran ran =
        search("joint", {"--budget", std::to_string(budget), "--plan-out", scratch / "plan"});
    double latency = std::numeric_limits<double>::infinity();
    if (ran.code == 0) {
      ++found;
      const Json json = Json::parse(ran.out);
      const Json& both = json.at("compared").back();
      latency = both.at("latency_cycles").get<double>();
      EXPECT_LE(both.at("peak_memory_bytes").get<std::int64_t>(), budget);
      const Json again = repeated(json.at("repeat").get<std::string>(), scratch / "repeated.json");
      for (const char* figure : {"latency_cycles", "energy_pj", "peak_memory_bytes"})
        EXPECT_EQ(again.at(figure), both.at(figure)) << figure;
    } else {
      EXPECT_EQ(ran.code, 4) << ran.err;
    }
    EXPECT_GE(latency, before) << "a larger budget has a worse plan";
    before = latency;
    const Ran alone =
        search("checkpointing", {"--budget", std::to_string(budget), "--priority", "order"});
    std::vector<Way> ways = all;
    if (alone.code == 0)
      for (const Json& figures : Json::parse(alone.out).at("compared"))
        ways.push_back(way_of("checkpointing", figures));
    for (const Way& way : ways) {
      if (way.peak_bytes <= budget) {
        EXPECT_LE(latency, way.latency) << way.name << " at " << way.peak_bytes;
      }
    }
  }
  EXPECT_GT(found, kBudgets / 4);
  EXPECT_LT(found, kBudgets); // some are too small
}

TEST_P(Budgets, CheckpointingPlansAreWithinAndMonotone) {
  MONET_FROM_LEVEL(slow);
  const Ran free = search("checkpointing", {"--budget", "100%"});
  ASSERT_EQ(free.code, 0) << free.err;
  double before = 0;
  bool infeasible = false;
  int found = 0;
  for (const std::int64_t budget :
       budgets(Json::parse(free.out).at("unconstrained_bytes").get<std::int64_t>())) {
    SCOPED_TRACE(budget);
    const Ran ran = search("checkpointing", {"--budget", std::to_string(budget)});
    infeasible = infeasible || ran.code == 4;
    if (infeasible) {
      EXPECT_EQ(ran.code, 4) << "a larger budget has no plan";
      continue;
    }
    ASSERT_EQ(ran.code, 0) << ran.err;
    ++found;
    const Json json = Json::parse(ran.out);
    EXPECT_LE(json.at("peak_bytes").get<std::int64_t>(), budget);
    EXPECT_GE(json.at("best").get<double>(), before) << "a larger budget has a worse plan";
    before = json.at("best").get<double>();
  }
  EXPECT_GT(found, kBudgets / 4);
  EXPECT_LT(found, kBudgets);
}

INSTANTIATE_TEST_SUITE_P(
    Networks, Budgets,
    ::testing::Values(Place{"gpt_quad", "data/workload/gpt2_nano.onnx", "tpu_like_quad_core.yaml"},
                      Place{"gpt_edge", "data/workload/gpt2_nano.onnx", "edge_tpu.yaml"},
                      Place{"mixer_quad", "mlp_mixer", "tpu_like_quad_core.yaml"},
                      Place{"mixer_edge", "mlp_mixer", "edge_tpu.yaml"}),
    [](const auto& place) { return place.param.name; });

} // namespace
} // namespace monet::test
