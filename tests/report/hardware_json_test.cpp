#include "monet/hardware/read_hardware.hpp"
#include "monet/report/result.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace monet {
namespace {

const std::string kCore = R"(name: c
frequency_hz: 1e9
technology_nm: 45
memories:
  rf:
    size: 1024
    auto_cost_extraction: true
    operands: [O]
    ports: [{name: p, type: read_write, bandwidth_max: 32, allocation: ["O, tl", "O, fl", "O, th", "O, fh"]}]
    served_dimensions: []
  sram:
    size: 8388608
    auto_cost_extraction: true
    operands: [I1, I2, O]
    ports: [{name: p, type: read_write, bandwidth_max: 1024, allocation: ["I1, tl", "I2, tl", "O, tl", "O, fl", "I1, fh", "I2, fh", "O, th", "O, fh"]}]
    served_dimensions: [D1]
  dram:
    size: 8e9
    dram: lpddr5
    operands: [I1, I2, O]
    ports: [{name: p, type: read_write, bandwidth_max: 64, allocation: ["I1, tl", "I2, tl", "O, tl", "O, fl"]}]
    served_dimensions: [D1]
operational_array: {auto_cost_extraction: true, format: int8, dimensions: [D1], sizes: [16]}
)";

TEST(HardwareJson, NamesEveryPartAndHowItWasPriced) {
  const Chip chip = parse_chip(kCore, "c.yaml", {});
  const nlohmann::ordered_json json = hardware_json(chip);
  EXPECT_EQ(json["area_mm2"], chip.area_mm2());
  EXPECT_EQ(json["peak_power_w"], *peak_power_w(chip));
  double area = json["cores"][0]["array"]["area_mm2"].get<double>() * 16;
  for (const auto& memory : json["cores"][0]["memories"])
    area += memory["area_mm2"].get<double>() * memory["instances"].get<double>();
  EXPECT_NEAR(area, chip.area_mm2(), 1e-12);
  const auto& model = json["cores"][0]["memories"][1]["model"];
  EXPECT_GT(model["macros"], 1);
  EXPECT_EQ(model["macro_bits"].get<double>() * model["macros"].get<double>(), 8388608);
  // 1 MiB at 1024 bits and 45 nm is a point of the table.
  EXPECT_NEAR(model["table"]["read_energy_pj"].get<double>(), 582.501, 1e-9);
  EXPECT_GE(model["one_array"]["area_mm2"], json["cores"][0]["memories"][1]["area_mm2"]);
  EXPECT_EQ(json["cores"][0]["memories"][0]["model"]["kind"], "registers");
  EXPECT_FALSE(json["cores"][0]["memories"][0]["model"].contains("table"));
  EXPECT_EQ(json["cores"][1]["memories"][0]["model"]["kind"], "lpddr5");
  const std::string table = hardware_table(json);
  EXPECT_NE(table.find("lpddr5, 9.8 pJ/bit"), std::string::npos);
  EXPECT_NE(table.find("peak power"), std::string::npos);
}

TEST(HardwareJson, IsNullWithoutAFrequency) {
  std::string text = kCore;
  text.erase(text.find("frequency_hz"), std::string("frequency_hz: 1e9\n").size());
  EXPECT_TRUE(hardware_json(parse_chip(text, "c.yaml", {}))["peak_power_w"].is_null());
}

} // namespace
} // namespace monet
