// Small cores and problems built by hand for the tests of this stage.
#pragma once

#include "monet/core_cost/core_cost.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace monet::test {

inline PortUse use(MemoryOperand operand, Direction direction) {
  return {operand, direction};
}

inline MemoryPort port(PortType type, std::int64_t bandwidth_min, std::int64_t bandwidth_max,
                       std::vector<PortUse> allocation) {
  return {"port", type, bandwidth_min, bandwidth_max, std::move(allocation)};
}

inline Memory memory(std::string name, std::int64_t bits, double pj,
                     std::vector<MemoryOperand> operands, std::vector<bool> serves,
                     std::vector<MemoryPort> ports) {
  Memory m;
  m.name = std::move(name);
  m.size = {bits};
  m.read_energy_pj = pj;
  m.write_energy_pj = pj;
  m.operands = std::move(operands);
  m.serves = std::move(serves);
  m.ports = std::move(ports);
  return m;
}

/// Figures of ZigZag's tpu_like example: 32x32 MACs, K on D1 and C on D2, with or without its DRAM
/// level.
inline Core tpu_like(bool dram) {
  using enum MemoryOperand;
  using enum Direction;
  using enum PortType;
  Core core;
  core.name = "tpu_like";
  core.mac_energy_pj = 0.04;
  core.array = {{"D1", 32}, {"D2", 32}};
  core.dataflow = {{{"K", 32}}, {{"C", 32}}};
  core.memories.push_back(
      memory("rf_128B", 1024, 0.095, {I2}, {false, false},
             {port(read, 8, 8, {use(I2, tl)}), port(write, 8, 8, {use(I2, fh)})}));
  core.memories.push_back(
      memory("rf_2B", 16, 0.021, {O}, {false, false},
             {port(read, 16, 16, {use(O, tl)}), port(read, 16, 16, {use(O, th)}),
              port(write, 16, 16, {use(O, fh)}), port(write, 16, 16, {use(O, fl)})}));
  Memory sram = memory("sram_2MB", 16777216, 416.16, {I1, O}, {true, true},
                       {port(read, 64, 2048, {use(I1, tl), use(O, tl), use(O, th)}),
                        port(write, 64, 2048, {use(I1, fh), use(O, fh), use(O, fl)})});
  sram.write_energy_pj = 378.4;
  if (!dram) { // then the weights need a place too
    sram.operands.push_back(I2);
    sram.ports[0].allocation.push_back(use(I2, tl));
    sram.ports[1].allocation.push_back(use(I2, fh));
  }
  core.memories.push_back(sram);
  if (dram) {
    Memory off = memory("dram", 10'000'000'000, 700, {I1, I2, O}, {true, true},
                        {port(read_write, 64, 64,
                              {use(I1, fh), use(I1, tl), use(I2, fh), use(I2, tl), use(O, fh),
                               use(O, tl), use(O, fl), use(O, th)})});
    off.write_energy_pj = 750;
    core.memories.push_back(off);
  }
  return core;
}

/// One MAC; a register for one 16-bit partial sum, and an sram of 16-bit words for everything.
inline Core one_mac() {
  using enum MemoryOperand;
  using enum Direction;
  using enum PortType;
  Core core;
  core.name = "one_mac";
  core.array = {{"D1", 1}};
  core.memories = {
      memory("register", 16, 1, {O}, {false},
             {port(read, 16, 16, {use(O, tl)}), port(read, 16, 16, {use(O, th)}),
              port(write, 16, 16, {use(O, fh)}), port(write, 16, 16, {use(O, fl)})}),
      memory("sram", 1 << 20, 10, {I1, I2, O}, {true},
             {port(read, 16, 16, {use(I1, tl), use(I2, tl), use(O, tl), use(O, th)}),
              port(write, 16, 16, {use(I1, fh), use(I2, fh), use(O, fh), use(O, fl)})})};
  return core;
}

inline AxisExpr axis(std::vector<AffineTerm> terms, std::int64_t offset = 0) {
  return {std::move(terms), offset};
}

/// O[D,K] += I[D,C] * W[C,K], dims in the order C, D, K.
inline CoreProblem product(std::int64_t c, std::int64_t d, std::int64_t k, std::int64_t bits = 8,
                           std::int64_t partial_bits = 16) {
  CoreProblem problem;
  problem.dims = {{"C", c}, {"D", d}, {"K", k}};
  ProblemOperand output{
      AccessMode::write, MemoryOperand::O, {axis({{1, 1}}), axis({{2, 1}})}, {d, k}, bits,
      partial_bits};
  ProblemOperand input{
      AccessMode::read, MemoryOperand::I1, {axis({{1, 1}}), axis({{0, 1}})}, {d, c}, bits, bits};
  ProblemOperand weight{
      AccessMode::read, MemoryOperand::I2, {axis({{0, 1}}), axis({{2, 1}})}, {c, k}, bits, bits};
  problem.operands = {output, input, weight};
  return problem;
}

struct ConvSizes {
  std::int64_t b = 1, k = 1, ox = 1, oy = 1, c = 1, fx = 1, fy = 1, stride = 1, padding = 0, ix = 1,
               iy = 1;
};

/// The three products of a convolution, in the dim order B, K, G, OX, OY, C, FX, FY.
enum class ConvProduct { forward, input_gradient, weight_gradient };

inline CoreProblem convolution(const ConvSizes& s, ConvProduct which, std::int64_t bits = 8,
                               std::int64_t partial_bits = 16) {
  CoreProblem problem;
  problem.dims = {{"B", s.b},   {"K", s.k}, {"G", 1},     {"OX", s.ox},
                  {"OY", s.oy}, {"C", s.c}, {"FX", s.fx}, {"FY", s.fy}};
  ProblemOperand y{AccessMode::read,
                   MemoryOperand::I1,
                   {axis({{0, 1}}), axis({{1, 1}}), axis({{4, 1}}), axis({{3, 1}})},
                   {s.b, s.k, s.oy, s.ox},
                   bits,
                   bits};
  ProblemOperand w{AccessMode::read,
                   MemoryOperand::I2,
                   {axis({{1, 1}}), axis({{5, 1}}), axis({{7, 1}}), axis({{6, 1}})},
                   {s.k, s.c, s.fy, s.fx},
                   bits,
                   bits};
  ProblemOperand x{AccessMode::read,
                   MemoryOperand::I1,
                   {axis({{0, 1}}), axis({{5, 1}}), axis({{4, s.stride}, {7, 1}}, -s.padding),
                    axis({{3, s.stride}, {6, 1}}, -s.padding)},
                   {s.b, s.c, s.iy, s.ix},
                   bits,
                   bits};
  const auto as_output = [&](ProblemOperand operand, AccessMode mode) {
    operand.mode = mode;
    operand.memory = MemoryOperand::O;
    operand.partial_bits = partial_bits;
    return operand;
  };
  switch (which) {
  case ConvProduct::forward:
    problem.operands = {as_output(y, AccessMode::write), w, x};
    break;
  case ConvProduct::input_gradient:
    problem.operands = {as_output(x, AccessMode::accumulate), w, y};
    break;
  case ConvProduct::weight_gradient:
    y.memory = MemoryOperand::I2;
    problem.operands = {as_output(w, AccessMode::write), x, y};
    break;
  }
  return problem;
}

} // namespace monet::test
