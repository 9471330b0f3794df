// Systems on which the reference scheduler was run, figure by figure; made without files.
#pragma once

#include "monet/hardware/read_hardware.hpp"

#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

namespace monet::testing {

/// A memory with one port to read and one to write, or one for both.
inline std::string stream_memory(const std::string& name, std::int64_t bits, int read, int write,
                                 double read_pj, double write_pj, const std::string& operands,
                                 const std::string& serves, bool one_port = false) {
  const char* in = one_port ? "rw_port_1" : "w_port_1";
  const char* out = one_port ? "rw_port_1" : "r_port_1";
  std::string ports;
  for (const char* operand : {"I1", "I2", "O"}) {
    if (operands.find(operand) == std::string::npos)
      continue;
    ports += fmt::format("{}{{fh: {}, tl: {}", ports.empty() ? "" : ", ", in, out);
    ports += operand == std::string("O") ? fmt::format(", fl: {}, th: {}}}", in, out) : "}";
  }
  return fmt::format(
      "  {}: {{size: {}, r_bw: {}, w_bw: {}, r_cost: {}, w_cost: {}, area: 0, r_port: {}, w_port: "
      "{}, rw_port: {}, latency: 1, operands: [{}], served_dimensions: [{}], ports: [{}]}}\n",
      name, bits, read, write, read_pj, write_pj, one_port ? 0 : 1, one_port ? 0 : 1,
      one_port ? 1 : 0, operands, serves, ports);
}

inline std::string stream_core(const std::string& name, const std::string& memories,
                               const std::string& dims, const std::string& sizes) {
  return fmt::format("name: {}\nmemories:\n{}operational_array: {{unit_energy: 0.04, unit_area: 1, "
                     "dimensions: [{}], sizes: [{}]}}\n",
                     name, memories, dims, sizes);
}

/// An array of 32 x 32 below one memory of so many bits.
inline std::string tpu_core(std::int64_t bits) {
  std::string innermost = stream_memory("rf_2B", 16, 16, 16, 0.021, 0.021, "O", "D2");
  return stream_core(
      "tpu_like",
      stream_memory("rf_128B", 1024, 8, 8, 0.095, 0.095, "I2", "") + innermost +
          stream_memory("sram_2MB", bits, 2048, 2048, 416.16, 378.4, "I1, I2, O", "D1, D2"),
      "D1, D2", "32, 32");
}

inline std::string eyeriss_core() {
  const auto memory = [](const char* name, int bits, int width, double read, double write,
                         const char* operands, const char* serves) {
    return stream_memory(name, bits, width, width, read, write, operands, serves);
  };
  return stream_core("eyeriss_like",
                     memory("rf_64B_A", 512, 8, 1, 1.5, "I1", "") +
                         memory("rf_64B_W", 512, 8, 1, 1.5, "I2", "") +
                         memory("rf_16B", 128, 24, 1.5, 2, "O", "") +
                         memory("sram_8KB", 65536, 128, 10, 15, "O", "D1, D2") +
                         memory("sram_64KB", 524288, 128, 20, 25, "I2", "D1, D2") +
                         memory("sram_1M", 8388608, 384, 100, 130, "I1, O", "D1, D2"),
                     "D1, D2", "14, 12");
}

inline std::string simba_core() {
  const auto memory = [](const char* name, int bits, int width, double energy, const char* operands,
                         const char* serves) {
    return stream_memory(name, bits, width, width, energy, energy, operands, serves);
  };
  return stream_core("simba_chiplet",
                     memory("weight_registers", 512, 8, 0.08, "I2", "") +
                         memory("weight_buffer", 32768, 64, 0.5, "I2", "D3, D4") +
                         memory("accumulation_buffer", 3072, 192, 0.1, "O", "D3, D4") +
                         memory("input_buffer", 524288, 64, 7, "I1", "D3, D4") +
                         memory("global_buffer", 2097152, 1024, 10, "I1, I2, O", "D1, D2, D3, D4"),
                     "D1, D2, D3, D4", "4, 4, 8, 8");
}

inline std::string dram_core(int read, int write, double energy_pj,
                             std::int64_t bits = 10000000000) {
  return stream_core("offchip",
                     stream_memory("dram", bits, read, write, energy_pj, energy_pj, "I1, I2, O",
                                   "D1, D2", read == write),
                     "D1, D2", "0, 0");
}

struct StreamSystem {
  std::string array; ///< core file of cores 0 to arrays - 1
  int arrays = 4;
  bool helpers = true; ///< a pooling core and a vector core behind them
  std::string dram = dram_core(64, 64, 1000);
  std::vector<std::string> links; ///< "0, 1"; more than two cores: a bus
  std::string sharing;            ///< "0, 1"
  int bandwidth = 32;
  double unit_energy = 0;
};

inline Chip make_chip(const StreamSystem& system) {
  std::map<std::string, std::string> files{
      {"array.yaml", system.array},
      {"dram.yaml", system.dram},
      {"pooling.yaml", stream_core("pooling",
                                   stream_memory("sram_128KB", 1048576, 576, 512, 60, 75,
                                                 "I1, I2, O", "D1, D2, D3"),
                                   "D1, D2, D3", "3, 3, 8")},
      {"simd.yaml",
       stream_core("simd",
                   stream_memory("sram_128KB_2rw", 1048576, 512, 512, 60, 75, "I1, I2, O", "D1"),
                   "D1", "64")}};
  std::string text = "name: system\ncores:\n";
  for (int core = 0; core < system.arrays; ++core)
    text += fmt::format("  {}: array.yaml\n", core);
  if (system.helpers)
    text += fmt::format("  {}: pooling.yaml\n  {}: simd.yaml\n", system.arrays, system.arrays + 1);
  text += "offchip_core: dram.yaml\ncore_connectivity:\n";
  for (const std::string& link : system.links)
    text += "- " + link + "\n";
  text +=
      fmt::format("bandwidth: {}\nunit_energy_cost: {}\n", system.bandwidth, system.unit_energy);
  if (!system.sharing.empty())
    text += "core_memory_sharing:\n- " + system.sharing + "\n";
  return parse_chip(text, "system.yaml", [&](const std::string& name, const SourceLoc&) {
    return FileText{name, files.at(name)};
  });
}

/// A ring of four arrays, each linked with both helpers.
inline std::vector<std::string> quad_links() {
  return {"0, 1", "1, 2", "2, 3", "3, 0", "0, 4", "1, 4",
          "2, 4", "3, 4", "0, 5", "1, 5", "2, 5", "3, 5"};
}

inline Chip tpu_quad(std::int64_t bits = 1 << 24, double unit_energy = 0) {
  return make_chip({.array = tpu_core(bits), .links = quad_links(), .unit_energy = unit_energy});
}

/// All cores on one bus, reads and writes of the off-chip memory apart.
inline Chip tpu_bus() {
  return make_chip({.array = tpu_core(1 << 24),
                    .dram = dram_core(64, 32, 1000),
                    .links = {"0, 1, 2, 3, 4, 5"},
                    .bandwidth = 64,
                    .unit_energy = 0.25});
}

inline Chip eyeriss(std::vector<std::string> links) {
  return make_chip({.array = eyeriss_core(), .links = std::move(links)});
}

/// Its file closes the ring at core 1.
inline Chip eyeriss_quad() {
  std::vector<std::string> links = quad_links();
  links[3] = "3, 1";
  return eyeriss(links);
}

inline Chip simba(int cores, std::vector<std::string> links, const std::string& sharing = "") {
  return make_chip({.array = simba_core(),
                    .arrays = cores,
                    .helpers = false,
                    .dram = dram_core(64, 64, 100),
                    .links = std::move(links),
                    .sharing = sharing});
}

/// A mesh, row by row; each core names its right and its lower neighbour.
inline Chip simba_mesh(int side) {
  std::vector<std::string> links;
  for (int core = 0; core < side * side; ++core) {
    if (core % side + 1 < side)
      links.push_back(fmt::format("{}, {}", core, core + 1));
    if (core + side < side * side)
      links.push_back(fmt::format("{}, {}", core, core + side));
  }
  return simba(side * side, links);
}

} // namespace monet::testing
