#include "monet/hardware/read_hardware.hpp"

#include <gtest/gtest.h>

namespace monet {
namespace {

Chip published(const std::string& name) {
  return read_chip(std::string(MONET_SOURCE_DIR) + "/tests/fixtures/hardware/published/" + name);
}

double area_of(const Core& core, const std::string& memory) {
  for (const Memory& m : core.memories) {
    if (m.name == memory)
      return m.area_mm2 * static_cast<double>(instances(core, m));
  }
  return 0;
}

double array_area(const Core& core) {
  return core.array_area_mm2 * static_cast<double>(core.lanes());
}

// The ratios of model to chip that docs/hardware.md shows. They are far from 1 where the chip has
// what the model leaves out; a change of the model that moves them is to be seen there.
TEST(PublishedChips, Eyeriss) {
  const Chip chip = published("eyeriss_v1.yaml");
  EXPECT_NEAR(chip.area_mm2() / 12.25, 0.20, 0.01);
  EXPECT_NEAR(peak_power_w(chip).value() / 0.278, 0.71, 0.01);
}

TEST(PublishedChips, FirstTpu) {
  const Chip chip = published("tpu_v1.yaml");
  const Core& core = chip.cores[0];
  constexpr double kDie = 331; // mm2, an upper bound; parts of it as in the paper's floor plan
  EXPECT_NEAR(chip.area_mm2() / kDie, 0.30, 0.01);
  EXPECT_NEAR(area_of(core, "unified_buffer") / (0.29 * kDie), 0.71, 0.01);
  EXPECT_NEAR(area_of(core, "accumulators") / (0.06 * kDie), 0.60, 0.01);
  EXPECT_NEAR((array_area(core) + area_of(core, "weights")) / (0.24 * kDie), 0.24, 0.01);
  EXPECT_NEAR(peak_power_w(chip).value() / 40, 0.75, 0.01);
}

} // namespace
} // namespace monet
