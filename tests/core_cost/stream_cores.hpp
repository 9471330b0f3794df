// The cores of Stream's tpu_like_quad_core, as its files have them: a weight-stationary array, a
// pooling core, lanes, and the off-chip memory.
#pragma once

#include "monet/hardware/read_hardware.hpp"

#include <string_view>

namespace monet::test {

inline constexpr std::string_view kArrayCore = R"(
name: tpu_like
memories:
  rf_128B: {size: 1024, r_bw: 8, w_bw: 8, r_cost: 0.095, w_cost: 0.095, area: 0, r_port: 1, w_port: 1, rw_port: 0,
    latency: 1, operands: [I2], ports: [{fh: w_port_1, tl: r_port_1}], served_dimensions: []}
  rf_2B: {size: 16, r_bw: 16, w_bw: 16, r_cost: 0.021, w_cost: 0.021, area: 0, r_port: 2, w_port: 2, rw_port: 0,
    latency: 1, operands: [O], ports: [{fh: w_port_1, tl: r_port_1, fl: w_port_2, th: r_port_2}], served_dimensions: [D2]}
  sram_2MB: {size: 16777216, r_bw: 2048, w_bw: 2048, r_cost: 416.16, w_cost: 378.4, area: 0, r_port: 1, w_port: 1,
    rw_port: 0, latency: 1, min_r_granularity: 64, min_w_granularity: 64, operands: [I1, I2, O],
    ports: [{fh: w_port_1, tl: r_port_1}, {fh: w_port_1, tl: r_port_1},
            {fh: w_port_1, tl: r_port_1, fl: w_port_1, th: r_port_1}], served_dimensions: [D1, D2]}
operational_array: {unit_energy: 0.04, unit_area: 1, dimensions: [D1, D2], sizes: [32, 32]}
dataflows: {D1: ["K, 32"], D2: ["C, 32"]}
)";

inline constexpr std::string_view kPoolingCore = R"(
name: pooling
memories:
  sram_128KB: {size: 1048576, r_bw: 576, w_bw: 512, r_cost: 60, w_cost: 75, area: 0, r_port: 1, w_port: 1, rw_port: 0,
    latency: 1, operands: [I1, I2, O],
    ports: [{fh: w_port_1, tl: r_port_1}, {fh: w_port_1, tl: r_port_1},
            {fh: w_port_1, tl: r_port_1, fl: w_port_1, th: r_port_1}], served_dimensions: [D1, D2, D3]}
operational_array: {unit_energy: 0.1, unit_area: 0.01, dimensions: [D1, D2, D3], sizes: [3, 3, 8]}
dataflows: {D1: ["FX, 3"], D2: ["FY, 3"], D3: ["K, 8"]}
)";

inline constexpr std::string_view kLanes = R"(
name: simd
memories:
  sram_128KB_2rw: {size: 1048576, r_bw: 512, w_bw: 512, r_cost: 60, w_cost: 75, area: 0, r_port: 0, w_port: 0,
    rw_port: 2, latency: 1, operands: [I1, I2, O],
    ports: [{fh: rw_port_1, tl: rw_port_2}, {fh: rw_port_1, tl: rw_port_2},
            {fh: rw_port_1, tl: rw_port_2, fl: rw_port_1, th: rw_port_2}], served_dimensions: [D1]}
operational_array: {unit_energy: 0.1, unit_area: 0.01, dimensions: [D1], sizes: [64]}
dataflows: {D1: ["K, 64"]}
)";

inline constexpr std::string_view kDram = R"(
name: offchip
memories:
  dram: {size: 10000000000, r_bw: 64, w_bw: 64, r_cost: 1000, w_cost: 1000, area: 0, r_port: 0, w_port: 0, rw_port: 1,
    latency: 1, operands: [I1, I2, O],
    ports: [{fh: rw_port_1, tl: rw_port_1}, {fh: rw_port_1, tl: rw_port_1},
            {fh: rw_port_1, tl: rw_port_1, fl: rw_port_1, th: rw_port_1}], served_dimensions: [D1, D2]}
operational_array: {unit_energy: 0, unit_area: 0, dimensions: [D1, D2], sizes: [1, 1]}
)";

inline Core array_core() {
  return parse_core(kArrayCore, "tpu_like.yaml");
}

inline Core pooling_core() {
  return parse_core(kPoolingCore, "pooling.yaml");
}

inline Core lanes() {
  return parse_core(kLanes, "simd.yaml");
}

inline Core dram() {
  return parse_core(kDram, "offchip.yaml");
}

} // namespace monet::test
