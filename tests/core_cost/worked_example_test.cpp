// The layer that docs/explanation/core-cost.md works out by hand, from the files it names.
#include "monet/core_cost/core_cost.hpp"
#include "monet/core_cost/layers.hpp"
#include "monet/core_cost/mapping_file.hpp"
#include "monet/hardware/read_hardware.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace monet {
namespace {

const std::string kFolder = std::string(MONET_SOURCE_DIR) + "/examples/core/";

CoreCost cost_of(const CoreCostOptions& options) {
  Core core = read_core(kFolder + "two_by_two.yaml");
  const MappingFile mapping = read_mapping(kFolder + "dataflow.yaml");
  for (const auto& [dim, unrollings] : mapping.entries.at(0).spatial_mapping)
    core.dataflow.push_back(unrollings);
  const Layer layer = read_layers(kFolder + "product.yaml").at(0);
  return core_cost(layer.problem, core, options);
}

/// pJ by memory and operand.
std::map<std::pair<std::string, std::size_t>, double> energies(const CoreCost& cost) {
  std::map<std::pair<std::string, std::size_t>, double> all;
  for (const LevelEnergy& level : cost.levels)
    all[{level.memory, level.operand}] = level.energy.value;
  return all;
}

TEST(WorkedExample, ZigZag) {
  CoreCostOptions options;
  options.model = ModelChoices::zigzag_3_8();
  const CoreCost cost = cost_of(options);
  EXPECT_EQ(
      energies(cost),
      (std::map<std::pair<std::string, std::size_t>, double>{
          {{"register", 0}, 160}, {{"sram", 0}, 96}, {{"sram", 1}, 160}, {{"sram", 2}, 160}}));
  EXPECT_EQ(cost.energy().value, 608);
  EXPECT_EQ(cost.parts.ideal_temporal, 16);
  EXPECT_EQ(cost.parts.stall, 14);
  EXPECT_EQ(cost.parts.onload, 0);
  EXPECT_EQ(cost.parts.offload, 1);
  EXPECT_EQ(cost.effort.space, 12);
  ASSERT_EQ(cost.temporal.order.size(), 4U);
  EXPECT_EQ(cost.temporal.order[0].dim, 0U); // C
  EXPECT_EQ(cost.temporal.order[1].dim, 2U); // K
}

TEST(WorkedExample, Default) {
  CoreCostOptions options;
  options.fixed_dataflow = true;
  const CoreCost cost = cost_of(options);
  EXPECT_EQ(
      energies(cost),
      (std::map<std::pair<std::string, std::size_t>, double>{
          {{"register", 0}, 192}, {{"sram", 0}, 272}, {{"sram", 1}, 160}, {{"sram", 2}, 40}}));
  EXPECT_EQ(cost.energy().value, 696);
  EXPECT_EQ(cost.parts.stall, 10);
  EXPECT_EQ(cost.parts.total(), 27);
  options.objective = Objective::energy;
  EXPECT_EQ(cost_of(options).energy().value, 576);
}

} // namespace
} // namespace monet
