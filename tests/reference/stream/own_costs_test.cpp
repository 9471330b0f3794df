// stream-coala with our own core costs against the two complete runs of the reference.
#include "core_cost/stream_cores.hpp"
#include "reference/stream/tiles_networks.hpp"

#include "monet/base/errors.hpp"
#include "monet/reference/stream_costs.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace monet::stream {
namespace {

Chip quad() {
  const std::map<std::string, std::string_view> cores{{"tpu.yaml", test::kArrayCore},
                                                      {"pool.yaml", test::kPoolingCore},
                                                      {"simd.yaml", test::kLanes},
                                                      {"dram.yaml", test::kDram}};
  return parse_chip(R"(
name: tpu_like_quad_core
cores: {0: tpu.yaml, 1: tpu.yaml, 2: tpu.yaml, 3: tpu.yaml, 4: pool.yaml, 5: simd.yaml}
offchip_core: dram.yaml
core_connectivity: ["0, 1", "1, 2", "2, 3", "3, 0", "0, 4", "1, 4", "2, 4", "3, 4", "0, 5", "1, 5", "2, 5", "3, 5"]
bandwidth: 32
unit_energy_cost: 0
)",
                    "quad.yaml", [&](const std::string& name, const SourceLoc&) {
                      return FileText{name, std::string(cores.at(name))};
                    });
}

Workload first_layers(const Chip& chip, StreamOptions::Mode mode,
                      const MappingFile& mapping = monet::testing::quad_mapping()) {
  StreamOptions options;
  options.mode = mode;
  return make_stream_workload(monet::testing::resnet18(1), chip, mapping, options);
}

TEST(StreamOwnCosts, the_published_runs_to_the_cycle) {
  const Chip chip = quad();
  const Workload alone = first_layers(chip, StreamOptions::Mode::layer_by_layer);
  const Result one_by_one = schedule(alone, chip, core_costs(alone, chip));
  EXPECT_EQ(one_by_one.latency, 2806845);
  EXPECT_NEAR(one_by_one.energy.total_pj(), 1346699522.432, 1);
  const Workload rows = first_layers(chip, StreamOptions::Mode::fused);
  const Result fused = schedule(rows, chip, core_costs(rows, chip));
  EXPECT_EQ(fused.latency, 3016663);
  EXPECT_NEAR(fused.energy.total_pj(), 652763437.696, 1);
  EXPECT_EQ(fused.events.size(), 4051U);
}

TEST(StreamOwnCosts, tiles_of_a_layer_on_equal_cores_cost_the_same) {
  const Chip chip = quad();
  const Workload workload = first_layers(chip, StreamOptions::Mode::fused);
  const Costs costs = core_costs(workload, chip);
  ASSERT_EQ(costs.of_tile.size(), workload.tiles.size());
  std::map<std::uint32_t, TileCost> by_layer;
  for (std::uint32_t t = 0; t < workload.tiles.size(); ++t) {
    const auto [known, added] = by_layer.emplace(workload.tiles[t].layer, costs.of(t));
    EXPECT_EQ(known->second, costs.of(t));
  }
}

TEST(StreamOwnCosts, the_mapping_unrolls_where_the_core_has_no_dataflow) {
  const Chip chip = quad();
  Chip free = chip;
  for (std::size_t core = 0; core < 4; ++core)
    free.cores[core].dataflow.clear();
  MappingFile mapping = monet::testing::quad_mapping();
  const auto costs_on = [&](const Chip& on, std::int64_t channels) {
    for (MappingEntry& entry : mapping.entries)
      entry.spatial_mapping = {{"D1", {{"K", channels}}}, {"D2", {{"C", 32}}}};
    const Workload layers = first_layers(on, StreamOptions::Mode::layer_by_layer, mapping);
    return core_costs(layers, on).classes;
  };
  EXPECT_EQ(costs_on(free, 32), costs_on(chip, 2));
  EXPECT_GT(costs_on(free, 2).front().runtime, costs_on(chip, 2).front().runtime);
}

// A tile needs a memory that holds at least the slices of one step.
TEST(StreamOwnCosts, name_the_layer_that_fits_nowhere) {
  Chip chip = quad();
  for (std::size_t core = 0; core < 4; ++core)
    chip.cores[core].memories.back().size = {64};
  const Workload workload = first_layers(chip, StreamOptions::Mode::layer_by_layer);
  try {
    core_costs(workload, chip);
    FAIL();
  } catch (const InfeasibleError& error) {
    EXPECT_NE(std::string(error.what()).find("layer 0 '"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("bits of memory 'sram_2MB', which holds 64"),
              std::string::npos)
        << error.what();
  }
}

} // namespace
} // namespace monet::stream
