// `monet core --model zigzag-3.8` on random cores, layers and mappings, against what ZigZag 3.8.5
// found for them: 1 to 4 array dimensions, memories and ports shared in many ways, odd sizes,
// strides, groups, precisions, hints, temporal orders, even allocation. JSON is YAML, so that the
// descriptions go to files as they are.
#include "cli/run_monet.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <map>

namespace monet::test {
namespace MONET_TEST_FILE {

using OrderedJson = nlohmann::ordered_json; ///< memories are listed bottom-up

std::vector<std::string> arguments(const Scratch& scratch, const OrderedJson& entry,
                                   const std::string& objective) {
  const OrderedJson& options = entry.at("options");
  std::vector<std::string> all{"core", "--model",     "zigzag-3.8", "--json",
                               "-",    "--objective", objective};
  for (const char* name : {"hardware", "workload", "mapping"}) {
    all.push_back(std::string("--") + name);
    all.push_back(scratch.file(std::string(name) + ".yaml", entry.at(name).dump()));
  }
  all.insert(all.end(), {"--lpf-limit", std::to_string(options.at("lpf").get<int>())});
  all.insert(all.end(), {"--generated", std::to_string(options.at("nsm").get<int>())});
  all.insert(all.end(), {"--allocation", options.at("even").get<bool>() ? "even" : "uneven"});
  if (options.at("mix").get<bool>())
    all.emplace_back("--mixed");
  return all;
}

/// "K 4" per loop.
std::vector<std::string> order_of(const OrderedJson& layer) {
  std::vector<std::string> order;
  for (const OrderedJson& loop : layer.at("temporal_mapping"))
    order.push_back(loop.at(0).get<std::string>() + " " + std::to_string(loop.at(1).get<int>()));
  return order;
}

/// Loops per memory level, by operand.
std::map<std::string, std::vector<std::size_t>> cuts_of(const OrderedJson& layer) {
  std::map<std::string, std::vector<std::size_t>> cuts;
  for (const OrderedJson& operand : layer.at("operand_mapping")) {
    for (const OrderedJson& level : operand.at("levels"))
      cuts[operand.at("operand").get<std::string>()].push_back(level.at("loops").size());
  }
  return cuts;
}

std::vector<double> latency_of(const OrderedJson& layer) {
  const OrderedJson& parts = layer.at("latency");
  return {parts.at("ideal_temporal_cycles").get<double>(), parts.at("stall_cycles").get<double>(),
          parts.at("onload_cycles").get<double>(), parts.at("offload_cycles").get<double>()};
}

TEST(ZigZagCores, EqualToTheLastBit) {
  std::ifstream file(repository("tests/fixtures/zigzag/random_cores.json"));
  const OrderedJson cases = OrderedJson::parse(file);
  ASSERT_EQ(cases.size(), 48U);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    for (const auto& [objective, expected] : cases[i].at("expected").items()) {
      SCOPED_TRACE("case " + std::to_string(i) + " " + objective);
      const Scratch scratch;
      const Ran ran = run_monet(arguments(scratch, cases[i], objective));
      ASSERT_EQ(ran.code, 0) << ran.err;
      const OrderedJson found = OrderedJson::parse(ran.out);
      EXPECT_EQ(found.at("energy_pj").get<double>(), expected.at("energy_pj").get<double>());
      EXPECT_EQ(found.at("latency_cycles").get<double>(),
                expected.at("latency_cycles").get<double>());
      const OrderedJson& layers = found.at("layers");
      ASSERT_EQ(layers.size(), expected.at("layers").size());
      for (std::size_t l = 0; l < layers.size(); ++l) {
        const OrderedJson& e = expected.at("layers")[l];
        EXPECT_EQ(layers[l].at("name"), e.at("name"));
        EXPECT_EQ(layers[l].at("energy_pj").get<double>(), e.at("energy_pj").get<double>());
        EXPECT_EQ(latency_of(layers[l]), e.at("latency").get<std::vector<double>>());
        EXPECT_EQ(order_of(layers[l]), e.at("order").get<std::vector<std::string>>());
        EXPECT_EQ(cuts_of(layers[l]),
                  (e.at("cuts").get<std::map<std::string, std::vector<std::size_t>>>()));
      }
    }
  }
}

} // namespace MONET_TEST_FILE
} // namespace monet::test
